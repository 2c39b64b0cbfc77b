"""Find and read the tables of `dataset.path`: a folder of tables, one table, Parquet files, or a folder of images."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from fedcohort.dataset.clients import keep_spellings
from fedcohort.dataset.files import check_data_folder, find_part_file, list_contents, read_table
from fedcohort.dataset.images import RESIZE_ADVICE
from fedcohort.dataset.messages import ErrorList
from fedcohort.dataset.parquet import parquet_files
from fedcohort.dataset.raw import imagefolder
from fedcohort.dataset.raw.encoded import make_image_table
from fedcohort.dataset.raw.source import IMAGE_SUFFIXES
from fedcohort.dataset.table import Frame
from fedcohort.errors import DataError
from fedcohort.host import memory
from fedcohort.paths import expand_home

TABLE_SUFFIXES = (".parquet", ".csv", ".tsv", ".txt", ".gz")
SPLIT_NAMES = ("train", "test", "valid")


def find_files_by_part(path: str) -> dict[str, Path]:
    """Return the files of a user's dataset by part: train, test and valid.

    A single table of any name is the training table. A folder of Parquet files is one table. A folder of images is
    returned as the single part `images`.

    Args:
        path: value of the option `dataset.path`.

    Raises:
        DataError: there is no table and no folder of images, or there are several tables without a training table.
    """
    if os.path.isfile(file := expand_home(path)):
        return {"train": file}
    folder = check_data_folder(path)
    file_by_part = {
        split_name: part_file
        for split_name in SPLIT_NAMES
        if (part_file := find_part_file(path, split_name)) is not None
    }
    if "train" in file_by_part:
        return file_by_part
    if file_by_part.get("test") != folder / "test.parquet" and _is_one_table_folder(folder):
        return {"train": folder}
    visible_files = [file for file in sorted(folder.iterdir()) if file.is_file() and file.name[0] not in "._"]
    visible_tables = [
        file for file in visible_files if file.suffix.lower() in TABLE_SUFFIXES and file not in file_by_part.values()
    ]
    if len(visible_tables) == 1:
        return {"train": visible_tables[0], **file_by_part}
    if not visible_tables and imagefolder.has_class_folders(folder):
        return {"images": folder}
    remedy = ""
    if visible_tables:
        remedy = (
            f"; name one of its tables, as dataset.path={visible_tables[0]}, or join parts of one table to train.csv"
        )
    elif any(path_in_folder.suffix.lower() in IMAGE_SUFFIXES for path_in_folder in folder.iterdir()):
        remedy = "; put the images into one folder for each class, as <class>/*.png"
    raise DataError(f"dataset.path={path} needs train.parquet or train.csv; it holds {list_contents(folder)}{remedy}")


def _is_one_table_folder(folder: Path) -> bool:
    """Return whether the Parquet files in `folder` have the names that Spark, Dask and pyarrow give to one table."""
    files = parquet_files(folder)
    top_level_files = [file for file in files if file.parent == folder]
    return bool(files) and all(file.name.startswith("part") or file.stem.isdecimal() for file in top_level_files)


def load_tables(
    path: str,
    draws_test_set: bool,
    reads_validation_table: bool,
    decimal_mark: str,
    id_columns: Sequence[str],
    error_list: ErrorList,
) -> list[Frame]:
    """Read the training table, and the test and validation tables if they exist.

    Args:
        path: value of the option `dataset.path`.
        draws_test_set: whether `dataset.test_share` cuts a test part from the training table; no test table is read.
        reads_validation_table: whether the validation table is read.
        decimal_mark: decimal mark of CSV files.
        id_columns: columns whose cells are names; in CSV files, names such as 007 remain texts.
        error_list: list to which problems are added; the tables that can be read are returned in any case.

    Raises:
        DataError: there is no training table, or no training image.
    """
    file_by_part = find_files_by_part(path)
    image_frames = read_image_frames(file_by_part["images"]) if "images" in file_by_part else {}
    if image_frames and "train" not in image_frames:
        raise DataError(f"dataset.path={path} has no training images: they belong in train/<class>/*.png")
    has_test_part = "test" in (image_frames or file_by_part)
    if has_test_part and draws_test_set:
        test_file = file_by_part.get("test", Path(path) / "test")
        error_list.add_data_error(
            DataError(f"dataset.test_share must be null: the data have a test part ({test_file})")
        )
    elif not has_test_part and not draws_test_set:
        train_text = f"{image_frames['train'].table.num_rows:,} images" if image_frames else file_by_part["train"].name
        valid_file = file_by_part.get("valid")
        rename_hint = (
            f"; rename {valid_file.name} to test{valid_file.suffix} if it is the test part" if valid_file else ""
        )
        remedy = f"dataset.test_share=0.2 cuts a fifth of {train_text}, or write test.parquet or test.csv next to it"
        error_list.add_data_error(DataError(f"dataset.path={path} has no test table: {remedy}{rename_hint}"))
    frames: list[Frame] = []
    for split_name in SPLIT_NAMES:
        is_part_read = {"train": True, "test": not draws_test_set, "valid": reads_validation_table}[split_name]
        if is_part_read and split_name in (image_frames or file_by_part):
            with error_list.collect_data_errors():
                frames.append(
                    image_frames[split_name] if image_frames else read_table(file_by_part[split_name], decimal_mark)
                )
    if frames and not image_frames:
        frames[0] = replace(frames[0], notes=_note_files(frames[0], file_by_part, reads_validation_table))
    for column in id_columns:
        frames = keep_spellings(frames, [column] * len(frames))
    return [replace(frame, read_texts=None) for frame in frames]


def _note_files(train_frame: Frame, file_by_part: Mapping[str, Path], reads_validation_table: bool) -> tuple[str, ...]:
    """Return the notes of the training table `train_frame`, and notes on unusual and unread files."""
    train_file, is_unread = file_by_part["train"], "valid" in file_by_part and not reads_validation_table
    is_other_name = train_file.stem != "train" and train_file.is_file()
    name_notes = [f"{train_file.name} is the training table"] if is_other_name else []
    return (*name_notes, *train_frame.notes, *([f"{file_by_part['valid'].name} isn't read"] if is_unread else []))


def read_image_frames(folder: Path) -> dict[str, Frame]:
    """Return the images in `folder` as tables by part (train, test, valid), with the columns `image` and `label`.

    Raises `DataError` if a part has no images, `OptionError` if the images need more memory than is available.
    """
    frames = {}
    for split_name, images in imagefolder.list_images_by_part(folder).items():
        n_image_bytes = sum(image.file.stat().st_size for image in images)
        memory.require_memory(n_image_bytes, f"dataset.path: {folder} with {len(images):,} images", RESIZE_ADVICE)
        image_table = make_image_table(images, ("label",), folder, lambda image: image.file.read_bytes())
        frames[split_name] = Frame(str(folder / split_name), image_table)
    return frames
