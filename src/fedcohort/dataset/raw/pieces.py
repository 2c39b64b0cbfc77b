"""Write tables piece by piece, so that an interrupted command can resume.

A plan is a list of pieces: rows of a part (train, valid, test), in an order that depends only on the source.
`write_tables` saves each piece as <destination>/unfinished-<digest>/<part>-<number>.parquet, complete or not at all. It
then joins them to <part>.parquet, compressed by zstd, and writes prepared.json with the digest of the plan.

The working folder is named after the digest, so that a plan resumes only its own pieces. Existing files are never
replaced. Nothing in the source is unpickled or executed.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedcohort.errors import DataError
from fedcohort.host import disk, parquet

UNFINISHED_FOLDER_PREFIX, PREPARATION_RECORD_FILE = "unfinished-", "prepared.json"
ROWS_PER_GROUP = 10_000  # of a row group


@dataclass(frozen=True)
class TablePiece:
    """Adjacent rows of a table to write, which are computed and saved together.

    Attributes:
        part: part of the dataset that the rows belong to: "train", "test" or "valid".
        source_version: names, sizes and times (`size_and_time`) of the source files. Equal versions have equal
            rows.
        make_table: function that returns the rows as a `pa.Table`.
    """

    part: str
    source_version: str
    make_table: Callable[[], Any]


def write_tables(
    table_pieces: Sequence[TablePiece],
    out_folder: Path,
    report_progress: Callable[[str, int, int], None],
    unique_column: str = "",
) -> dict[str, int]:
    """Write the planned tables that are missing, and return the number of rows of each part.

    Pieces that an interrupted command has finished are not computed again.

    Args:
        table_pieces: the rows of all tables, in their order.
        out_folder: folder to write to.
        report_progress: function that is called after each piece with its part, and the numbers of finished and of all
            pieces.
        unique_column: name of a column whose values may occur in one piece of a part only; empty for no such column.

    Raises:
        DataError: the folder holds other data, pieces contradict each other, or a saved piece is damaged.
    """
    plan_text = "\n".join(f"{table_piece.part} {table_piece.source_version}" for table_piece in table_pieces)
    plan_digest = hashlib.blake2b(plan_text.encode(), digest_size=16).hexdigest()
    work_folder = out_folder / f"{UNFINISHED_FOLDER_PREFIX}{plan_digest}"
    finished_row_counts = _read_finished_row_counts(out_folder, plan_digest)
    missing_part_names = [
        part
        for part in dict.fromkeys(table_piece.part for table_piece in table_pieces)
        if not (out_folder / f"{part}.parquet").is_file()
    ]
    if finished_row_counts is not None and not missing_part_names:
        return finished_row_counts
    table_names = ["train", "valid", "test", "vocabulary"] if finished_row_counts is None else missing_part_names
    _check_table_folder(out_folder, table_names, work_folder)
    work_folder.mkdir(parents=True, exist_ok=True)
    files_by_part: dict[str, list[Path]] = {}
    for piece_number, piece_to_write in enumerate(table_pieces):
        piece_file = work_folder / f"{piece_to_write.part}-{piece_number:06}.parquet"
        if not piece_file.exists():
            table = piece_to_write.make_table()
            with disk.write_file_atomically(piece_file) as draft_path:
                parquet.write_table(table, draft_path, row_group_size=ROWS_PER_GROUP, compression="zstd")
        files_by_part.setdefault(piece_to_write.part, []).append(piece_file)
        report_progress(piece_to_write.part, piece_number + 1, len(table_pieces))
    row_count_by_part = {
        split_name: _merge_piece_files(piece_files, work_folder / f"{split_name}.parquet", unique_column)
        for split_name, piece_files in files_by_part.items()
    }
    for split_name in missing_part_names:
        os.replace(work_folder / f"{split_name}.parquet", out_folder / f"{split_name}.parquet")
    with disk.write_file_atomically(out_folder / PREPARATION_RECORD_FILE) as draft_path:
        draft_path.write_text(json.dumps({"plan": plan_digest, "rows": row_count_by_part}) + "\n")
    shutil.rmtree(work_folder)
    return row_count_by_part


def size_and_time(file: Path) -> str:
    """Return the size in bytes and the modification time in nanoseconds of `file`, as text."""
    file_status = file.stat()
    return f"{file_status.st_size} {file_status.st_mtime_ns}"


def _read_finished_row_counts(out_folder: Path, plan_digest: str) -> dict[str, int] | None:
    """Return the number of rows of each part that an earlier command wrote; None if it wrote none.

    Args:
        out_folder: folder of the tables.
        plan_digest: hash of the plan, which must be that of the earlier command.

    Raises:
        DataError: the folder holds data of another plan, or a record that can't be read.
    """
    record_file = out_folder / PREPARATION_RECORD_FILE
    if not os.path.lexists(record_file):
        return None
    with suppress(OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        prepared_record: Any = json.loads(record_file.read_text()) if disk.is_file_or_folder(record_file) else None
        if prepared_record["plan"] == plan_digest:
            return {str(split_name): int(n_rows) for split_name, n_rows in prepared_record["rows"].items()}
    raise DataError(
        f"{out_folder} holds data prepared from another source or with other options: choose another folder"
    )


def _check_table_folder(out_folder: Path, table_names: Sequence[str], work_folder: Path) -> None:
    """Raise `DataError` if `out_folder` is no folder, or holds other tables or pieces of another plan.

    Args:
        out_folder: folder to write to.
        table_names: names of the tables to write, without suffix.
        work_folder: folder for the unfinished pieces of this plan.
    """
    if os.path.lexists(out_folder) and not out_folder.is_dir():
        raise DataError(f"{out_folder} is not a folder: choose another")
    if work_folder.is_symlink() or (work_folder.exists() and not work_folder.is_dir()):
        raise DataError(f"{work_folder} is not a folder that this command made: remove it, or choose another folder")
    for table_name in table_names:
        if existing_file := next(out_folder.glob(f"{table_name}.*"), None):
            raise DataError(
                f"{out_folder} holds {existing_file.name}, which was not prepared here: choose another folder"
            )
    unfinished_folders = out_folder.glob(UNFINISHED_FOLDER_PREFIX + 32 * "[0-9a-f]")
    if other_plan_folder := next((path for path in unfinished_folders if path != work_folder), None):
        raise DataError(
            f"{other_plan_folder} was prepared from another source or with other options: remove it, or choose another"
        )


def _merge_piece_files(piece_files: Sequence[Path], joined_file: Path, unique_column: str) -> int:
    """Write the rows of all pieces of one part into one file, and return their number.

    Args:
        piece_files: Parquet files of the pieces, in order.
        joined_file: file to write.
        unique_column: name of a column whose values may occur in one piece only; empty for no such column.

    Raises:
        DataError: the columns of pieces differ, a piece is damaged, or a value of `unique_column` is in two pieces.
    """
    import pyarrow as pa

    piece_file, n_rows, first_file_by_client = piece_files[0], 0, dict[str, Path]()
    try:
        schema = parquet.open_file(piece_files[0]).schema_arrow
        with (
            disk.write_file_atomically(joined_file) as draft_path,
            parquet.open_parquet_writer(draft_path, schema, compression="zstd") as parquet_writer,
        ):
            for piece_file in piece_files:
                parquet_file = parquet.open_file(piece_file, pre_buffer=False)
                if not parquet_file.schema_arrow.equals(schema):
                    raise DataError(
                        f"{joined_file.name}: all parts must have the columns {schema.names} with the same types, but "
                        f"{piece_file.name} has {parquet_file.schema_arrow}"
                    )
                for row_group in range(parquet_file.num_row_groups):
                    row_group_table = parquet_file.read_row_group(row_group)
                    for unique_value in (
                        row_group_table.column(unique_column).unique().to_pylist() if unique_column else ()
                    ):
                        if first_file_by_client.setdefault(unique_value, piece_file) != piece_file:
                            raise DataError(
                                f"{joined_file.name}: {unique_column} {unique_value!r} has samples in two files "
                                "of the source: move them to one file, or change the value in one of them"
                            )
                    parquet_writer.write_table(row_group_table)
                    n_rows += row_group_table.num_rows
    except (pa.ArrowException, EOFError) as error:
        raise DataError(
            f"{piece_file} is damaged ({str(error).splitlines()[0]}): remove it and type the command again"
        ) from error
    return n_rows
