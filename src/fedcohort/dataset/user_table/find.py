"""Find the tables of `dataset.path`: a folder of tables, one table file, Parquet part files, or a folder of images."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fedcohort.dataset.files import file_of, folder_of, list_folder, read
from fedcohort.dataset.parquet import list_parts
from fedcohort.dataset.problems import Problems
from fedcohort.dataset.raw.source import IMAGES
from fedcohort.dataset.table import Frame
from fedcohort.dataset.user_table import image_folder
from fedcohort.errors import DataError
from fedcohort.paths import expand

SUFFIXES = (".parquet", ".csv", ".tsv", ".txt", ".gz")
PARTS = ("train", "test", "valid")


@dataclass(frozen=True)
class TableFiles:
    """The files of `dataset.path`.

    Attributes:
        train: the training table: a file, or a folder of Parquet part files.
        test: the test table, None if there is none.
        valid: the validation table, None if there is none.
        images: the folder of images, `<class>/*` or `train/<class>/*`; None if `path` holds tables.
    """

    train: Path
    test: Path | None = None
    valid: Path | None = None
    images: Path | None = None


def find(path: str) -> TableFiles:
    """Find the files; a single table of any name is the training table. Raises `DataError`."""
    single = expand(path)
    if os.path.isfile(single):
        return TableFiles(single)
    folder = folder_of(path)
    train, test, valid = (file_of(path, part) for part in PARTS)
    if train is None and list_parts(folder) and test != folder / "test.parquet" and _is_spark(folder):
        return TableFiles(folder)
    if train is not None:
        return TableFiles(train, test, valid)
    candidates = [
        file
        for file in sorted(folder.iterdir())
        if file.is_file() and file.suffix.lower() in SUFFIXES and file.name[0] not in "._" and file not in (test, valid)
    ]
    if len(candidates) == 1:
        return TableFiles(candidates[0], test, valid)
    if not candidates and image_folder.holds_classes(folder):
        return TableFiles(folder, images=folder)
    hint = _advise(folder, candidates)
    raise DataError(f"dataset.path={path} needs train.parquet or train.csv; it holds {list_folder(path)}{hint}")


def _advise(folder: Path, tables: Sequence[Path]) -> str:
    """Return what a user can do about a folder that is not read, as the end of a message."""
    entries = list(folder.iterdir())
    if tables:
        return f"; name one of its tables, as dataset.path={tables[0]}, or join parts of one table to train.csv"
    if any(entry.is_dir() and "=" in entry.name for entry in entries):
        return (
            "; a table that is partitioned into folders is not read: "
            f"pandas.read_parquet({str(folder)!r}).to_parquet('{folder.name}.parquet') makes one file of it"
        )
    if any(entry.suffix.lower() in IMAGES for entry in entries):
        return "; put the images into one folder for each class, as <class>/*.png"
    return ""


def _is_spark(folder: Path) -> bool:
    """Return whether a folder holds the part files of one table, as Spark, Dask and pyarrow name them."""
    return all(file.name.startswith("part") or file.stem.isdecimal() for file in list_parts(folder))


def load_tables(path: str, cut: bool, with_valid: bool, decimal: str, problems: Problems) -> list[Frame]:
    """Read the tables: train, test (not where it is to be cut of train) and possibly valid.

    Args:
        path: the option `dataset.path`.
        cut: whether `dataset.test_share` cuts a test part.
        with_valid: whether the validation table is read.
        decimal: the decimal mark of CSV files.
        problems: receives what is wrong; the tables that can be read are returned all the same.

    Raises:
        DataError: if there is no training table.
    """
    files = find(path)
    if files.images is not None:
        return _load_images(path, files.images, cut, with_valid, problems)
    frames: list[Frame] = []
    with problems.collect():
        frames.append(read(files.train, decimal))
        if files.train.stem != "train" and files.train.is_file():
            frames[0] = replace(frames[0], notes=(f"{files.train.name} is the training table", *frames[0].notes))
    if files.test is not None and cut:
        problems.add(DataError(f"dataset.test_share must be null where there is a test part ({files.test})"))
    elif files.test is not None:
        with problems.collect():
            frames.append(read(files.test, decimal))
    elif not cut:
        problems.add(_no_test(path, files.train.name, files.valid))
    if files.valid is not None and with_valid:
        with problems.collect():
            frames.append(read(files.valid, decimal))
    elif files.valid is not None and frames:
        frames[0] = replace(frames[0], notes=(*frames[0].notes, f"{files.valid.name} isn't read"))
    return frames


def _no_test(path: str, train: str, valid: Path | None) -> DataError:
    also = f"; rename {valid.name} to test{valid.suffix} if it is the test part" if valid else ""
    return DataError(
        f"dataset.path={path} has no test table: dataset.test_share=0.2 cuts a fifth of {train}, or write "
        f"test.parquet or test.csv next to it{also}"
    )


def _load_images(path: str, folder: Path, cut: bool, with_valid: bool, problems: Problems) -> list[Frame]:
    frames = image_folder.read_frames(folder)
    if "train" not in frames:
        raise DataError(f"dataset.path={path} has no training images: they belong in train/<class>/*.png")
    if "test" in frames and cut:
        problems.add(DataError(f"dataset.test_share must be null where there is a test part ({folder / 'test'})"))
    elif "test" not in frames and not cut:
        problems.add(_no_test(path, f"{frames['train'].table.num_rows:,} images", None))
    parts: Sequence[str] = ("train", *(["test"] if not cut else []), *(["valid"] if with_valid else []))
    return [frames[part] for part in parts if part in frames]
