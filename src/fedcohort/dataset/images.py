"""Columns of encoded images, as Hugging Face stores them: a struct of an image's bytes and its path."""

import io
import warnings

import numpy as np
import pyarrow as pa


class BadImage(Exception):
    """The image of `row` can't be used; the message says why, after the words "row 3"."""

    def __init__(self, row: int, why: str) -> None:
        super().__init__(why)
        self.row = row


def holds_images(kind: pa.DataType) -> bool:
    if not pa.types.is_struct(kind) or (at := kind.get_field_index("bytes")) < 0:
        return False
    content = kind.field(at).type
    return bool(pa.types.is_binary(content) or pa.types.is_large_binary(content) or pa.types.is_null(content))


def decode(column: pa.ChunkedArray) -> np.ndarray:
    """Decode a column of images: uint8 [rows, channels, height, width]. Raises `BadImage`."""
    encoded = (data.as_py() for chunk in column.chunks for data in chunk.field("bytes"))
    images: list[np.ndarray] = []
    for row, data in enumerate(encoded):
        images.append(_image(row, data))
        if images[row].shape != images[0].shape:
            raise BadImage(row, f"is an image of {images[row].shape}, and the first is one of {images[0].shape}")
    return np.stack(images)


def _image(row: int, data: bytes | None) -> np.ndarray:
    from PIL import Image  # noqa: PLC0415 - only where a column holds images

    if not data:
        raise BadImage(row, "is empty")
    try:
        with warnings.catch_warnings():  # an image of billions of pixels is warned of, or refused
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(io.BytesIO(data)) as image:
                pixels = np.asarray(image if image.mode in ("L", "RGB") else image.convert("RGB"))
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        reason = str(error).splitlines()[0].partition(" <_io")[0]
        raise BadImage(row, f"is no image that can be read: {reason}") from error
    return pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)
