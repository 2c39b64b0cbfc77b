"""Find and read the tables of `dataset.path`: a folder of tables, one table, Parquet files, or a folder of images."""

import os
from dataclasses import replace
from pathlib import Path

from fedcohort.dataset.files import check_folder, find_part, list_folder, read
from fedcohort.dataset.images import RESIZE_ADVICE
from fedcohort.dataset.messages import Problems
from fedcohort.dataset.parquet import list_files
from fedcohort.dataset.raw import imagefolder
from fedcohort.dataset.raw.encoded import make_table
from fedcohort.dataset.raw.source import IMAGE_SUFFIXES
from fedcohort.dataset.table import Frame
from fedcohort.errors import DataError
from fedcohort.host import memory
from fedcohort.paths import expand_home

SUFFIXES = (".parquet", ".csv", ".tsv", ".txt", ".gz")
PARTS = ("train", "test", "valid")


def find_files(path: str) -> dict[str, Path]:
    """Return the files of `dataset.path` by part: train, test and valid.

    A single table of any name is the training table. A folder of Parquet files is one table. A folder of images is the
    only part, `images`. Raises `DataError`.
    """
    if os.path.isfile(file := expand_home(path)):
        return {"train": file}
    folder = check_folder(path)
    files = {part_name: table for part_name in PARTS if (table := find_part(path, part_name)) is not None}
    if "train" in files:
        return files
    if files.get("test") != folder / "test.parquet" and _is_one_table(folder):
        return {"train": folder}
    visible = [file for file in sorted(folder.iterdir()) if file.is_file() and file.name[0] not in "._"]
    candidates = [file for file in visible if file.suffix.lower() in SUFFIXES and file not in files.values()]
    if len(candidates) == 1:
        return {"train": candidates[0], **files}
    if not candidates and imagefolder.holds_classes(folder):
        return {"images": folder}
    advice = ""
    if candidates:
        advice = f"; name one of its tables, as dataset.path={candidates[0]}, or join parts of one table to train.csv"
    elif any(entry.suffix.lower() in IMAGE_SUFFIXES for entry in folder.iterdir()):
        advice = "; put the images into one folder for each class, as <class>/*.png"
    raise DataError(f"dataset.path={path} needs train.parquet or train.csv; it holds {list_folder(folder)}{advice}")


def _is_one_table(folder: Path) -> bool:
    """Return whether the Parquet files of a folder have the names that Spark, Dask and pyarrow give to one table."""
    files = list_files(folder)
    inside = [file for file in files if file.parent == folder]
    return bool(files) and all(file.name.startswith("part") or file.stem.isdecimal() for file in inside)


def load_tables(path: str, has_cut_part: bool, with_valid: bool, decimal: str, problems: Problems) -> list[Frame]:
    """Read the tables: train, test (not where it is to be cut of train) and possibly valid.

    Args:
        path: the option `dataset.path`.
        has_cut_part: whether `dataset.test_share` cuts a test part.
        with_valid: whether the validation table is read.
        decimal: the decimal mark of CSV files.
        problems: receives what is wrong; the tables that can be read are returned all the same.

    Raises:
        DataError: if there is no training table.
    """
    files = find_files(path)
    images = read_image_frames(files["images"]) if "images" in files else {}
    if images and "train" not in images:
        raise DataError(f"dataset.path={path} has no training images: they belong in train/<class>/*.png")
    has_test = "test" in (images or files)
    if has_test and has_cut_part:
        test = files.get("test", Path(path) / "test")
        problems.add(DataError(f"dataset.test_share must be null where there is a test part ({test})"))
    elif not has_test and not has_cut_part:
        train = f"{images['train'].table.num_rows:,} images" if images else files["train"].name
        valid = files.get("valid")
        hint = f"; rename {valid.name} to test{valid.suffix} if it is the test part" if valid else ""
        remedy = f"dataset.test_share=0.2 cuts a fifth of {train}, or write test.parquet or test.csv next to it{hint}"
        problems.add(DataError(f"dataset.path={path} has no test table: {remedy}"))
    frames: list[Frame] = []
    for split in PARTS:
        if split in (images or files) and not (split == "test" and has_cut_part) and (split != "valid" or with_valid):
            with problems.collect():
                frames.append(images[split] if images else read(files[split], decimal))
    if frames and not images:
        train_file, train_notes = files["train"], list(frames[0].notes)
        if train_file.stem != "train" and train_file.is_file():
            train_notes.insert(0, f"{train_file.name} is the training table")
        if "valid" in files and not with_valid:
            train_notes.append(f"{files['valid'].name} isn't read")
        frames[0] = replace(frames[0], notes=tuple(train_notes))
    return frames


def read_image_frames(folder: Path) -> dict[str, Frame]:
    """Return a folder of images as tables by part (train, test, valid), with the columns `image` and `label`."""
    frames = {}
    for part_name, images in imagefolder.list_images(folder).items():
        total = sum(image.file.stat().st_size for image in images)
        memory.require_memory(total, f"dataset.path: {folder} with {len(images):,} images", RESIZE_ADVICE)
        table = make_table(images, ("label",), folder, lambda image: image.file.read_bytes())
        frames[part_name] = Frame(str(folder / part_name), table)
    return frames
