"""Convert WaterBirds in the layout of its archive: SRC/metadata.csv and the images that it names.

metadata.csv: img_filename, y (1 a water bird), place (1 water), split (0 train, 1 valid, 2 test); other columns are
left out. The tables have the columns `image`, `label` and `place`. size=256 is the size to which group DRO's code
resizes images before it crops them.
"""

import csv
from collections.abc import Iterator
from pathlib import Path

from fedcohort.dataset.csv_file import check_encoding
from fedcohort.dataset.messages import list_names
from fedcohort.dataset.raw.encoded import EncodedImage, plan_pieces
from fedcohort.dataset.raw.pieces import Piece
from fedcohort.dataset.raw.source import check_file
from fedcohort.errors import DataError

SPLIT_BY_CODE = {"0": "train", "1": "valid", "2": "test"}
ALLOWED_VALUES = {"split": tuple(SPLIT_BY_CODE), "y": ("0", "1"), "place": ("0", "1")}


def plan(source: Path, size: int | None) -> list[Piece]:
    """Plan the tables. Raises `DataError` by line."""
    file = check_file(source, "metadata.csv")
    check_encoding(file.open("rb"), str(file))
    try:
        with file.open(newline="", encoding="utf-8-sig") as file_stream:
            images = list(_read_images(source, file, csv.DictReader(file_stream, strict=True)))
    except csv.Error as error:
        raise DataError(f"{file} is no CSV: {error}") from error
    if not images:
        raise DataError(f"{file} names no image")
    return plan_pieces(images, ("label", "place"), source, size)


def _read_images(source: Path, file: Path, reader: "csv.DictReader[str]") -> Iterator[EncodedImage]:
    """Yield the image of each line of metadata.csv. Raises `DataError` by line."""
    names = list(reader.fieldnames or [])
    if wrong := next((name for name in ("img_filename", *ALLOWED_VALUES) if names.count(name) != 1), None):
        how_many = "two columns called" if wrong in names else "no column"
        raise DataError(f"{file} has {how_many} {wrong!r}; it has {list_names(names)}")
    first_line: dict[Path, int] = {}
    for row in reader:
        line_text = f"{file}, line {reader.line_num}"
        for name, allowed in ALLOWED_VALUES.items():
            if row[name] not in allowed:
                raise DataError(f"{line_text}: {name} is {row[name]!r}; it must be one of {', '.join(allowed)}")
        if None in row:
            raise DataError(f"{line_text} has more cells than the header")
        image = check_file(source, row["img_filename"] or "(no name)")
        if (line := first_line.setdefault(image, reader.line_num)) != reader.line_num:
            raise DataError(f"{line_text}: line {line} names {row['img_filename']!r}, too")
        yield EncodedImage(SPLIT_BY_CODE[row["split"]], image, (int(row["y"]), int(row["place"])))
