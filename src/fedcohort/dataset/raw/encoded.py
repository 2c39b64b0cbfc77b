"""Plan tables of images, unchanged or resized, with further columns of numbers and texts."""

import hashlib
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from fedcohort.dataset.images import ImageFormat, InvalidImageError, decode_image
from fedcohort.dataset.raw.pieces import TablePiece, size_and_time
from fedcohort.errors import DataError

ROWS_PER_PIECE = 1000  # rows of a piece


@dataclass(frozen=True)
class EncodedImage:
    """A row of a table of images to write: an image file and the values of the columns besides `image`, in their order.

    Attributes:
        split_name: part of the dataset that the row belongs to: "train", "test" or "valid".
        file: path of the image file.
        column_values: values of the other columns.
    """

    split_name: str
    file: Path
    column_values: tuple[int | str | bool, ...]


def plan_chunks(
    images: Sequence[EncodedImage], column_names: Sequence[str], raw_dir: Path, image_width: int | None
) -> list[TablePiece]:
    """Return the pieces of the tables to write: the rows of each part, 1,000 at a time.

    Args:
        images: the rows of all parts.
        column_names: names of the columns besides `image`.
        raw_dir: folder that contains the image files.
        image_width: width and height in pixels to which images are resized; None to keep the bytes of their files.
    """
    table_pieces = []
    for split_name in ("train", "valid", "test"):
        part_images = [image for image in images if image.split_name == split_name]
        for piece_start in range(0, len(part_images), ROWS_PER_PIECE):
            piece_images = part_images[piece_start : piece_start + ROWS_PER_PIECE]
            source_hasher = hashlib.blake2b(f"{image_width} {column_names}".encode(), digest_size=16)
            for piece_image in piece_images:
                file = piece_image.file
                source_hasher.update(
                    f"{file.relative_to(raw_dir)} {size_and_time(file)} {piece_image.column_values}".encode()
                )
            read_bytes = partial(_read_image_bytes, image_width=image_width)
            make_piece_table = partial(make_image_table, piece_images, tuple(column_names), raw_dir, read_bytes)
            table_pieces.append(TablePiece(split_name, source_hasher.hexdigest(), make_piece_table))
    return table_pieces


def make_image_table(
    images: Sequence[EncodedImage],
    column_names: Sequence[str],
    raw_dir: Path,
    read_bytes: Callable[[EncodedImage], bytes],
) -> Any:  # noqa: ANN401  pyarrow has no types
    """Return a `pa.Table` with the column `image` of bytes and paths in `raw_dir`, and further columns.

    Args:
        images: the images and the values of the further columns.
        column_names: names of the further columns.
        raw_dir: folder that contains the image files.
        read_bytes: function that returns the bytes to store for an image.
    """
    import pyarrow as pa

    image_cells = [{"bytes": read_bytes(image), "path": str(image.file.relative_to(raw_dir))} for image in images]
    columns_by_name = {
        column_name: [image.column_values[column_number] for image in images]
        for column_number, column_name in enumerate(column_names)
    }
    image_column_type = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    return pa.table({"image": pa.array(image_cells, image_column_type), **columns_by_name})


def _read_image_bytes(image: EncodedImage, image_width: int | None) -> bytes:
    """Return the content of an image file, or of the resized image as a PNG file.

    Args:
        image: the image file.
        image_width: width and height in pixels; None to keep the file's bytes.

    Raises:
        DataError: the image can't be decoded.
    """
    from PIL import Image

    file_content = image.file.read_bytes()
    try:
        pixels = decode_image(
            file_content, None if image_width is None else ImageFormat((3, image_width, image_width), resize=True)
        )
    except InvalidImageError as error:
        raise DataError(f"{image.file} {error!s}") from error
    if image_width is None:
        return file_content
    png_stream = io.BytesIO()
    Image.fromarray(pixels.transpose(1, 2, 0)).save(png_stream, "PNG")
    return png_stream.getvalue()
