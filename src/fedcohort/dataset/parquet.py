"""Parquet tables whose columns are read on access, so that the whole file is never in memory.

A table is one file, or a folder of files with the same columns, as Spark and Dask write them. The folder may be
partitioned into folders such as `year=2024`, which become a column `year`.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from fedcohort.errors import DataError
from fedcohort.host import memory, parquet

PARQUET_FORMAT = ds.ParquetFileFormat(  # pre_buffer would keep the bytes of a whole file in memory
    default_fragment_scan_options=ds.ParquetFragmentScanOptions(pre_buffer=False, page_checksum_verification=True)
)


def make_read_error(file: Path, error: Exception) -> DataError:
    """Return the error for a table that can't be read, with the reason.

    Args:
        file: path of the table.
        error: error that pyarrow raised.
    """
    if isinstance(error, MemoryError):
        file_gb = file.stat().st_size / 1e9
        return DataError(f"dataset.path: {file} ({file_gb:.3f} GB) needs more memory than is available: use fewer rows")
    file_format = "parquet" if file.suffix == ".parquet" else "csv"
    problem_text = f"can't be read, it is truncated or no {file_format} file: {str(error).splitlines()[0]}"
    return DataError(f"dataset.path: {file} {problem_text}; restore the file")


def check_distinct_names(file: Path, column_names: Sequence[str]) -> None:
    """Raise `DataError` if two columns of `file` have the same name.

    Args:
        file: path of the table, for the message.
        column_names: names of its columns.
    """
    if repeated_name := next((column for column in column_names if column_names.count(column) > 1), None):
        raise DataError(
            f"dataset.path: {file} has {column_names.count(repeated_name)} columns called {repeated_name!r}: rename one"
        )


def parquet_files(folder: Path) -> list[Path]:
    """Return the Parquet files of a folder and of its folders `name=value`, sorted, without hidden files."""
    table_files = [*folder.glob("*.parquet"), *folder.glob("*=*/**/*.parquet")]
    return sorted(file for file in table_files if file.is_file() and file.name[0] not in "._")


class ParquetTable:
    """A table in Parquet files whose columns are read on access, with the methods of a `pa.Table` that `Frame` uses.

    Attributes:
        schema: names and types of the columns.
        column_names: names of the columns.
        num_rows: number of rows in all files.
    """

    def __init__(self, path: Path) -> None:
        """Open a table without reading its rows.

        Args:
            path: a Parquet file, or a folder of Parquet files with the same columns.

        Raises:
            DataError: a file can't be read, two columns have the same name, or the files have different columns.
        """
        self._folder, self._files = path, parquet_files(path) if path.is_dir() else [path]
        file, file_paths = self._files[0], [str(file) for file in self._files]
        try:
            column_names = parquet.open_file(file).schema_arrow.names
            check_distinct_names(file, column_names)
            table = ds.dataset(file_paths, format=PARQUET_FORMAT, partitioning="hive", partition_base_dir=str(path))
            self.schema: pa.Schema = table.schema
            self._fragments = list(table.get_fragments())
            for file, fragment in zip(self._files, self._fragments, strict=True):
                if (file_columns := fragment.physical_schema.names) != column_names:
                    other_names = ", ".join((sorted(set(column_names) ^ set(file_columns)) or file_columns)[:9])
                    raise DataError(
                        f"dataset.path: {file} has other columns than {self._files[0].name}: {other_names}; all files "
                        "of a folder are one table and must have the same columns"
                    )
            self._ends = list(accumulate(fragment.count_rows() for fragment in self._fragments))
        except (pa.ArrowException, OSError) as error:
            raise make_read_error(file, error) from error
        self.column_names: list[str] = list(self.schema.names)
        self.num_rows: int = self._ends[-1]

    def locate_row(self, row: int) -> tuple[str, int]:
        """Return where a row of the table is stored.

        Args:
            row: number of the row, from 0.

        Returns:
            The file as "/" and its path in the folder, "" for a table of one file; and the row's number in this file.
        """
        file_number = bisect_right(self._ends, row)
        if self._files[file_number] == self._folder:
            return "", row
        return f"/{self._files[file_number].relative_to(self._folder)}", row - (
            self._ends[file_number - 1] if file_number else 0
        )

    def column(self, column: str) -> pa.ChunkedArray:
        """Return the column `column` with all its rows; dictionary-encoded values are decoded.

        Raises:
            DataError: a part of the column can't be read.
            OptionError: the column needs more memory than is available.
        """
        column_description = f"dataset.path: column {column!r} of {self._folder}"
        memory.require_memory(self._uncompressed_bytes[column], column_description, "use fewer rows")
        return pa.chunked_array(list(self.read_chunks(column)), type=find_value_type(self.schema.field(column).type))

    @cached_property
    def _uncompressed_bytes(self) -> Counter[str]:
        """Uncompressed bytes of each column by name, a lower bound of its size in memory."""
        bytes_by_column = Counter[str]()
        for fragment in self._fragments:
            row_groups = [fragment.metadata.row_group(i) for i in range(fragment.metadata.num_row_groups)]
            for column_chunk in (row_group.column(i) for row_group in row_groups for i in range(row_group.num_columns)):
                bytes_by_column[column_chunk.path_in_schema.partition(".")[0]] += column_chunk.total_uncompressed_size
        return bytes_by_column

    @cached_property
    def _row_groups_by_file(self) -> list[list[Any]]:
        """Row groups of each Parquet file, as fragments of pyarrow."""
        return [fragment.split_by_row_group() for fragment in self._fragments]

    def read_chunks(self, column: str) -> Iterator[pa.Array]:
        """Yield the column `column` in arrays of adjacent rows; a single row group is in memory at a time.

        Raises `DataError` if a part of the column can't be read.
        """
        column_schema = pa.schema([self.schema.field(column)])
        value_type = find_value_type(column_schema.field(column).type)
        for file_number, file in enumerate(self._files):
            try:
                for row_group in self._row_groups_by_file[file_number]:
                    yield from (
                        row_group.to_table(schema=column_schema, columns=[column])[column].cast(value_type).chunks
                    )
            except (pa.ArrowException, OSError) as error:
                raise make_read_error(file, error) from error

    def take(self, row_positions: pa.Array) -> pa.Table:
        """Return the rows at the positions `row_positions`, with all columns, as a `pa.Table`."""
        columns_by_name = {column: self.column(column).take(row_positions) for column in self.column_names}
        return pa.table(columns_by_name, metadata=self.schema.metadata)


def find_value_type(column_type: pa.DataType) -> pa.DataType:
    """Return the type of the values in a column of type `column_type`, also if they are dictionary-encoded."""
    return column_type.value_type if pa.types.is_dictionary(column_type) else column_type
