"""Find and read the tables of a folder: train, test and valid, as Parquet or CSV files."""

import os
import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow as pa

from fedcohort.dataset import arrow_columns
from fedcohort.dataset.csv_file import read_csv, read_texts
from fedcohort.dataset.messages import join_names
from fedcohort.dataset.parquet import ParquetTable, check_distinct_names, parquet_files
from fedcohort.dataset.table import Frame
from fedcohort.errors import DataError
from fedcohort.host import memory
from fedcohort.paths import expand_home

TABLE_SUFFIXES = (".parquet", ".csv")


def read_table(file: Path, decimal_mark: str = "auto", option_name: str = "dataset.path") -> Frame:
    """Read a table from a Parquet or CSV file, or from a folder of Parquet files.

    Args:
        file: path of the file or folder.
        decimal_mark: decimal mark of CSV files: "point", "comma", or "auto" to recognise it.
        option_name: option that names the file, for messages.

    Raises:
        DataError: the file can't be read, or has no row.
    """
    is_parquet = file.suffix == ".parquet" or file.is_dir()
    try:
        table, format_notes = (ParquetTable(file), []) if is_parquet else read_csv(file, decimal_mark)
        if not is_parquet:
            format_notes += _check_csv_header(file, list(table.column_names))
        if table.num_rows == 0:
            raise DataError(f"dataset.path: {file} has no rows: add samples")
    except DataError as error:  # the readers of files name the option of most files
        raise DataError(str(error).replace("dataset.path", option_name, 1)) from error
    frame = Frame(str(file), table, option_name, notes=tuple(format_notes))
    return (
        replace(frame, locate_row=table.locate_row)
        if is_parquet
        else replace(frame, read_texts=partial(read_texts, file))
    )


def _check_csv_header(file: Path, header: list[str]) -> list[str]:
    """Return notes on suspicious column names of a CSV file: one if half or more of them are numbers, else [].

    Numbers get no note if they are the first names and count from 0, as pandas numbers columns.

    Args:
        file: the CSV file, for messages.
        header: column names in the file's first line.

    Raises:
        DataError: all names are numbers that don't count from 0, so that the file has no header; two names are equal;
            spaces separate columns.
    """
    check_distinct_names(file, header)
    if len(header) == 1 and " " in header[0]:
        raise DataError(f"dataset.path: {file} separates columns by spaces: separate them by commas")
    n_numeric_names = sum(
        re.fullmatch(arrow_columns.NUMBER_PATTERN, column_name.strip()) is not None for column_name in header
    )
    if 2 * n_numeric_names < len(header) or header[:n_numeric_names] == [str(k) for k in range(n_numeric_names)]:
        return []
    if n_numeric_names == len(header):
        raise DataError(
            f"dataset.path: {file} begins with numbers, but its first line must name the columns: add a line such as "
            "x0,x1,label"
        )
    return [f"its first line names the columns ({join_names(header, 3)})"]


def release_unused_memory() -> None:
    """Return the memory of deleted tables to the system, which Arrow and the C library would keep."""
    pa.default_memory_pool().release_unused()
    memory.return_memory_to_system()


def read_part_table(path: str, split_name: str, option_name: str = "dataset.path") -> Frame:
    """Read the table of one part of a dataset.

    Args:
        path: path of the folder that holds the parts.
        split_name: name of the part, such as train or test.
        option_name: option that names the folder, for messages.

    Raises:
        DataError: the folder has no table of this part, or the table can't be read.
    """
    if (file := find_part_file(path, split_name, option_name)) is None:
        raise DataError(
            f"{option_name}={path} needs {split_name}.parquet or {split_name}.csv; it holds "
            f"{list_contents(expand_home(path))}: add the file, or choose another folder"
        )
    return read_table(file, option_name=option_name)


def list_contents(folder: Path) -> str:
    """Return the names of the first 12 files and folders in `folder`, joined by commas; "nothing" if it is empty."""
    entry_names = sorted(path.name for path in folder.iterdir())
    return ", ".join([*entry_names[:12], *(["..."] if entry_names[12:] else [])]) or "nothing"


def find_part_file(path: str, split_name: str, option_name: str = "dataset.path") -> Path | None:
    """Return the file of one part of a dataset; None if the folder has no such file.

    Args:
        path: path of the folder.
        split_name: name of the part, such as train or test.
        option_name: option that names the folder, for messages.

    Raises:
        DataError: the folder or the file can't be read, or there are two files of the part.
    """
    folder = check_data_folder(path, option_name)
    files = [file for suffix in TABLE_SUFFIXES if os.path.lexists(file := folder / (split_name + suffix))]
    irregular_files = [file for file in files if not file.is_file() and not (file.is_dir() and parquet_files(file))]
    if irregular_files:
        raise DataError(
            f"{option_name}={path}: {irregular_files[0].name} "
            "is no regular file, or a broken link: it is not read, replace it"
        )
    if len(files) > 1:
        raise DataError(f"{option_name}={path} holds both {files[0].name} and {files[1].name}: move one of them away")
    return files[0] if files else None


def check_data_folder(path: str, option_name: str = "dataset.path") -> Path:
    """Return the folder at a path that a user typed.

    Args:
        path: path of the folder; `~` is the home folder.
        option_name: option that names the folder, for messages.

    Raises:
        DataError: the path leads to no folder, or the folder can't be read.
    """
    try:
        folder = expand_home(path)
        path_is_folder = folder.is_dir()
        if path_is_folder:
            os.scandir(folder).close()
    except (OSError, RuntimeError, ValueError) as error:  # forbidden, too long, or the home of an unknown user
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"{option_name}={path[:200]} can't be read: {reason}") from error
    if not path_is_folder or not path.strip():
        problem_text = (
            "this is no folder (archives must be unpacked)"
            if path.strip() and os.path.exists(folder)
            else f"there is no such file or folder (from {Path.cwd()})"
        )
        raise DataError(f"{option_name}={path[:200]}: {problem_text}")
    return folder
