"""Convert WaterBirds in the layout of its archive: SRC/metadata.csv and the images that it names.

metadata.csv: img_filename, y (1 a water bird), place (1 water), split (0 train, 1 valid, 2 test); other columns are
left out. The tables have the columns `image`, `label` and `place`. size=256 is the size to which group DRO's code
resizes images before it crops them.
"""

import csv
from collections.abc import Iterator
from pathlib import Path

from fedcohort.dataset.csv_file import check_encoding
from fedcohort.dataset.messages import join_names
from fedcohort.dataset.raw.encoded import EncodedImage, plan_chunks
from fedcohort.dataset.raw.pieces import TablePiece
from fedcohort.dataset.raw.source import check_file
from fedcohort.errors import DataError

SPLIT_BY_CODE = {"0": "train", "1": "valid", "2": "test"}
ALLOWED_COLUMN_VALUES = {"split": tuple(SPLIT_BY_CODE), "y": ("0", "1"), "place": ("0", "1")}


def plan_table_pieces(raw_dir: Path, image_size: int | None) -> list[TablePiece]:
    """Return the pieces of the tables to write from WaterBirds.

    Args:
        raw_dir: folder of the archive's content.
        image_size: width and height in pixels to which images are resized; None to keep the files' bytes.

    Raises:
        DataError: metadata.csv is missing, or names a missing image; a line is invalid, which the message names.
    """
    file = check_file(raw_dir, "metadata.csv")
    check_encoding(file.open("rb"), str(file))
    try:
        with file.open(newline="", encoding="utf-8-sig") as file_stream:
            encoded_images = list(_read_images(raw_dir, file, csv.DictReader(file_stream, strict=True)))
    except csv.Error as error:
        raise DataError(f"{file} is no CSV: {error}. Restore the file") from error
    if not encoded_images:
        raise DataError(f"{file} names no image: restore the file")
    return plan_chunks(encoded_images, ("label", "place"), raw_dir, image_size)


def _read_images(raw_dir: Path, file: Path, csv_rows: "csv.DictReader[str]") -> Iterator[EncodedImage]:
    """Yield the image of each line of metadata.csv.

    Args:
        raw_dir: folder that contains the images.
        file: metadata.csv, for messages.
        csv_rows: reader of its lines.

    Raises:
        DataError: a column or an image is missing; a line is invalid, which the message names.
    """
    column_names = list(csv_rows.fieldnames or [])
    if wrong_column := next(
        (name for name in ("img_filename", *ALLOWED_COLUMN_VALUES) if column_names.count(name) != 1), None
    ):
        raise DataError(f"{file} must have one column {wrong_column!r}, but has {join_names(column_names)}: correct it")
    first_line_of_image: dict[Path, int] = {}
    for row in csv_rows:
        line_text = f"{file}, line {csv_rows.line_num}"
        for name, allowed_values in ALLOWED_COLUMN_VALUES.items():
            if row[name] not in allowed_values:
                raise DataError(f"{line_text}: {name} is {row[name]!r}; it must be one of {', '.join(allowed_values)}")
        if None in row:
            raise DataError(f"{line_text} has more cells than the header: correct it")
        image_file = check_file(raw_dir, row["img_filename"] or "(no name)")
        if (first_line_number := first_line_of_image.setdefault(image_file, csv_rows.line_num)) != csv_rows.line_num:
            raise DataError(f"{line_text}: {row['img_filename']!r} occurs in line {first_line_number}, too: remove one")
        yield EncodedImage(SPLIT_BY_CODE[row["split"]], image_file, (int(row["y"]), int(row["place"])))
