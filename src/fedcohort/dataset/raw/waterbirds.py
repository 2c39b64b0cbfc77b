"""WaterBirds as its archive has it: SRC/metadata.csv and the images that it names.

metadata.csv: img_filename, y (1 a water bird), place (1 water), split (0 train, 1 valid, 2 test); other columns are
left out. Columns made: `image`, `label`, `place`. With size=256 images are stored as group DRO's code first makes them.
"""

import csv
from pathlib import Path

from fedcohort.dataset.encoding import check_utf8
from fedcohort.dataset.raw.encoded import Picture, pieces_of
from fedcohort.dataset.raw.pieces import Piece
from fedcohort.dataset.raw.source import first_of, inside
from fedcohort.errors import DataError

SPLITS = {"0": "train", "1": "valid", "2": "test"}
COLUMNS = ("img_filename", "y", "place", "split")


def plan(source: Path, size: int | None) -> list[Piece]:
    """Plan the tables. Raises `DataError` by line."""
    file = first_of(source, "metadata.csv")
    check_utf8(file, "")
    with file.open(newline="", encoding="utf-8") as stream:
        reader = csv.DictReader(stream)
        lacking = [name for name in COLUMNS if name not in (reader.fieldnames or [])]
        if lacking:
            raise DataError(f"{file} has no column {lacking[0]!r}; it has {', '.join(reader.fieldnames or [])}")
        pictures = [_picture(source, file, reader.line_num, row) for row in reader]
    if not pictures:
        raise DataError(f"{file} names no image")
    return pieces_of(pictures, ("label", "place"), source, size)


def _picture(source: Path, file: Path, line: int, row: dict[str, str]) -> Picture:
    for name, known in (("split", tuple(SPLITS)), ("y", ("0", "1")), ("place", ("0", "1"))):
        if row[name] not in known:
            raise DataError(f"{file}, line {line}: {name} is {row[name]!r}; it must be one of {', '.join(known)}")
    image = inside(source, row["img_filename"] or "(no name)")
    return Picture(SPLITS[row["split"]], image, (int(row["y"]), int(row["place"])))
