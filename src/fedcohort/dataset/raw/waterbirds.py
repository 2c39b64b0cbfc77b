"""Convert WaterBirds in the layout of its archive: SRC/metadata.csv and the images that it names.

metadata.csv: img_filename, y (1 a water bird), place (1 water), split (0 train, 1 valid, 2 test); other columns are
left out. The tables have the columns `image`, `label` and `place`. size=256 is the size to which group DRO's code
resizes images before it crops them.
"""

import csv
from pathlib import Path

from fedcohort.dataset.encoding import check_utf8
from fedcohort.dataset.naming import list_names
from fedcohort.dataset.raw.encoded import Picture, pieces_of
from fedcohort.dataset.raw.pieces import Piece
from fedcohort.dataset.raw.source import file_in
from fedcohort.errors import DataError

SPLITS = {"0": "train", "1": "valid", "2": "test"}
COLUMNS = ("img_filename", "y", "place", "split")


def plan(source: Path, size: int | None) -> list[Piece]:
    """Plan the tables. Raises `DataError` by line."""
    file = file_in(source, "metadata.csv")
    check_utf8(file, str(file))
    try:
        with file.open(newline="", encoding="utf-8-sig") as stream:
            pictures = _pictures(source, file, csv.DictReader(stream, strict=True))
    except csv.Error as error:
        raise DataError(f"{file} is no CSV: {error}") from error
    if not pictures:
        raise DataError(f"{file} names no image")
    return pieces_of(pictures, ("label", "place"), source, size)


def _pictures(source: Path, file: Path, reader: "csv.DictReader[str]") -> list[Picture]:
    names = list(reader.fieldnames or [])
    if lacking := [name for name in COLUMNS if names.count(name) != 1]:
        how_many = "no column" if lacking[0] not in names else "two columns called"
        raise DataError(f"{file} has {how_many} {lacking[0]!r}; it has {list_names(names)}")
    pictures, lines = [], dict[Path, int]()
    for row in reader:
        picture = _picture(source, file, reader.line_num, row)
        before = lines.setdefault(picture.file, reader.line_num)
        if before != reader.line_num:
            raise DataError(f"{file}, line {reader.line_num}: line {before} names {row['img_filename']!r}, too")
        pictures.append(picture)
    return pictures


def _picture(source: Path, file: Path, line: int, row: dict[str, str]) -> Picture:
    for name, allowed in (("split", tuple(SPLITS)), ("y", ("0", "1")), ("place", ("0", "1"))):
        if row[name] not in allowed:
            raise DataError(f"{file}, line {line}: {name} is {row[name]!r}; it must be one of {', '.join(allowed)}")
    if None in row:
        raise DataError(f"{file}, line {line} has more cells than the header")
    image = file_in(source, row["img_filename"] or "(no name)")
    return Picture(SPLITS[row["split"]], image, (int(row["y"]), int(row["place"])))
