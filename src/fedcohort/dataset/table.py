"""A table with its errors: each names the option, the file, the column and, where one value is wrong, its row.

Rows are counted from 0, without the header.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Float32

from fedcohort import ranges
from fedcohort.dataset import cells, images
from fedcohort.dataset.naming import list_names
from fedcohort.dataset.parquet import StoredTable
from fedcohort.dataset.problems import Problems, TableProblem
from fedcohort.host import memory
from fedcohort.types import Ids

ROW_NUMBERS = re.compile(r"|Unnamed: \d+(\.\d+)*|__index_level_\d+__")  # how pandas writes an index without a name


def text(option: str, value: object, *, optional: bool = False) -> None:
    """Check that `value` is a text that is not empty."""
    if not (value is None and optional) and not (isinstance(value, str) and value.strip()):
        raise ranges.refuse(option, "text or null" if optional else "text", value)


@dataclass(frozen=True)
class Frame:
    """A table and where it comes from.

    Attributes:
        where: the file, or the split of a dataset on the hub.
        table: a `pa.Table` or `StoredTable`.
        option: the option that names the table, for errors.
        named: the option that names a column, by column.
        renamed: the table's name of a column, by the dataset's name for it (`source.column_of`).
        rows: the row of the file that each row is, int64; None if the table has all rows.
        remedy: what a user can do about an empty cell; the end of an error message.
        for_numbers: what a user can do besides where the column holds numbers.
        revision: revision of the hub, `user/data@commit`; empty for a file.
        notes: how the file is written, where that differs from UTF-8 text with commas.
        locate: returns the part file of a row, as an addition to `where`, and the row's place in it; None for one file.
        derived: columns of numbers that were computed from the table's, by name.
    """

    where: str
    table: Any
    option: str = "dataset.path"
    named: Mapping[str, str] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)
    rows: Ids | None = None
    remedy: str = ""
    for_numbers: str = ""
    revision: str = ""
    notes: Sequence[str] = ()
    locate: Callable[[int], tuple[str, int]] | None = None
    derived: Mapping[str, pa.ChunkedArray] = field(default_factory=dict)

    @cached_property
    def names(self) -> list[str]:
        """The table's own columns, in order."""
        return [str(name) for name in self.table.column_names]

    @cached_property
    def _index_columns(self) -> set[str]:
        return set(cells.index_columns((self.table.schema.metadata or {}).get(b"pandas", b"{}")))

    def column(self, name: str) -> pa.ChunkedArray:
        """Return the column. Raises `DataError` with the names of all columns where there is none."""
        return self.derived[name] if name in self.derived else self.table.column(self._check_name(name))

    def chunks(self, name: str) -> Iterator[pa.Array]:
        """Yield the column's pieces; of a Parquet file only one row group is in memory."""
        if isinstance(self.table, StoredTable):
            return self.table.chunks(self._check_name(name))
        return iter(self.column(name).chunks)

    def _check_name(self, name: str) -> str:
        if self.table.schema.get_field_index(name) < 0:
            raise self.error(name, f" has no column {name!r}; it has {list_names(self.names)}")
        return name

    def require_full(self, name: str) -> pa.ChunkedArray:
        """Return the column. Raises `DataError` for an empty cell."""
        column = self.column(name)
        if (gap := cells.empty(column)).any():
            raise self.blame(name, int(gap.argmax()), "is empty" + count_more(gap), self.remedy)
        return column

    def take(self, rows: Ids) -> "Frame":
        """Return a frame of these rows only."""
        before = np.arange(self.table.num_rows) if self.rows is None else self.rows
        derived = {name: column.take(pa.array(rows)) for name, column in self.derived.items()}
        return replace(self, table=self.table.take(pa.array(rows)), rows=before[rows], derived=derived)

    def error(self, name: str, what: str) -> TableProblem:
        """Return an error about the column `name`, which begins with the option that names the column."""
        return TableProblem(f"{self.named.get(name, self.option)}: {self.where}{what}")

    def blame(self, name: str, row: int, what: str, remedy: str = "") -> TableProblem:
        """Return an error about one cell; of a folder of part files it names the part."""
        row, part = row if self.rows is None else int(self.rows[row]), ""
        if self.locate is not None:
            part, row = self.locate(row)
        option = self.named.get(name, self.option)
        return TableProblem(f"{option}: {self.where}{part}: column {name!r}, row {row} {what}", remedy)

    def type_of(self, name: str) -> pa.DataType:
        """Return the column's type; the values' type where it is dictionary-encoded."""
        kind = self.table.schema.field(name).type
        return kind.value_type if pa.types.is_dictionary(kind) else kind

    def is_number(self, name: str) -> bool:
        """Return whether the column holds numbers, possibly with a few cells that are none."""
        kind = self.type_of(name)
        return cells.is_number(kind) or (cells.is_text(kind) and cells.is_mixed(self.table.column(name)))

    def is_row_number(self, name: str) -> bool:
        """Return whether pandas wrote the column as an index: by its name, by the file's metadata, or its values."""
        if ROW_NUMBERS.fullmatch(name) or name in self._index_columns:
            return True
        if name != "index":
            return False
        column = self.table.column(name)
        return pa.types.is_integer(column.type) and bool(pc.count_distinct(column).as_py() == len(column))

    def numbers(self, names: list[str], *, gaps: bool = False) -> Float32[np.ndarray, "rows columns"]:
        """Return columns of numbers side by side.

        Args:
            names: the columns.
            gaps: whether a missing cell is NaN; otherwise it is an error.

        Raises:
            DataError: with one problem for each column that has missing cells or holds no numbers.
        """
        rows = self.table.num_rows
        what = f"{self.where} with {rows:,} rows of {len(names):,} numbers"
        memory.require_memory(4.0 * rows * len(names) + 8.0 * rows, what, "use fewer rows or columns")
        out = np.empty((rows, len(names)), dtype=np.float32)
        problems = Problems()
        for j, name in enumerate(names):
            with problems.collect():
                column = self.column(name)
                if not cells.may_be_numbers(column):
                    raise self.error(name, f": column {name!r} must hold numbers, it holds {column.type}")
                for place, piece in cells.pieces(column):
                    out[place, j] = cells.numbers(piece)
                if not gaps and (bad := np.isnan(out[:, j])).any():
                    row = int(bad.argmax())
                    what = cells.fault(column, row) + count_more(bad)
                    raise self.blame(name, row, what, self.remedy + self.for_numbers)
        problems.raise_all()
        return out

    def arrays(self, name: str, *, gaps: bool = False) -> np.ndarray:
        """Return a column of lists, [rows, ...], or of images, uint8 [rows, channels, height, width].

        Integers keep their type, other numbers are float32. Parquet files are read row group by row group.

        Args:
            name: the column.
            gaps: whether a missing number inside of a list is NaN; otherwise it is an error.

        Raises:
            DataError: for what is no list, and lists or images of different sizes.
        """
        out, start = np.empty((0,)), 0
        for chunk in self.chunks(name):
            if not len(chunk):
                continue
            part = self._read_chunk(name, chunk, start, gaps)
            if not start:
                size = float(part.nbytes) / len(part) * self.table.num_rows
                memory.require_memory(
                    size, f"{self.where} with {self.table.num_rows:,} rows", "use fewer or smaller rows"
                )
                out = np.empty((self.table.num_rows, *part.shape[1:]), part.dtype)
            elif part.shape[1:] != out.shape[1:]:
                mixed = images.MIXED if images.holds_images(chunk.type) else ""
                raise self.blame(name, start, f"is of {part.shape[1:]}, and the first of {out.shape[1:]}{mixed}")
            if part.dtype.kind == "f" and out.dtype.kind != "f":
                out = out.astype(np.float32)  # all chunks before this one held integers
            out[start : start + len(chunk)] = part
            start += len(chunk)
        return out

    def _read_chunk(self, name: str, chunk: pa.Array, start: int, gaps: bool) -> np.ndarray:
        """Return a chunk of lists or images as an array. start: the row of its first cell."""
        if (gap := cells.empty(pa.chunked_array([chunk]))).any():
            raise self.blame(name, start + int(gap.argmax()), "is empty", self.remedy)
        if images.holds_images(chunk.type):
            try:
                return images.decode(chunk, self.table.num_rows)
            except images.BadImage as error:
                raise self.blame(name, start + error.row, str(error)) from error
        array, dims = chunk, [len(chunk)]
        while cells.is_list(array.type):
            dims.append(self._check_length(name, array, len(array) // len(chunk), start))
            array = array.flatten()
        if len(dims) == 1 or not cells.is_number(array.type):
            raise self.error(name, f": column {name!r} must hold lists of numbers or images, it holds {chunk.type}")
        values = array.to_numpy(zero_copy_only=False).reshape(dims)
        if values.dtype.kind not in "iu":
            values = cells.short_numbers(array).reshape(dims)
            if not gaps and (bad := np.isnan(values.reshape(len(values), -1)).any(1)).any():
                what = "has a value that is missing, NaN or infinite" + count_more(bad)
                raise self.blame(name, start + int(bad.argmax()), what, self.remedy + self.for_numbers)
        return np.asarray(values)

    def _check_length(self, name: str, array: pa.Array, lists_per_row: int, start: int) -> int:
        """Return the length of all lists in `array`. Raises `DataError` if they differ."""
        lengths = pc.fill_null(pc.list_value_length(array), -1).to_numpy(zero_copy_only=False)
        if len(lengths) and lengths[0] == 0:
            raise self.blame(name, start, "is an empty list")
        if (lengths != lengths[0]).any():
            row = start + int((lengths != lengths[0]).argmax()) // lists_per_row
            raise self.blame(name, row, "has a list of another length than the first: pad or cut the lists")
        return int(lengths[0])


def count_more(bad: np.ndarray) -> str:
    """Return ` (and 3 more rows)` for the rows besides the first that are bad; empty without any. bad: bool [rows]."""
    n_further = int(np.count_nonzero(bad)) - 1
    return f" (and {n_further:,} more row{'s' * (n_further > 1)})" if n_further else ""
