"""Cut a long table, one row per time step, into windows: samples of several rows.

A window holds `window` consecutive rows of one series with one label and one client. Windows don't overlap. Rows at the
end of a series that fill no window are left out. Rows of a series are taken in the order of the file.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from fedcohort.dataset.table import Frame
from fedcohort.errors import DataError
from fedcohort.types import Ids


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
        encoded = pa.concat_arrays(frame.column(name).chunks).dictionary_encode(null_encoding="encode")
        codes = np.asarray(encoded.indices.to_numpy(zero_copy_only=False), dtype=np.int64)  # empty cells are equal
        changed[1:] |= codes[1:] != codes[:-1]
    return np.cumsum(changed)
