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

SIZE_ADVICE = "; all images must have one size and mode: fedcohort prepare imagefolder SRC DST size=64 converts them"
RESIZE_ADVICE = "fedcohort prepare imagefolder SRC DST size=64 reduces them"
HIGH_BIT_MODE_PREFIXES = ("I", "F")  # how modes of 16 or 32 bits a pixel begin: Pillow makes all above 255 white


class InvalidImageError(Exception):
    """An image that can't be used; the message completes a sentence such as "row 3 ..."."""


@dataclass(frozen=True)
class ImageFormat:
    """The format into which every image of a dataset is converted.

    Attributes:
        shape: number of channels (1 for grey, 3 for RGB), height and width.
        resize: whether images of other sizes are resized; otherwise they are errors.
        crop_margin: pixels that are cut off at each side, after resizing to a size that is larger by this margin.
    """

    shape: tuple[int, int, int]
    resize: bool = False
    crop_margin: int = 0

    def convert_image(self, image: "Image.Image") -> "Image.Image":
        """Return `image` as grey or RGB, as `shape` has one or three channels; with `resize` in the size of `shape`."""
        from PIL import Image  # noqa: PLC0415 - only where a column holds images

        image = image.convert("L" if self.shape[0] == 1 else "RGB")
        if not self.resize:
            return image
        crop_pixels, (_, height, width) = self.crop_margin, self.shape
        if image.size != (width + 2 * crop_pixels, height + 2 * crop_pixels):
            image = image.resize((width + 2 * crop_pixels, height + 2 * crop_pixels), Image.Resampling.BILINEAR)
        return image.crop((crop_pixels, crop_pixels, crop_pixels + width, crop_pixels + height))


def is_image_type(column_type: pa.DataType) -> bool:
    """Return whether a column of type `column_type` holds encoded images, structs with a field `bytes`."""
    if not pa.types.is_struct(column_type) or (bytes_field_index := column_type.get_field_index("bytes")) < 0:
        return False
    bytes_type = column_type.field(bytes_field_index).type
    return bool(pa.types.is_binary(bytes_type) or pa.types.is_large_binary(bytes_type) or pa.types.is_null(bytes_type))


def decode_image_cells(
    frame: "Frame",
    column: str,
    chunk: pa.Array,
    chunk_start: int,
    rows_in_chunk: Iterable[int],
    image_format: ImageFormat | None = None,
) -> Iterator[np.ndarray]:
    """Decode encoded images of a column, and yield each as uint8 [channels, height, width].

    Args:
        frame: the table, for messages.
        column: name of the column.
        chunk: encoded images of adjacent rows.
        chunk_start: row of the first of these images in the table.
        rows_in_chunk: positions in `chunk` of the images to decode.
        image_format: format into which images are converted; None keeps each image's size.

    Raises:
        DataError: an image can't be decoded; the message names its row.
    """
    encoded_images = chunk.field("bytes")
    for row in rows_in_chunk:
        try:
            yield decode_image(encoded_images[row].as_py(), image_format)
        except InvalidImageError as error:
            raise frame.cell_error(column, chunk_start + row, str(error)) from error


def decode_images(frame: "Frame", column: str, chunk: pa.Array, chunk_start: int, shape: tuple[int, ...]) -> np.ndarray:
    """Return encoded images of adjacent rows as uint8 [rows, channels, height, width].

    Args:
        frame: the table, for its number of rows and for messages.
        column: name of the column.
        chunk: the encoded images.
        chunk_start: row of the first of these images in the table.
        shape: shape of the images in the chunks before; () for the first chunk.

    Raises:
        DataError: an image can't be decoded, or has another shape than the first; the message names its row.
        OptionError: the column needs too much memory.
    """
    decoded_images, n_rows = list[np.ndarray](), frame.table.num_rows
    for row, image in enumerate(decode_image_cells(frame, column, chunk, chunk_start, range(len(chunk)))):
        if not shape:
            shape, images_description = image.shape, f"{n_rows:,} images of {' x '.join(map(str, image.shape))}"
            memory.require_memory((n_rows + len(chunk)) * image.nbytes, images_description, RESIZE_ADVICE)
        if image.shape != shape:
            image_path = chunk.field("path")[row].as_py() if chunk.type.get_field_index("path") >= 0 else None
            raise frame.cell_error(
                column,
                chunk_start + row,
                "is an image of "
                f"{image.shape}{f' ({image_path})' if image_path else ''}, but the first is one of {shape}"
                f"{SIZE_ADVICE}",
            )
        decoded_images.append(image)
    return np.stack(decoded_images)


def decode_image(image_bytes: bytes | None, image_format: ImageFormat | None = None) -> np.ndarray:
    """Return an encoded image as uint8 [channels, height, width].

    Args:
        image_bytes: content of the image file; None or b"" for an empty cell.
        image_format: colours into which the image is converted, and the shape that it must have; None for grey or RGB
            in the image's own size.

    Raises:
        InvalidImageError: the image is empty or can't be decoded, has more than 8 bits per channel, or has another
            shape than that of `image_format`.
    """
    from PIL import Image  # noqa: PLC0415 - only where a column holds images

    if not image_bytes:
        raise InvalidImageError("is empty: replace or remove it")
    try:
        with warnings.catch_warnings():  # an image of billions of pixels is warned of, or refused
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            warnings.filterwarnings("ignore", "Corrupt EXIF")
            with Image.open(io.BytesIO(image_bytes)) as image:
                if image.mode.startswith(HIGH_BIT_MODE_PREFIXES):
                    raise InvalidImageError(
                        f"has more than 8 bits per pixel (mode {image.mode}), but 8 are supported: convert it"
                    )
                upright_image = rotate_upright(image)
                if image_format is not None:
                    upright_image = image_format.convert_image(upright_image)
                pixels = np.asarray(
                    upright_image if upright_image.mode in ("L", "RGB") else upright_image.convert("RGB")
                )
    except InvalidImageError:
        raise
    except Exception as error:  # Pillow's decoders raise errors of many kinds for damaged bytes
        decoder_error_text = (str(error) or type(error).__name__).splitlines()[0].partition(" <_io")[0]
        raise InvalidImageError(f"can't be read as an image: {decoder_error_text}; replace or remove it") from error
    pixels = pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)
    if image_format is not None and pixels.shape != image_format.shape:
        raise InvalidImageError(f"is an image of {pixels.shape}, but {image_format.shape} is expected: resize it")
    return pixels


def rotate_upright(image: "Image.Image") -> "Image.Image":
    """Return an image of Pillow rotated by the orientation that its camera stored (EXIF), if that can be read."""
    from PIL import ImageOps  # noqa: PLC0415 - only where a column holds images

    try:
        return ImageOps.exif_transpose(image)
    except (struct.error, ValueError, SyntaxError, LookupError, TypeError):
        return image
