"""Columns of encoded images, as Hugging Face stores them: a struct of an image's bytes and its path.

An image is rotated as its camera noted (EXIF). Transparency (alpha) is dropped: a pixel has the colour that is in the
file, however transparent it is.
"""

import io
import struct
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from fedcohort.host import memory

if TYPE_CHECKING:
    from PIL import Image

    Change = Callable[[Image.Image], Image.Image]

ORIENTATION = 0x0112  # the tag of EXIF
MIXED = "; all must be of one kind and size, as fedcohort prepare imagefolder SRC DST size=64 makes them"
SMALLER = "fedcohort prepare imagefolder SRC DST size=64 makes them smaller"
DEEP = ("I", "F")  # how modes of 16 or 32 bits a pixel begin: Pillow makes all above 255 white


class BadImage(Exception):
    """An image that can't be used; the message states the reason, in the form that follows "row 3"."""

    def __init__(self, row: int, why: str) -> None:
        super().__init__(why)
        self.row = row


@dataclass(frozen=True)
class Fit:
    """The form that every image of a column gets.

    Attributes:
        shape: channels (1 for grey, 3 for RGB), height, width.
        resize: whether images of other sizes are resized; otherwise they are errors.
        margin: pixels that are cut off on each side, after resizing to a size that is larger by as many.
    """

    shape: tuple[int, int, int]
    resize: bool = False
    margin: int = 0

    def __call__(self, image: "Image.Image") -> "Image.Image":
        """Return the image in the mode and size of `shape`."""
        from PIL import Image  # noqa: PLC0415 - only where a column holds images

        mode = "L" if self.shape[0] == 1 else "RGB"
        image = image if image.mode == mode else image.convert(mode)
        if not self.resize:
            return image
        _, height, width = self.shape
        m = self.margin
        if image.size != (width + 2 * m, height + 2 * m):
            image = image.resize((width + 2 * m, height + 2 * m), Image.Resampling.BILINEAR)
        return image.crop((m, m, m + width, m + height)) if m else image

    def pixels(self, row: int, data: bytes | None) -> np.ndarray:
        """Return the encoded image of `row`, uint8, in its own size where it isn't resized. Raises `BadImage`."""
        return _image(row, data, self)

    def decode(self, row: int, data: bytes | None) -> np.ndarray:
        """Return the encoded image of `row` as uint8 of `shape`. Raises `BadImage`."""
        pixels = self.pixels(row, data)
        if pixels.shape != self.shape:
            raise BadImage(row, f"is an image of {pixels.shape}, but {self.shape} is expected")
        return pixels


def holds_images(kind: pa.DataType) -> bool:
    """Return whether a column of this type holds encoded images."""
    if not pa.types.is_struct(kind) or (position := kind.get_field_index("bytes")) < 0:
        return False
    content = kind.field(position).type
    return bool(pa.types.is_binary(content) or pa.types.is_large_binary(content) or pa.types.is_null(content))


def decode(column: pa.Array, n_rows: int) -> np.ndarray:
    """Decode a piece of a column of images: uint8 [rows, channels, height, width].

    n_rows: rows of the whole column. Raises `BadImage`, and `OptionError` where the column needs too much memory.
    """
    out = np.empty((0,), np.uint8)
    for row, data in enumerate(column.field("bytes")):
        image = _image(row, data.as_py())
        if not row:
            what = f"{n_rows:,} images of {' x '.join(map(str, image.shape))}"
            memory.require_memory((n_rows + len(column)) * image.nbytes, what, SMALLER)
            out = np.empty((len(column), *image.shape), np.uint8)
        elif image.shape != out.shape[1:]:
            name = _path(column, row)
            raise BadImage(row, f"is an image of {image.shape}{name}, and the first is one of {out.shape[1:]}{MIXED}")
        out[row] = image
    return out


def _path(column: pa.Array, row: int) -> str:
    """Return ` (cat/3.png)` where the column has the names of the images' files."""
    name = column.field("path")[row].as_py() if column.type.get_field_index("path") >= 0 else None
    return f" ({name})" if name else ""


def upright(image: "Image.Image") -> "Image.Image":
    """Return the image rotated as its camera noted; notes that can't be read are ignored."""
    from PIL import ImageOps  # noqa: PLC0415 - only where a column holds images

    try:
        turned = image.getexif().get(ORIENTATION, 1) != 1
    except (struct.error, ValueError, SyntaxError, LookupError, TypeError):
        turned = False
    return ImageOps.exif_transpose(image) if turned else image


def plain(image: "Image.Image") -> "Image.Image":
    """Return the image in grey or RGB."""
    return image if image.mode in ("L", "RGB") else image.convert("RGB")


def _image(row: int, data: bytes | None, change: "Change" = plain) -> np.ndarray:
    from PIL import Image  # noqa: PLC0415 - only where a column holds images

    if not data:
        raise BadImage(row, "is empty")
    try:
        with warnings.catch_warnings():  # an image of billions of pixels is warned of, or refused
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            warnings.filterwarnings("ignore", "Corrupt EXIF")
            with Image.open(io.BytesIO(data)) as image:
                if image.mode.startswith(DEEP):
                    raise BadImage(row, f"has more than 8 bits per pixel (mode {image.mode}), but 8 are supported")
                pixels = np.asarray(change(upright(image)))
    except BadImage:
        raise
    except Exception as error:  # Pillow's decoders raise errors of many kinds for damaged bytes
        reason = (str(error) or type(error).__name__).splitlines()[0].partition(" <_io")[0]
        raise BadImage(row, f"can't be read as an image: {reason}") from error
    return pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)
