"""Rows of images: their files' bytes as they are, or made smaller, beside columns of numbers and texts."""

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

ROWS = 1000  # of a piece, and of a row group


@dataclass(frozen=True)
class Picture:
    """A row.

    Attributes:
        part: "train", "test" or "valid".
        file: the image's.
        values: of its other columns.
    """

    part: str
    file: Path
    values: tuple[int | str | bool, ...]


def pieces_of(pictures: Sequence[Picture], names: Sequence[str], source: Path, size: int | None) -> list[Piece]:
    """Plan the rows' pieces, part by part.

    Args:
        pictures: the rows.
        names: of the columns beside the image.
        source: the folder that the files are in.
        size: pixels of a side that images are made, None to keep their bytes.
    """
    pieces = []
    for part in ("train", "valid", "test"):
        own = [picture for picture in pictures if picture.part == part]
        for rows in batched(own, ROWS):
            make = partial(_make, rows, tuple(names), source, size)
            pieces.append(Piece(part, _key(rows, names, source, size), make))
    return pieces


def _key(rows: Sequence[Picture], names: Sequence[str], source: Path, size: int | None) -> str:
    total = hashlib.blake2b(f"{size} {names}".encode(), digest_size=16)
    for row in rows:
        total.update(f"{row.file.relative_to(source)} {stamp(row.file)} {row.values}".encode())
    return total.hexdigest()


def _make(rows: Sequence[Picture], names: Sequence[str], source: Path, size: int | None) -> Any:  # noqa: ANN401  pyarrow has no types
    import pyarrow as pa

    images = [{"bytes": _read(row.file, size), "path": str(row.file.relative_to(source))} for row in rows]
    columns = {name: [row.values[at] for row in rows] for at, name in enumerate(names)}
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    return pa.table({"image": pa.array(images, kind), **columns})


def _read(file: Path, size: int | None) -> bytes:
    """The file's bytes, or those of a PNG of the size. Raises `DataError` for what can't be decoded."""
    from PIL import Image

    data = file.read_bytes()
    try:
        pixels = Fit((3, size or 1, size or 1), resize=size is not None).pixels(0, data)
    except BadImage as error:
        raise DataError(f"{file} {error!s}") from error
    if size is None:
        return data
    made = io.BytesIO()
    Image.fromarray(pixels.transpose(1, 2, 0)).save(made, "PNG")
    return made.getvalue()
