"""A Parquet file whose columns are read when they are asked for: no table stands in memory beside its inputs."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from fedcohort.errors import DataError
from fedcohort.host import parquet


def unreadable(file: Path, error: Exception) -> DataError:
    """What is told of a file that holds something else than its name says."""
    if isinstance(error, MemoryError):
        size = file.stat().st_size / 1e9
        return DataError(f"dataset.path: {file} ({size:.3f} GB) needs more memory than is available: use fewer rows")
    reason = str(error).splitlines()[0]
    return DataError(f"dataset.path: {file} can't be read, it is truncated or no {file.suffix[1:]} file: {reason}")


class StoredTable:
    """What `Frame` uses of a `pa.Table`, of the file. Raises `DataError` for what can't be read."""

    def __init__(self, file: Path) -> None:
        self._path = file
        try:
            # All of a file's bytes beside its columns (pre_buffer) are as much memory again.
            self._file = parquet.open_file(file, pre_buffer=False)
        except (pa.ArrowException, OSError) as error:
            raise unreadable(file, error) from error
        self.schema = self._file.schema_arrow
        self.column_names: list[str] = list(self.schema.names)
        self.num_rows: int = self._file.metadata.num_rows

    def column(self, name: str) -> pa.ChunkedArray:
        """The column as a `pa.ChunkedArray`; words that the file has once each are texts."""
        try:
            column = self._file.read(columns=[name]).column(name)
        except (pa.ArrowException, OSError) as error:
            raise unreadable(self._path, error) from error
        return _spelled_out(column)

    def chunks(self, name: str) -> Iterator[pa.Array]:
        """The column's pieces, one row group after the other; no two are held at a time."""
        for group in range(self._file.num_row_groups):
            try:
                column = self._file.read_row_group(group, columns=[name]).column(name)
            except (pa.ArrowException, OSError) as error:
                raise unreadable(self._path, error) from error
            yield from _spelled_out(column).chunks

    def take(self, rows: pa.Array) -> pa.Table:
        """These rows of all columns, as a `pa.Table`."""
        columns = {name: self.column(name).take(rows) for name in self.column_names}
        return pa.table(columns, metadata=self.schema.metadata)


def _spelled_out(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column with texts where it has numbers of words."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
