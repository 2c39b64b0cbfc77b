"""Read the natural clients of the rows of tables from a column of names or numbers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedcohort.dataset.table import Frame
from fedcohort.types import Ids


@dataclass(frozen=True)
class Owners:
    """The natural clients of the rows of two tables.

    Attributes:
        train: the client of each training row, int64 [N], numbered in the sorted order of names; None without a column.
        test: the client of each test row, int64 [N]; None without a column.
        names: names of the clients in the tables, by number.
    """

    train: Ids | None = None
    test: Ids | None = None
    names: Sequence[str] = ()


def read_owners(frames: Sequence[Frame], name: str | None) -> Owners:
    """Return the clients in the column `name`; no clients if it is None.

    frames: the training table, and possibly the test table, which may lack the column. Raises `DataError`.
    """
    if name is None:
        return Owners()
    frames = [frame for frame in frames if frame is frames[0] or name in frame.names]
    ids, names = read_clients(frames, [name] * len(frames))
    train, test = np.split(ids, [frames[0].table.num_rows])
    return Owners(train, test if len(frames) > 1 else None, tuple(map(str, names)))


def read_clients(frames: Sequence[Frame], columns: Sequence[str], what: str = "client") -> tuple[Ids, list[Any]]:
    """Return the client of each row, one table after the other, and the names of the clients.

    Args:
        frames: the tables.
        columns: for each table the column of clients.
        what: what the cells are, for messages.

    Returns:
        The clients, int64 [rows of all tables], numbered in the sorted order of names, and the sorted names.

    Raises:
        DataError: a cell is empty, or neither a text nor a whole number; the message names the row.
    """
    import pyarrow as pa

    chunks: list[Any] = []
    for frame, name in zip(frames, columns, strict=True):
        frame_chunks = list(frame.name_chunks(name, what))
        if chunks and chunks[0].type != frame_chunks[0].type:
            what = f": column {name!r} mixes texts and numbers with that of {frames[0].where}"
            raise frame.column_error(name, what)
        chunks += frame_chunks
    encoded = pa.concat_arrays(chunks).dictionary_encode() if chunks else pa.array([], pa.int64()).dictionary_encode()
    names = encoded.dictionary.to_pylist()
    number_of_name = {name: number for number, name in enumerate(sorted(names))}
    numbers = np.array([number_of_name[name] for name in names], dtype=np.int64)
    return numbers[encoded.indices.to_numpy()], sorted(names)
