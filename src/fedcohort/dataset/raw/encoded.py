"""Plan tables of images, unchanged or resized, with further columns of numbers and texts."""

import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from fedcohort.dataset.images import BadImage, Fit
from fedcohort.dataset.raw.pieces import Piece, batched, stamp
from fedcohort.errors import DataError

ROWS = 1000  # rows of a piece


@dataclass(frozen=True)
class Picture:
    """A row of a table.

    Attributes:
        part: "train", "test" or "valid".
        file: the file of the image.
        values: the values of the other columns.
    """

    part: str
    file: Path
    values: tuple[int | str | bool, ...]


def pieces_of(pictures: Sequence[Picture], names: Sequence[str], source: Path, size: int | None) -> list[Piece]:
    """Plan the rows' pieces, part by part.

    Args:
        pictures: the rows.
        names: names of the other columns.
        source: the folder that contains the files.
        size: width and height in pixels to which images are resized; None to keep the bytes of their files.
    """
    pieces = []
    for part in ("train", "valid", "test"):
        for rows in batched([picture for picture in pictures if picture.part == part], ROWS):
            make = partial(_make_table, rows, tuple(names), source, size)
            pieces.append(Piece(part, _key(rows, names, source, size), make))
    return pieces


def _key(rows: Sequence[Picture], names: Sequence[str], source: Path, size: int | None) -> str:
    total = hashlib.blake2b(f"{size} {names}".encode(), digest_size=16)
    for row in rows:
        total.update(f"{row.file.relative_to(source)} {stamp(row.file)} {row.values}".encode())
    return total.hexdigest()


def _make_table(rows: Sequence[Picture], names: Sequence[str], source: Path, size: int | None) -> Any:  # noqa: ANN401  pyarrow has no types
    import pyarrow as pa

    images = [{"bytes": _read(row.file, size), "path": str(row.file.relative_to(source))} for row in rows]
    columns = {name: [row.values[i] for row in rows] for i, name in enumerate(names)}
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    return pa.table({"image": pa.array(images, kind), **columns})


def _read(file: Path, size: int | None) -> bytes:
    """Return the bytes of the file, or of a PNG of the size. Raises `DataError` for files that can't be decoded."""
    from PIL import Image

    data = file.read_bytes()
    try:
        pixels = Fit((3, size or 1, size or 1), resize=size is not None).pixels(0, data)
    except BadImage as error:
        raise DataError(f"{file} {error!s}") from error
    if size is None:
        return data
    stream = io.BytesIO()
    Image.fromarray(pixels.transpose(1, 2, 0)).save(stream, "PNG")
    return stream.getvalue()
