"""Reading tables: a folder with train and test files (Parquet or CSV).

Every error names the option, the file, the column and, where one value is to blame, its row (counted from 0).
"""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from jaxtyping import Float32

from fedcohort import ranges
from fedcohort.dataset import cells, images
from fedcohort.dataset.encoding import check_utf8
from fedcohort.dataset.naming import list_names
from fedcohort.dataset.parquet import StoredTable, unreadable
from fedcohort.errors import DataError
from fedcohort.host import memory
from fedcohort.types import Ids

KINDS = (".parquet", ".csv")
CSV_SHRINKS = 4  # times at most that a number in a CSV is longer than in memory: 25 characters for 8 bytes
QUOTED = pa.csv.ParseOptions(newlines_in_values=True)  # line breaks in quotes, in files of any size
ROW_NUMBERS = re.compile(r"|Unnamed: \d+(\.\d+)*|__index_level_\d+__")  # how pandas writes an index without a name


def text(option: str, value: object, *, optional: bool = False) -> None:
    """Check that `value` is a text that is not empty."""
    if not (value is None and optional) and not (isinstance(value, str) and value.strip()):
        raise ranges.refuse(option, "text or null" if optional else "text", value)


@dataclass(frozen=True)
class Frame:
    """A table and where it comes from.

    Attributes:
        option: what named the table, for errors.
        named: the option that names a column, by column.
        renamed: what the table calls a column, by the name that a data set knows (`source.column_of`).
        rows: the row of the file that each row was, int64, None where they are all of it.
        remedy: what a user can do about an empty cell, which an error adds.
        for_numbers: and what else, where a number was meant.
        revision: of the hub, `user/data@commit`, empty for a file.
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

    @cached_property
    def names(self) -> list[str]:
        return [str(name) for name in self.table.column_names]

    @cached_property
    def _index(self) -> set[str]:
        return set(cells.index_columns((self.table.schema.metadata or {}).get(b"pandas", b"{}")))

    def column(self, name: str) -> pa.ChunkedArray:
        """The column, or `DataError` with the columns that there are."""
        return self.table.column(self._known(name))

    def chunks(self, name: str) -> Iterator[pa.Array]:
        """The column's pieces one after the other, of a file's row groups no two at a time."""
        if isinstance(self.table, StoredTable):
            return self.table.chunks(self._known(name))
        return iter(self.column(name).chunks)

    def _known(self, name: str) -> str:
        if self.table.schema.get_field_index(name) < 0:
            raise self.error(name, f" has no column {name!r}; it has {list_names(self.names)}")
        return name

    def require_full(self, name: str) -> pa.ChunkedArray:
        """The column, where no cell is empty."""
        column = self.column(name)
        if (gap := cells.empty(column)).any():
            raise self.blame(name, int(gap.argmax()), "is empty", self.remedy)
        return column

    def take(self, rows: Ids) -> "Frame":
        """Return these rows alone."""
        before = np.arange(self.table.num_rows) if self.rows is None else self.rows
        return replace(self, table=self.table.take(pa.array(rows)), rows=before[rows])

    def error(self, name: str, what: str) -> DataError:
        """What is wrong with the column `name`, after the option that named it."""
        return DataError(f"{self.named.get(name, self.option)}: {self.where}{what}")

    def blame(self, name: str, row: int, what: str, remedy: str = "") -> DataError:
        row = row if self.rows is None else int(self.rows[row])
        return self.error(name, f": column {name!r}, row {row} {what}{remedy}")

    def is_number(self, name: str) -> bool:
        """Whether the column holds numbers, a few bad cells among them or not."""
        kind = self.table.schema.field(name).type
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
        return cells.is_number(kind) or (cells.is_text(kind) and cells.is_mixed(self.table.column(name)))

    def is_row_number(self, name: str) -> bool:
        """Whether pandas wrote the column as an index: by its name, by the file's notes, or `index` without repeats."""
        if ROW_NUMBERS.fullmatch(name) or name in self._index:
            return True
        if name != "index":
            return False
        column = self.table.column(name)
        return pa.types.is_integer(column.type) and bool(pc.count_distinct(column).as_py() == len(column))

    def numbers(self, names: list[str], *, gaps: bool = False) -> Float32[np.ndarray, "rows columns"]:
        """Scalar columns side by side; gaps: missing cells are NaN, and no error."""
        rows = self.table.num_rows
        what = f"{self.where} with {rows:,} rows of {len(names):,} numbers"
        memory.require(4.0 * rows * len(names) + 8.0 * rows, what, "use fewer rows or columns")
        out = np.empty((rows, len(names)), dtype=np.float32)
        for j, name in enumerate(names):
            column = self.column(name)
            if not cells.may_be_numbers(column):
                raise self.error(name, f": column {name!r} must hold numbers, it holds {column.type}")
            for place, piece in cells.pieces(column):
                out[place, j] = cells.numbers(piece)
            if not gaps and (bad := np.isnan(out[:, j])).any():
                row = int(bad.argmax())
                raise self.blame(name, row, cells.fault(column, row), self.remedy + self.for_numbers)
        return out

    def arrays(self, name: str, *, gaps: bool = False) -> np.ndarray:
        """A column of lists, [rows, ...], or of images, uint8 [rows, channels, height, width].

        Whole numbers keep their type, others are float32; what a file holds is read row group by row group. gaps:
        numbers that are missing inside of lists are NaN, and no error.
        """
        out, start = np.empty((0,)), 0
        for chunk in self.chunks(name):
            if not len(chunk):
                continue
            part = self._arrays(name, chunk, start, gaps)
            if not start:
                size = float(part.nbytes) / len(part) * self.table.num_rows
                memory.require(size, f"{self.where} with {self.table.num_rows:,} rows", "use fewer or smaller rows")
                out = np.empty((self.table.num_rows, *part.shape[1:]), part.dtype)
            elif part.shape[1:] != out.shape[1:]:
                mixed = images.MIXED if images.holds_images(chunk.type) else ""
                raise self.blame(name, start, f"is of {part.shape[1:]}, and the first of {out.shape[1:]}{mixed}")
            if part.dtype.kind == "f" and out.dtype.kind != "f":
                out = out.astype(np.float32)  # whole numbers, until here
            out[start : start + len(chunk)] = part
            start += len(chunk)
        return out

    def _arrays(self, name: str, chunk: pa.Array, start: int, gaps: bool) -> np.ndarray:
        """The same of some rows alone. start: the first one's."""
        if (gap := cells.empty(pa.chunked_array([chunk]))).any():
            raise self.blame(name, start + int(gap.argmax()), "is empty", self.remedy)
        if images.holds_images(chunk.type):
            try:
                return images.decode(chunk, self.table.num_rows)
            except images.BadImage as error:
                raise self.blame(name, start + error.row, str(error)) from error
        array, dims = chunk, [len(chunk)]
        while cells.is_list(array.type):
            dims.append(self._length(name, array, len(array) // len(chunk), start))
            array = array.flatten()
        if len(dims) == 1 or not cells.is_number(array.type):
            raise self.error(name, f": column {name!r} must hold lists of numbers or images, it holds {chunk.type}")
        values = array.to_numpy(zero_copy_only=False).reshape(dims)
        if values.dtype.kind not in "iu":
            values = cells.short_numbers(array).reshape(dims)
            if not gaps and (bad := np.isnan(values.reshape(len(values), -1)).any(1)).any():
                what = "has a value that is missing, NaN or infinite"
                raise self.blame(name, start + int(bad.argmax()), what, self.remedy + self.for_numbers)
        return np.asarray(values)

    def _length(self, name: str, array: pa.Array, each: int, start: int) -> int:
        """That of all lists in `array`, of which there are `each` in a row."""
        lengths = pc.fill_null(pc.list_value_length(array), -1).to_numpy(zero_copy_only=False)
        if len(lengths) and lengths[0] == 0:
            raise self.blame(name, start, "is an empty list")
        if (lengths != lengths[0]).any():
            row = start + int((lengths != lengths[0]).argmax()) // each
            raise self.blame(name, row, "has a list of another length than the first")
        return int(lengths[0])


def read(file: Path) -> Frame:
    """Read one Parquet or CSV file."""
    if file.suffix == ".csv":
        check_utf8(file)
        size = file.stat().st_size
        what = f"dataset.path: {file} ({size / 1e9:.1f} GB)"
        memory.require(size / CSV_SHRINKS, what, "write it as Parquet, or use fewer rows")
    try:
        table = StoredTable(file) if file.suffix == ".parquet" else pa.csv.read_csv(file, parse_options=QUOTED)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise unreadable(file, error) from error
    names = list(table.column_names)
    if file.suffix == ".csv" and len(names) == 1 and (separator := next((s for s in ";\t| " if s in names[0]), "")):
        raise DataError(f"dataset.path: {file} separates columns by {separator!r}: separate them by commas")
    if table.num_rows == 0:
        raise DataError(f"dataset.path: {file} has no rows")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"dataset.path: {file} has {names.count(twice)} columns called {twice!r}")
    return Frame(str(file), table)


def give_back() -> None:
    """Return the memory of tables that are gone to the system: Arrow and the C library would keep it."""
    pa.default_memory_pool().release_unused()
    memory.give_back()


def part_of(path: str, part: str, option: str = "dataset.path") -> Frame:
    """The table `part` (train, test) of the folder `path`. Raises `DataError` where there is none."""
    if (file := file_of(path, part, option)) is None:
        holds = ", ".join(sorted(entry.name for entry in Path(path).expanduser().iterdir())) or "nothing"
        raise DataError(f"{option}={path} needs {part}.parquet or {part}.csv; it holds {holds}")
    return read(file)


def file_of(path: str, part: str, option: str = "dataset.path") -> Path | None:
    """The file of `part` in the folder `path`, None where there is none."""
    try:
        folder = Path(path).expanduser()
        is_folder = folder.is_dir()
        found = [file for kind in KINDS if os.path.lexists(file := folder / (part + kind))] if is_folder else []
        odd = next((file for file in found if not file.is_file()), None)
    except (OSError, RuntimeError, ValueError) as error:  # forbidden, too long, a user who is not there
        raise DataError(f"{option}={path[:200]} can't be read: {getattr(error, 'strerror', None) or error}") from error
    if not is_folder:
        raise DataError(f"{option}={path[:200]}: there is no such folder (from {Path.cwd()})")
    if odd is not None:
        raise DataError(f"{option}={path}: {odd.name} is no regular file, or a link to nothing: it is not read")
    if len(found) > 1:
        raise DataError(f"{option}={path} holds both {found[0].name} and {found[1].name}: move one of them away")
    return found[0] if found else None
