"""Cut a long table, one row per time step, into windows: samples of several rows.

A window holds `window` consecutive rows of one series with one label and one client. Windows don't overlap. Rows at the
end of a series that fill no window are left out. Rows of a series are taken in the order of the file.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from fedcohort.dataset import arrow_columns
from fedcohort.dataset.table import Frame
from fedcohort.errors import DataError
from fedcohort.types import Ids

MAX_COLUMNS = 40  # of a table that is looked at: each of them is compared with each other
MIN_STEPS = 8  # mean length of series, below which a table is not taken for a long one


def cut(frame: Frame, window: int, constant: Sequence[str]) -> tuple[Frame, str]:
    """Return the rows of whole windows, one after the other, and a note on how many rows are left out.

    Args:
        frame: the table.
        window: rows of a sample.
        constant: the columns of series, labels and clients, which don't change within a window.

    Raises:
        DataError: if no window is full.
    """
    block = number_blocks(frame, [name for name in constant if name in frame.names])
    sizes = np.bincount(block)
    step = np.arange(len(block)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    rows = np.flatnonzero(step < (sizes - sizes % window)[block])
    if not len(rows):
        raise DataError(
            f"dataset.window={window}: {frame.where} has no {window} consecutive rows of one "
            f"{', '.join(constant)}; the longest such series has {sizes.max()} rows"
        )
    skipped = len(block) - len(rows)
    note = f"{len(rows) // window:,} windows of {window} rows" + (f", {skipped:,} rows left out" if skipped else "")
    return frame.take(rows), note


def number_blocks(frame: Frame, names: Sequence[str]) -> Ids:
    """Return the number of the block that each row is in: a block ends where one of the columns changes its value."""
    changed = np.zeros(frame.table.num_rows, dtype=bool)
    for name in names:
        codes = _number_values(frame.column(name))
        changed[1:] |= codes[1:] != codes[:-1]
    return np.cumsum(changed)


def _number_values(column: pa.ChunkedArray) -> Ids:
    """Return equal numbers for equal cells, int64 [rows]; empty cells are equal."""
    encoded = pa.concat_arrays(column.chunks).dictionary_encode(null_encoding="encode")
    return np.asarray(encoded.indices.to_numpy(zero_copy_only=False), dtype=np.int64)


def find_series(frame: Frame, label: str) -> tuple[str, str] | None:
    """Return the columns of series and time of a table with a row for each time step; None for other tables.

    The column of series has each of its values in one block of rows with one label; blocks have MIN_STEPS rows or more
    on average. The column of time increases strictly within each block and mostly decreases between blocks.
    """
    if label not in frame.names or frame.table.num_rows < 2 * MIN_STEPS or len(frame.names) > MAX_COLUMNS:
        return None
    kinds = {name: frame.type_of(name) for name in frame.names if name != label}
    keys = [name for name, kind in kinds.items() if arrow_columns.is_text(kind) or pa.types.is_integer(kind)]
    times = [name for name, kind in kinds.items() if arrow_columns.is_number(kind) or arrow_columns.is_date(kind)]
    for key in keys:
        block = number_blocks(frame, [key])
        n = int(block[-1]) + 1
        if n < 2 or len(block) < MIN_STEPS * n or n != _number_values(frame.column(key)).max() + 1:
            continue
        if number_blocks(frame, [key, label])[-1] + 1 > n:
            continue
        inside = block[1:] == block[:-1]
        for time in times:
            column = frame.column(time)
            values = arrow_columns.days(column) if arrow_columns.is_date(column.type) else column
            step = np.diff(arrow_columns.numbers(values))
            if time != key and (step[inside] > 0).all() and (step[~inside] < 0).mean() > 0.5:
                return key, time
    return None
