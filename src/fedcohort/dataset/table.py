"""A table whose errors name the option, the file, the column and, where one value is wrong, its row.

Rows are counted from 0, without the header.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from jaxtyping import Float32

from fedcohort.dataset import arrow_columns, list_column
from fedcohort.dataset.messages import ErrorList, TableProblem, format_more_rows_text, join_names
from fedcohort.dataset.parquet import ParquetTable, find_value_type
from fedcohort.host import memory
from fedcohort.types import Ids

COLUMNS_PER_BLOCK = 4  # of a table of numbers, converted before they are copied to the matrix


@dataclass(frozen=True)
class Frame:
    """A table whose error messages name option, file, column and row, and end with a remedy.

    Attributes:
        origin: the file, or the split of a dataset on the hub.
        table: a `pa.Table` or `ParquetTable`.
        option: option that names the table, for errors.
        option_by_column: option that names a column, by column.
        column_renames: name of a column in the table, by its name in the dataset (`source.find_column`).
        row_ids: number of each row in the file, int64; None if the table has all rows of the file.
        remedy: what a user can do about an empty cell; the end of an error message.
        number_cell_remedy: what a user can also do if the column holds numbers.
        revision: revision of the hub, `user/data@commit`; empty for a file.
        notes: differences of the file from UTF-8 text with commas, such as its compression, and odd column names.
        locate_row: function that returns the file of a row, as an addition to `origin`, and the row's number in it;
            None for one file.
        read_texts: function that reads a column of a CSV file as texts, with its name as the argument; None for others.
        derived_columns: columns of numbers that were computed from other columns, by name.
    """

    origin: str
    table: Any
    option: str = "dataset.path"
    option_by_column: Mapping[str, str] = field(default_factory=dict)
    column_renames: Mapping[str, str] = field(default_factory=dict)
    row_ids: Ids | None = None
    remedy: str = ""
    number_cell_remedy: str = ""
    revision: str = ""
    notes: Sequence[str] = ()
    locate_row: Callable[[int], tuple[str, int]] | None = None
    read_texts: Callable[[str], pa.ChunkedArray] | None = None
    derived_columns: Mapping[str, pa.ChunkedArray] = field(default_factory=dict)

    @cached_property
    def names(self) -> list[str]:
        """Names of the table's columns, in order, without derived columns."""
        return [str(name) for name in self.table.column_names]

    def require_column(self, name: str) -> None:
        """Raise `DataError` if the table has no column `name`; the message lists the names of all columns."""
        if self.table.schema.get_field_index(name) < 0:
            raise self.column_error(name, f" has no column {name!r}; it has {join_names(self.names)}")

    def column(self, name: str) -> pa.ChunkedArray:
        """Return the column `name`, which may be a derived one. Raises `DataError` if the table has no such column."""
        if name in self.derived_columns:
            return self.derived_columns[name]
        self.require_column(name)
        return self.table.column(name)

    def read_filled_column(self, name: str) -> pa.ChunkedArray:
        """Return the column `name`. Raises `DataError` if a cell is empty; the message names the row."""
        cells = self.column(name)
        is_empty_cell = arrow_columns.find_empty_cells(cells)
        problem_text = "is empty" + format_more_rows_text(is_empty_cell)
        self.check_cells(name, is_empty_cell, lambda row: problem_text, remedy=self.remedy)
        return cells

    def read_chunks(self, name: str, *, allow_empty_cells: bool = False) -> Iterator[tuple[int, pa.Array]]:
        """Yield a column in arrays of adjacent rows, each with the number of its first row.

        Of a Parquet file a single row group is in memory at a time.

        Args:
            name: name of the column.
            allow_empty_cells: whether cells may be empty.

        Raises:
            DataError: the table has no such column, or a cell is empty.
        """
        self.require_column(name)
        chunk_start = 0
        for chunk in self.table.read_chunks(name) if isinstance(self.table, ParquetTable) else self.column(name).chunks:
            if not allow_empty_cells:
                is_empty_cell = arrow_columns.find_empty_cells(chunk)
                self.check_cells(name, is_empty_cell, lambda row: "is empty", chunk_start, self.remedy)
            if len(chunk):
                yield chunk_start, chunk
            chunk_start += len(chunk)

    def select_rows_at(self, row_positions: Ids) -> "Frame":
        """Return a frame with the rows at the positions `row_positions`, int64 [n], in this order."""
        file_row_ids = np.arange(self.table.num_rows) if self.row_ids is None else self.row_ids
        derived_columns = {name: cells.take(pa.array(row_positions)) for name, cells in self.derived_columns.items()}
        table, row_ids = self.table.take(pa.array(row_positions)), file_row_ids[row_positions]
        return replace(self, table=table, row_ids=row_ids, derived_columns=derived_columns)

    def column_error(self, name: str, problem_text: str) -> TableProblem:
        """Return an error about a column, which begins with the option that names the column.

        Args:
            name: name of the column.
            problem_text: end of the message, which follows the name of the file.
        """
        return TableProblem(f"{self.option_by_column.get(name, self.option)}: {self.origin}{problem_text}")

    def cell_error(self, name: str, row: int, problem_text: str, remedy: str = "") -> TableProblem:
        """Return an error about the cell of a column in one row, with the file that holds the row.

        Args:
            name: name of the column.
            row: position of the row in this frame.
            problem_text: what is wrong, to follow "row 3".
            remedy: end of the message.
        """
        row = row if self.row_ids is None else int(self.row_ids[row])
        file_text, row = ("", row) if self.locate_row is None else self.locate_row(row)
        option = self.option_by_column.get(name, self.option)
        return TableProblem(f"{option}: {self.origin}{file_text}: column {name!r}, row {row} {problem_text}", remedy)

    def check_cells(
        self, name: str, is_wrong: np.ndarray, describe_row: Callable[[int], str], first_row: int = 0, remedy: str = ""
    ) -> None:
        """Raise `DataError` for the first wrong cell of a column; do nothing if no cell is wrong.

        Args:
            name: name of the column.
            is_wrong: whether each cell is wrong, bool [rows].
            describe_row: function from a position in `is_wrong` to what is wrong there, to follow "row 3".
            first_row: row of the first cell of `is_wrong` in this frame.
            remedy: end of the message, what the user can do.
        """
        if is_wrong.any():
            wrong_row = int(is_wrong.argmax())
            raise self.cell_error(name, first_row + wrong_row, describe_row(wrong_row), remedy)

    def get_column_type(self, name: str) -> pa.DataType:
        """Return the type of the values in the column `name`."""
        return find_value_type(self.table.schema.field(name).type)

    def is_number_column(self, name: str) -> bool:
        """Return whether the column `name` holds numbers.

        A column of texts does if at least half of its cells, but not all, are numbers: the others may mark missing
        values. If all are numbers, they are codes that were quoted on purpose, and the column holds texts.
        """
        column_type = self.get_column_type(name)
        if arrow_columns.is_text_type(column_type):
            return 0.5 <= arrow_columns.share_of_numbers(self.table.column(name)) < 1
        return arrow_columns.is_number_type(column_type)

    def read_matrix(self, columns: Sequence[str], *, allow_missing: bool = False) -> Float32[np.ndarray, "n columns"]:
        """Return several columns of numbers as one array, float32 [rows, columns].

        Args:
            columns: names of the columns.
            allow_missing: whether a missing cell becomes NaN; otherwise it is an error.

        Raises:
            DataError: a column has missing cells or holds no numbers; problems of several columns are raised together.
        """
        n_rows = self.table.num_rows
        table_size_text = f"{self.origin} with {n_rows:,} rows of {len(columns):,} numbers"
        memory.require_memory(
            4.0 * n_rows * (len(columns) + COLUMNS_PER_BLOCK + 2), table_size_text, "use fewer rows or columns"
        )
        number_matrix = np.empty((n_rows, len(columns)), dtype=np.float32)
        column_problems = ErrorList()
        column_buffer = np.empty((min(COLUMNS_PER_BLOCK, len(columns)), n_rows), dtype=np.float32)
        for block_start in range(0, len(columns), COLUMNS_PER_BLOCK):
            block_columns = columns[block_start : block_start + COLUMNS_PER_BLOCK]
            for column_row, name in zip(column_buffer, block_columns, strict=False):
                with column_problems.collect_data_errors():
                    self.read_number_column(name, allow_missing=allow_missing, out=column_row)
            number_matrix[:, block_start : block_start + COLUMNS_PER_BLOCK] = column_buffer[: len(block_columns)].T
        column_problems.raise_collected_errors()
        return number_matrix

    def read_number_column(
        self, name: str, *, allow_missing: bool = False, out: np.ndarray | None = None
    ) -> np.ndarray:
        """Return a column of numbers, or of texts that are numbers, [rows].

        Args:
            name: name of the column.
            allow_missing: whether a missing cell becomes NaN; otherwise it is an error.
            out: array to which the numbers are written, float32 or float64 [rows]; None for a new one of float64.

        Raises:
            DataError: the column holds no numbers, or a cell is missing; the message names its row.
        """
        cells = self.column(name)
        if not arrow_columns.may_hold_numbers(cells):
            raise self.column_error(name, f": column {name!r} must hold numbers, but holds {cells.type}")
        cell_numbers = np.empty(len(cells)) if out is None else out
        numbers_by_chunk = np.split(cell_numbers, np.cumsum([len(chunk) for chunk in cells.chunks])[:-1])
        for chunk, chunk_numbers in zip(cells.chunks, numbers_by_chunk, strict=False):  # no copies of all rows
            chunk_numbers[:] = arrow_columns.as_float64(chunk)
        is_missing, remedy = np.isnan(cell_numbers) & (not allow_missing), self.remedy + self.number_cell_remedy
        more_rows_text = format_more_rows_text(is_missing)
        self.check_cells(
            name, is_missing, lambda row: arrow_columns.explain_missing_cell(cells, row) + more_rows_text, remedy=remedy
        )
        return cell_numbers

    def read_arrays(self, name: str, *, allow_missing: bool = False) -> np.ndarray:
        """Return a column of lists, [rows, ...], or of images, uint8 [rows, channels, height, width].

        Integers keep their type, other numbers are float32. Parquet files are read row group by row group.

        Args:
            name: name of the column.
            allow_missing: whether a missing number inside of a list becomes NaN; otherwise it is an error.

        Raises:
            DataError: the column holds other values, or lists or images of different sizes.
        """
        cells, n_rows = np.empty((0,)), self.table.num_rows
        for chunk_start, chunk in self.read_chunks(name):
            cell_block = list_column.read_list_chunk(self, name, chunk, chunk_start, cells.shape[1:], allow_missing)
            if not chunk_start:
                column_bytes = float(cell_block.nbytes) / len(cell_block) * n_rows
                memory.require_memory(column_bytes, f"{self.origin} with {n_rows:,} rows", "use fewer or smaller rows")
                cells = np.empty((n_rows, *cell_block.shape[1:]), cell_block.dtype)
            elif cell_block.shape[1:] != cells.shape[1:]:
                problem_text = f"has the shape {cell_block.shape[1:]}, but row 0 has {cells.shape[1:]}: make them equal"
                raise self.cell_error(name, chunk_start, problem_text)
            if cell_block.dtype.kind == "f" and cells.dtype.kind != "f":
                cells = cells.astype(np.float32)  # all chunks before this one held integers
            cells[chunk_start : chunk_start + len(chunk)] = cell_block
        return cells
