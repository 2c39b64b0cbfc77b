"""Decode columns of encoded images, as Hugging Face stores them: a struct of an image's bytes and its path.

An image is rotated as its camera noted (EXIF). Transparency (alpha) is dropped: a pixel has the colour that is in the
file, however transparent it is.
"""

import io
import struct
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from fedcohort.host import memory

if TYPE_CHECKING:
    from PIL import Image

    from fedcohort.dataset.table import Frame

SAME_SIZE = "; all images must have one size and mode: fedcohort prepare imagefolder SRC DST size=64 converts them"
RESIZE_ADVICE = "fedcohort prepare imagefolder SRC DST size=64 reduces them"
DEEP_MODES = ("I", "F")  # how modes of 16 or 32 bits a pixel begin: Pillow makes all above 255 white


class BadImage(Exception):
    """An image that can't be used; the message states the reason, in the form that follows "row 3"."""


@dataclass(frozen=True)
class ImageFormat:
    """The format into which every image of a dataset is converted.

    Attributes:
        shape: channels (1 for grey, 3 for RGB), height, width.
        resize: whether images of other sizes are resized; otherwise they are errors.
        margin: pixels that are cut off on each side, after resizing to a size that is larger by as many.
    """

    shape: tuple[int, int, int]
    resize: bool = False
    margin: int = 0

    def convert(self, image: "Image.Image") -> "Image.Image":
        """Return the image in the mode and size of `shape`."""
        from PIL import Image  # noqa: PLC0415 - only where a column holds images

        image = image.convert("L" if self.shape[0] == 1 else "RGB")
        if not self.resize:
            return image
        m, (_, height, width) = self.margin, self.shape
        if image.size != (width + 2 * m, height + 2 * m):
            image = image.resize((width + 2 * m, height + 2 * m), Image.Resampling.BILINEAR)
        return image.crop((m, m, m + width, m + height))


def holds_images(data_type: pa.DataType) -> bool:
    """Return whether a column of this type holds encoded images."""
    if not pa.types.is_struct(data_type) or (position := data_type.get_field_index("bytes")) < 0:
        return False
    content = data_type.field(position).type
    return bool(pa.types.is_binary(content) or pa.types.is_large_binary(content) or pa.types.is_null(content))


def decode_cells(
    frame: "Frame", name: str, chunk: pa.Array, start: int, rows: Iterable[int], image_format: ImageFormat | None = None
) -> Iterator[np.ndarray]:
    """Yield images of a piece of a column, decoded as by `decode`. Raises `DataError` by row.

    Args:
        frame: the table, for messages.
        name: the column.
        chunk: the encoded images.
        start: row of the first of them in the table.
        rows: the rows of `chunk` to decode.
        image_format: as for `decode`.
    """
    encoded = chunk.field("bytes")
    for row in rows:
        try:
            yield decode(encoded[row].as_py(), image_format)
        except BadImage as error:
            raise frame.cell_error(name, start + row, str(error)) from error


def read_chunk(frame: "Frame", name: str, chunk: pa.Array, start: int, shape: tuple[int, ...]) -> np.ndarray:
    """Return a piece of a column of images, uint8 [rows, channels, height, width].

    Args:
        frame: the table.
        name: the column.
        chunk: the encoded images.
        start: row of the first of them in the table.
        shape: shape of the images in the pieces before; empty for the first piece.

    Raises:
        DataError: an image can't be decoded, or has another shape than the first; the message names its row.
        OptionError: the column needs too much memory.
    """
    decoded, n_rows = list[np.ndarray](), frame.table.num_rows
    for row, image in enumerate(decode_cells(frame, name, chunk, start, range(len(chunk)))):
        if not shape:
            shape, what = image.shape, f"{n_rows:,} images of {' x '.join(map(str, image.shape))}"
            memory.require_memory((n_rows + len(chunk)) * image.nbytes, what, RESIZE_ADVICE)
        if image.shape != shape:
            path = chunk.field("path")[row].as_py() if chunk.type.get_field_index("path") >= 0 else None
            what = f"is an image of {image.shape}{f' ({path})' if path else ''}, and the first is one of {shape}"
            raise frame.cell_error(name, start + row, f"{what}{SAME_SIZE}")
        decoded.append(image)
    return np.stack(decoded)


def decode(data: bytes | None, image_format: ImageFormat | None = None) -> np.ndarray:
    """Return an encoded image as uint8 [channels, height, width]. Raises `BadImage`.

    image_format: the format into which the image is converted; None for grey or RGB in the image's own size.
    """
    from PIL import Image  # noqa: PLC0415 - only where a column holds images

    if not data:
        raise BadImage("is empty")
    try:
        with warnings.catch_warnings():  # an image of billions of pixels is warned of, or refused
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            warnings.filterwarnings("ignore", "Corrupt EXIF")
            with Image.open(io.BytesIO(data)) as image:
                if image.mode.startswith(DEEP_MODES):
                    raise BadImage(f"has more than 8 bits per pixel (mode {image.mode}), but 8 are supported")
                upright = rotate_upright(image)
                if image_format is not None:
                    upright = image_format.convert(upright)
                pixels = np.asarray(upright if upright.mode in ("L", "RGB") else upright.convert("RGB"))
    except BadImage:
        raise
    except Exception as error:  # Pillow's decoders raise errors of many kinds for damaged bytes
        reason = (str(error) or type(error).__name__).splitlines()[0].partition(" <_io")[0]
        raise BadImage(f"can't be read as an image: {reason}") from error
    pixels = pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)
    if image_format is not None and pixels.shape != image_format.shape:
        raise BadImage(f"is an image of {pixels.shape}, but {image_format.shape} is expected")
    return pixels


def rotate_upright(image: "Image.Image") -> "Image.Image":
    """Return the image rotated as its camera noted; a note that can't be read is ignored."""
    from PIL import ImageOps  # noqa: PLC0415 - only where a column holds images

    try:
        return ImageOps.exif_transpose(image)
    except (struct.error, ValueError, SyntaxError, LookupError, TypeError):
        return image
