"""Parquet tables whose columns are read when they are used, so that the file is never in memory as a whole.

A table is one file, or a folder of part files with the same columns, as Spark and Dask write them.
"""

from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

import pyarrow as pa

from fedcohort.errors import DataError
from fedcohort.host import parquet


def unreadable(file: Path, error: Exception) -> DataError:
    """Return the error for a file whose content does not have the format of its suffix."""
    if isinstance(error, MemoryError):
        size = file.stat().st_size / 1e9
        return DataError(f"dataset.path: {file} ({size:.3f} GB) needs more memory than is available: use fewer rows")
    reason, kind = str(error).splitlines()[0], "parquet" if file.suffix == ".parquet" else "csv"
    return DataError(f"dataset.path: {file} can't be read, it is truncated or no {kind} file: {reason}")


def list_parts(folder: Path) -> list[Path]:
    """Return the part files of a folder in the order of their names; hidden files and `_SUCCESS` are left out."""
    return sorted(file for file in folder.glob("*.parquet") if file.is_file() and file.name[0] not in "._")


class StoredTable:
    """The methods of a `pa.Table` that `Frame` uses, over a Parquet file or a folder of part files.

    Raises:
        DataError: for a file that can't be read, and for part files with different columns.
    """

    def __init__(self, path: Path) -> None:
        """Open the file, or the part files of the folder."""
        self._paths = list_parts(path) if path.is_dir() else [path]
        self._files = [_open(file) for file in self._paths]
        self.schema = self._files[0].schema_arrow
        self.column_names: list[str] = list(self.schema.names)
        for file, part in zip(self._paths[1:], self._files[1:], strict=True):
            if (names := list(part.schema_arrow.names)) != self.column_names:
                different = sorted(set(names) ^ set(self.column_names)) or names
                raise DataError(
                    f"dataset.path: {file} has columns other than {self._paths[0].name}: {', '.join(different[:9])}"
                )
        self._ends = list(accumulate(part.metadata.num_rows for part in self._files))
        self.num_rows: int = self._ends[-1]

    def locate(self, row: int) -> tuple[str, int]:
        """Return the part file that holds a row, as an addition to the folder's name, and the row's place in it."""
        if len(self._files) == 1:
            return "", row
        part = bisect_right(self._ends, row)
        return f"/{self._paths[part].name}", row - (self._ends[part - 1] if part else 0)

    def column(self, name: str) -> pa.ChunkedArray:
        """Return the column; dictionary-encoded values are decoded."""
        return pa.chunked_array(list(self.chunks(name)), type=_decoded_type(self.schema.field(name).type))

    def chunks(self, name: str) -> Iterator[pa.Array]:
        """Yield the column's pieces, one row group after the other; only one of them is in memory."""
        kind = _decoded_type(self.schema.field(name).type)
        for path, file in zip(self._paths, self._files, strict=True):
            for group in range(file.num_row_groups):
                try:
                    column = file.read_row_group(group, columns=[name]).column(name)
                except (pa.ArrowException, OSError) as error:
                    raise unreadable(path, error) from error
                yield from (column if column.type == kind else column.cast(kind)).chunks

    def take(self, rows: pa.Array) -> pa.Table:
        """Return these rows of all columns as a `pa.Table`."""
        columns = {name: self.column(name).take(rows) for name in self.column_names}
        return pa.table(columns, metadata=self.schema.metadata)


def _open(file: Path) -> Any:  # noqa: ANN401  pyarrow has no types
    try:
        # pre_buffer would hold the bytes of a whole file beside its columns.
        return parquet.open_file(file, pre_buffer=False)
    except (pa.ArrowException, OSError) as error:
        raise unreadable(file, error) from error


def _decoded_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind
