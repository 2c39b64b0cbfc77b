"""Tables that are written piece by piece, so that who was stopped goes on where it was.

    plan     pieces, each some rows of a part (train, test), in an order that depends on the source alone
    write    <destination>/unfinished/<part>-<number>.parquet, each whole or not there; then <part>.parquet of all of
             them, compressed by zstd, and prepared.json, which says of what

Nothing of the source is ever unpickled or executed.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedcohort.errors import DataError

UNFINISHED, DONE, PLAN = "unfinished", "prepared.json", "plan.json"
HALF = ".new"  # how a table is called while it is written
ROWS = 10_000  # of a row group


@dataclass(frozen=True)
class Piece:
    """Some rows of a part.

    Attributes:
        part: "train", "test" or "valid".
        key: names, sizes and times of what it is made of (`stamp`): equal keys, equal rows.
        make: makes them, a `pa.Table`.
    """

    part: str
    key: str
    make: Callable[[], Any]


def write(pieces: Sequence[Piece], destination: Path, report: Callable[[str, int, int], None]) -> dict[str, int]:
    """Write all parts, or what is missing of them; return the rows of each.

    report: is told a part, how many of the pieces are done, and of how many.

    Tables that have gone are made again. Raises `DataError` where the destination holds something else.
    """
    digest = hashlib.blake2b("\n".join(f"{p.part} {p.key}" for p in pieces).encode(), digest_size=16).hexdigest()
    parts, folder = list(dict.fromkeys(piece.part for piece in pieces)), destination / UNFINISHED
    done, begun = _read(destination / DONE), _read(folder / PLAN)
    if done is not None and done.get("plan") != digest:
        raise DataError(f"{destination} holds data that were prepared of something else: name another folder")
    if done is not None and all((destination / f"{part}.parquet").is_file() for part in parts):
        return {str(part): int(rows) for part, rows in done["rows"].items()}
    if begun is not None and begun.get("plan") != digest:
        raise DataError(f"{folder} is of another source, or of other options: remove it, or name another folder")
    if done is None and begun is None:
        _check_free(destination, parts)
    if begun is None:  # pieces without a plan are of anything
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / PLAN).write_text(json.dumps({"plan": digest}))
    files: dict[str, list[Path]] = {}
    for number, piece in enumerate(pieces):
        file = folder / f"{piece.part}-{number:06}.parquet"
        if not file.exists():
            _save(piece.make(), file)
        files.setdefault(piece.part, []).append(file)
        report(piece.part, number + 1, len(pieces))
    rows = {part: _join(own, destination / f"{part}.parquet") for part, own in files.items()}
    (destination / DONE).write_text(json.dumps({"plan": digest, "rows": rows}) + "\n")
    shutil.rmtree(folder)
    return rows


def stamp(file: Path) -> str:
    """The file's size, and when it was last written to."""
    found = file.stat()
    return f"{found.st_size} {found.st_mtime_ns}"


def _check_free(destination: Path, parts: Sequence[str]) -> None:
    """Raise `DataError` where there are tables of these parts that nobody prepared; what was half joined is none."""
    taken = [file.name for part in parts for file in destination.glob(f"{part}.*") if file.suffix != HALF]
    if taken:
        raise DataError(f"{destination} holds {taken[0]}, which was not prepared here: name another folder")


def _read(file: Path) -> dict[str, Any] | None:
    if not file.is_file():
        return None
    try:
        found: dict[str, Any] = json.loads(file.read_text())
    except ValueError:
        found = {}
    return found


def _save(table: Any, file: Path) -> None:  # noqa: ANN401  pyarrow has no types
    import pyarrow.parquet as pq

    new = file.with_suffix(HALF)
    pq.write_table(table, new, row_group_size=ROWS, compression="zstd")
    os.replace(new, file)


def _join(files: Sequence[Path], target: Path) -> int:
    """Write the row groups of all files into one, and return its rows. Raises `DataError` for columns that differ."""
    import pyarrow.parquet as pq

    new, rows, schema = target.with_suffix(HALF), 0, pq.read_schema(files[0])
    with pq.ParquetWriter(new, schema, compression="zstd") as writer:
        for file in files:
            stored = pq.ParquetFile(file, pre_buffer=False)
            if not stored.schema_arrow.equals(schema):
                raise DataError(f"{target.name}: rows of different kinds: {schema.names} and {stored.schema_arrow}")
            for group in range(stored.num_row_groups):
                table = stored.read_row_group(group)
                writer.write_table(table)
                rows += table.num_rows
    os.replace(new, target)
    return rows


def batched(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    """The items, so many at a time."""
    return (items[start : start + size] for start in range(0, len(items), size))
