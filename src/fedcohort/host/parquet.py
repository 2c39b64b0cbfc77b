"""Parquet files whose pages have checksums, which are verified when the pages are read.

A page that has another checksum than was written is an error and no other value. Pages of older files have none, and
are read as they are. The footer has no checksum: a manifest's digest covers the whole file (`record/manifest.py`).
pyarrow is imported where a file is written or read.
"""

from pathlib import Path
from typing import IO, Any

import numpy as np


def make_column(values: np.ndarray) -> Any:  # noqa: ANN401 - pyarrow has no types
    """Return the `pyarrow.Array` of `values`, [n] of booleans, int32 or float64; NaN becomes null.

    `pyarrow.array` gives the same, but its first call imports pandas: 40 MB and half a second of each run.
    """
    import pyarrow as pa

    is_known = ~np.isnan(values)
    validity_bitmap = None if is_known.all() else pa.py_buffer(np.packbits(is_known, bitorder="little"))
    value_buffer = np.packbits(values, bitorder="little") if values.dtype == bool else np.ascontiguousarray(values)
    return pa.Array.from_buffers(
        pa.from_numpy_dtype(values.dtype), len(values), [validity_bitmap, pa.py_buffer(value_buffer)]
    )


def write_table(table: Any, file: Path | IO[bytes], **options: Any) -> None:  # noqa: ANN401 - pyarrow has no types
    """Write the `pyarrow.Table` `table` to `file` with checksums; `options` are pyarrow's, those of `write_table`."""
    import pyarrow.parquet as pq

    pq.write_table(table, file, write_page_checksum=True, **options)


def open_parquet_writer(file: Path, schema: Any, **options: Any) -> Any:  # noqa: ANN401
    """Return a `pyarrow.parquet.ParquetWriter` for tables with `schema` that are written to `file` one by one.

    `options` are those of the writer.
    """
    import pyarrow.parquet as pq

    return pq.ParquetWriter(file, schema, write_page_checksum=True, **options)


def open_file(file: Path | IO[bytes], **options: Any) -> Any:  # noqa: ANN401
    """Return a `pyarrow.parquet.ParquetFile`, whose pages are read from `file` when they are requested.

    `options` are those of the class.
    """
    import pyarrow.parquet as pq

    return pq.ParquetFile(file, page_checksum_verification=True, **options)
