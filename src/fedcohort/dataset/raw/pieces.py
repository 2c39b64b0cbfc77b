"""Write tables piece by piece, so that an interrupted command can resume.

A plan is a list of pieces: rows of a part (train, valid, test), in an order that depends only on the source. `write`
saves each piece as <destination>/unfinished-<digest>/<part>-<number>.parquet, which is complete or absent. It then
joins them to <part>.parquet, compressed by zstd, and writes prepared.json with the digest of the plan.

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

UNFINISHED, DONE_FILE = "unfinished-", "prepared.json"
ROWS_PER_GROUP = 10_000  # of a row group


@dataclass(frozen=True)
class Piece:
    """Rows of a part.

    Attributes:
        part: "train", "test" or "valid".
        key: names, sizes and times (`file_stamp`) of the source files. Pieces with equal keys have equal rows.
        make: returns the rows, a `pa.Table`.
    """

    part: str
    key: str
    make: Callable[[], Any]


def write(
    pieces: Sequence[Piece], destination: Path, report: Callable[[str, int, int], None], unique: str = ""
) -> dict[str, int]:
    """Write the parts that are missing; return the number of rows of each part.

    Args:
        pieces: the plan.
        destination: the folder to write to.
        report: called with a part, the number of finished pieces and the number of all pieces.
        unique: a column whose values may occur in one piece of a part only; empty for none.

    Tables that were deleted are written again. Raises `DataError` if the destination holds other data.
    """
    digest = hashlib.blake2b("\n".join(f"{p.part} {p.key}" for p in pieces).encode(), digest_size=16).hexdigest()
    folder = destination / f"{UNFINISHED}{digest}"
    rows_by_piece = _read_done(destination, digest)
    absent = [part for part in dict.fromkeys(p.part for p in pieces) if not (destination / f"{part}.parquet").is_file()]
    if rows_by_piece is not None and not absent:
        return rows_by_piece
    _check_free(destination, absent if rows_by_piece is not None else ["train", "valid", "test", "vocabulary"], folder)
    folder.mkdir(parents=True, exist_ok=True)
    files: dict[str, list[Path]] = {}
    for piece_number, piece in enumerate(pieces):
        file = folder / f"{piece.part}-{piece_number:06}.parquet"
        if not file.exists():
            _save(piece.make(), file)
        files.setdefault(piece.part, []).append(file)
        report(piece.part, piece_number + 1, len(pieces))
    rows = {part: _join(part_files, folder / f"{part}.parquet", unique) for part, part_files in files.items()}
    for part in absent:
        os.replace(folder / f"{part}.parquet", destination / f"{part}.parquet")
    with disk.replace_atomically(destination / DONE_FILE) as draft_path:
        draft_path.write_text(json.dumps({"plan": digest, "rows": rows}) + "\n")
    shutil.rmtree(folder)
    return rows


def file_stamp(file: Path) -> str:
    """Return the file's size in bytes and its modification time in ns."""
    status = file.stat()
    return f"{status.st_size} {status.st_mtime_ns}"


def _read_done(destination: Path, digest: str) -> dict[str, int] | None:
    """Return the number of rows of each finished part of this plan; None if `destination` has no finished data.

    Raises `DataError` for data of another plan, and for a file that this command did not write.
    """
    file = destination / DONE_FILE
    if not os.path.lexists(file):
        return None
    with suppress(OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        done_record: Any = json.loads(file.read_text()) if disk.is_file_or_folder(file) else None
        if done_record["plan"] == digest:
            return {str(part_name): int(n_rows) for part_name, n_rows in done_record["rows"].items()}
    what = "holds data that were prepared from another source or with other options: name another folder"
    raise DataError(f"{destination} {what}")


def _check_free(destination: Path, names: Sequence[str], folder: Path) -> None:
    """Raise `DataError` if `destination` is not a folder, or holds files or links in the way of this command."""
    if os.path.lexists(destination) and not destination.is_dir():
        raise DataError(f"{destination} is not a folder: name another one")
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise DataError(f"{folder} is not a folder that this command made: remove it, or name another folder")
    for name in names:
        if existing := next(destination.glob(f"{name}.*"), None):
            raise DataError(f"{destination} holds {existing.name}, which was not prepared here: name another folder")
    unfinished = destination.glob(UNFINISHED + 32 * "[0-9a-f]")
    if stale := next((path for path in unfinished if path != folder), None):
        raise DataError(f"{stale} is from another source or has other options: remove it, or name another folder")


def _save(table: Any, file: Path) -> None:  # noqa: ANN401  pyarrow has no types
    with disk.replace_atomically(file) as draft_path:
        parquet.write_table(table, draft_path, row_group_size=ROWS_PER_GROUP, compression="zstd")


def _join(files: Sequence[Path], target: Path, unique: str) -> int:
    """Write the row groups of all files into one, and return its rows.

    Raises `DataError` for columns that differ, for a damaged piece, and for a value of `unique` in two pieces.
    """
    import pyarrow as pa

    file, rows, first_file_of_client = files[0], 0, dict[str, Path]()
    try:
        schema = parquet.open_file(files[0]).schema_arrow
        with disk.replace_atomically(target) as draft, parquet.open_writer(draft, schema, compression="zstd") as writer:
            for file in files:
                stored_table = parquet.open_file(file, pre_buffer=False)
                if not stored_table.schema_arrow.equals(schema):
                    problem = f"{target.name}: all parts must have the columns {schema.names} with the same types"
                    raise DataError(f"{problem}, and one has {stored_table.schema_arrow}")
                for group in range(stored_table.num_row_groups):
                    table = stored_table.read_row_group(group)
                    for value in table.column(unique).unique().to_pylist() if unique else ():
                        if first_file_of_client.setdefault(value, file) != file:
                            raise DataError(f"{target.name}: {unique} {value!r} has samples in two files of the source")
                    writer.write_table(table)
                    rows += table.num_rows
    except (pa.ArrowException, EOFError) as error:
        problem_text = f"{file} is damaged ({str(error).splitlines()[0]})"
        raise DataError(f"{problem_text}: remove it and type the command again") from error
    return rows
