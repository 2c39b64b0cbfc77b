"""Write tables piece by piece, so that a piece, not a whole part, must fit into memory.

A plan is a list of pieces: rows of a part (train, valid, test). `write` writes the parts as <part>.parquet, compressed
by zstd. They appear in the folder when all of them are complete; an interrupted command leaves none and is repeated.

Existing files are never replaced. Nothing in the source is unpickled or executed.
"""

import os
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedcohort.errors import DataError
from fedcohort.host import disk, parquet

ROWS = 10_000  # of a row group
NAMES = ("train", "valid", "test", "vocabulary")


@dataclass(frozen=True)
class Piece:
    """Rows of a part.

    Attributes:
        part: "train", "test" or "valid".
        make: returns the rows, a `pa.Table`.
    """

    part: str
    make: Callable[[], Any]


def write(
    pieces: Sequence[Piece], destination: Path, report: Callable[[str, int, int], None], unique: str = ""
) -> dict[str, int]:
    """Write the parts; return the number of rows of each part.

    Args:
        pieces: the plan.
        destination: the folder to write to.
        report: called with a part, the number of finished pieces and the number of all pieces.
        unique: a column whose values may occur in one piece of a part only; empty for none.

    Raises:
        DataError: if the destination holds such files already, or the pieces of a part do not fit together.
    """
    if os.path.lexists(destination) and not destination.is_dir():
        raise DataError(f"{destination} is not a folder: name another one")
    for name in NAMES:
        if existing := next(destination.glob(f"{name}.*"), None):
            raise DataError(f"{destination} holds {existing.name}, which is not replaced: name another folder")
    destination.mkdir(parents=True, exist_ok=True)
    rows, writers, earlier_values = Counter[str](), dict[str, Any](), set[tuple[str, object]]()
    with ExitStack() as files, ExitStack() as open_writers:  # the writers are closed before the files get their names
        for number, piece in enumerate(pieces, 1):
            table, target = piece.make(), destination / f"{piece.part}.parquet"
            if piece.part not in writers:
                draft = files.enter_context(disk.replace_atomically(target))
                writer = parquet.open_writer(draft, table.schema, compression="zstd")
                writers[piece.part] = open_writers.enter_context(writer)
            if not table.schema.equals(schema := writers[piece.part].schema):
                raise DataError(
                    f"{target.name}: all parts must have the columns {schema.names} with the same types, and one has "
                    f"{table.schema}"
                )
            values = {(piece.part, value) for value in table.column(unique).unique().to_pylist()} if unique else set()
            if repeated := next(iter(sorted(values & earlier_values)), None):
                raise DataError(f"{target.name}: {unique} {repeated[1]!r} has samples in two files of the source")
            earlier_values |= values
            writers[piece.part].write_table(table, row_group_size=ROWS)
            rows[piece.part] += table.num_rows
            report(piece.part, number, len(pieces))
    return dict(rows)
