"""Reading tables: a folder with train and test files (Parquet or CSV).

Every error names the option, the file, the column and, where one value is to blame, its row (counted from 0).
"""

import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
from jaxtyping import Float32

from fedcohort import ranges
from fedcohort.errors import DataError
from fedcohort.types import Ids

KINDS = (".parquet", ".csv")
ROW_NUMBERS = re.compile(r"|Unnamed: \d+(\.\d+)*|__index_level_\d+__")  # how pandas writes an index without a name
SHOWN = 12  # columns that a line about a table names


def text(option: str, value: Any, *, optional: bool = False) -> None:
    """Check that `value` is a text that is not empty."""
    if not (value is None and optional) and not (isinstance(value, str) and value.strip()):
        raise ranges.refuse(option, "text or null" if optional else "text", value)


def _is_number(kind: Any) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _is_list(kind: Any) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def listed(names: Sequence[str], most: int = SHOWN) -> str:
    """`age, x0 ... x7, site`: numbered neighbours in short, and no more than `most` entries."""
    runs: list[list[str]] = []
    for name in names:
        if runs and _follows(runs[-1][-1], name):
            runs[-1].append(name)
        else:
            runs.append([name])
    entries = [entry for run in runs for entry in ([f"{run[0]} ... {run[-1]}"] if len(run) > 2 else run)]
    more = [f"{len(entries) - most} more"] if len(entries) > most else []
    return ", ".join([entry or "''" for entry in entries[:most]] + more)


def _follows(before: str, name: str) -> bool:
    found = [re.fullmatch(r"(.*?)(\d{1,9})", text) for text in (before, name)]
    if found[0] is None or found[1] is None:
        return False
    return found[0][1] == found[1][1] and int(found[1][2]) == int(found[0][2]) + 1


@dataclass(frozen=True)
class Frame:
    """A table and where it comes from.

    option: what named the table, for errors. named: the option that names a column, by column.
    """

    where: str
    table: Any
    option: str = "dataset.path"
    named: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        return [str(name) for name in self.table.column_names]

    def column(self, name: str) -> Any:
        """The column, without nulls, or `DataError` with the columns that there are."""
        if name not in self.names:
            raise self.error(name, f" has no column {name!r}; it has {listed(self.names)}")
        column = self.table[name]
        if column.null_count:
            raise self.blame(name, int(np.argmax(column.is_null().to_numpy())), "is empty")
        return column

    def error(self, name: str, what: str) -> DataError:
        """What is wrong with the column `name`, after the option that named it."""
        return DataError(f"{self.named.get(name, self.option)}: {self.where}{what}")

    def blame(self, name: str, row: int, what: str) -> DataError:
        return self.error(name, f": column {name!r}, row {row} {what}")

    def is_number(self, name: str) -> bool:
        return _is_number(self.table.schema.field(name).type)

    def is_row_number(self, name: str) -> bool:
        """Whether pandas wrote the column as an index: by its name, by the file's notes, or `index` without repeats."""
        notes = json.loads((self.table.schema.metadata or {}).get(b"pandas", b"{}"))
        if ROW_NUMBERS.fullmatch(name) or name in [i for i in notes.get("index_columns", []) if isinstance(i, str)]:
            return True
        column = self.table[name]
        return name == "index" and pa.types.is_integer(column.type) and pc.count_distinct(column).as_py() == len(column)

    def labels(self, name: str, n_classes: int | None = None) -> Ids:
        """int64 labels in [0, n_classes)."""
        column = self.column(name)
        if not pa.types.is_integer(column.type):
            raise self.error(name, f": column {name!r} must hold labels 0, 1, 2, ..., it holds {column.type}")
        labels: Ids = column.to_numpy().astype(np.int64)
        wrong = (labels < 0) if n_classes is None else (labels < 0) | (labels >= n_classes)
        if wrong.any():
            row = int(wrong.argmax())
            top = "" if n_classes is None else f" and at most {n_classes - 1}"
            raise self.blame(name, row, f"has label {labels[row]}; labels must be at least 0{top}")
        return labels

    def numbers(self, names: list[str]) -> Float32[np.ndarray, "rows columns"]:
        """Scalar columns side by side."""
        out = np.empty((self.table.num_rows, len(names)), dtype=np.float32)
        for j, name in enumerate(names):
            column = self.column(name)
            if not _is_number(column.type):
                raise self.error(name, f": column {name!r} must hold numbers, it holds {column.type}")
            out[:, j] = self._finite(name, column.to_numpy())
        return out

    def arrays(self, name: str) -> np.ndarray:
        """A column of lists, [rows, ...], or of images, uint8 [rows, channels, height, width].

        An image is what Hugging Face stores: a struct of its encoded bytes and its path.
        """
        column = self.column(name)
        if pa.types.is_struct(column.type) and column.type.get_field_index("bytes") >= 0:
            return self._images(name, column)
        array, dims = pa.concat_arrays(column.chunks), [len(column)]
        while _is_list(array.type):
            dims.append(self._length(name, array))
            array = array.flatten()
        if len(dims) == 1 or array.null_count or not _is_number(array.type):
            raise self.error(name, f": column {name!r} must hold lists of numbers or images, it holds {column.type}")
        return self._finite(name, array.to_numpy().reshape(dims))

    def _length(self, name: str, array: Any) -> int:
        lengths = pc.list_value_length(array).to_numpy(zero_copy_only=False)
        if (lengths != lengths[0]).any():
            raise self.blame(name, int((lengths != lengths[0]).argmax()), "has a list of another length than the first")
        return int(lengths[0])

    def _finite(self, name: str, values: np.ndarray) -> np.ndarray:
        if np.issubdtype(values.dtype, np.floating) and not np.isfinite(values).all():
            bad = ~np.isfinite(values.reshape(len(values), -1)).all(1)
            raise self.blame(name, int(bad.argmax()), "has a value that is NaN or infinite")
        return values

    def _images(self, name: str, column: Any) -> np.ndarray:
        encoded = (data.as_py() for chunk in column.chunks for data in chunk.field("bytes"))
        images = [self._image(name, row, data) for row, data in enumerate(encoded)]
        shape = images[0].shape
        for row, image in enumerate(images):
            if image.shape != shape:
                raise self.blame(name, row, f"is an image of {image.shape}, and the first is one of {shape}")
        return np.stack(images)

    def _image(self, name: str, row: int, data: bytes | None) -> np.ndarray:
        from PIL import Image

        try:
            with Image.open(io.BytesIO(data or b"")) as image:
                pixels = np.asarray(image if image.mode in ("L", "RGB") else image.convert("RGB"))
        except (OSError, ValueError, SyntaxError) as error:
            raise self.blame(name, row, f"is no image that can be read: {error}") from error
        return pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)


def read(file: Path) -> Frame:
    """One Parquet or CSV file."""
    try:
        table = pa.parquet.read_table(file) if file.suffix == ".parquet" else pa.csv.read_csv(file)
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(
            f"dataset.path: {file} can't be read, it is truncated or no {file.suffix[1:]} file: {reason}"
        ) from error
    if table.num_rows == 0:
        raise DataError(f"dataset.path: {file} has no rows")
    if twice := [name for name in table.column_names if table.column_names.count(name) > 1]:
        raise DataError(f"dataset.path: {file} has {len(twice)} columns called {twice[0]!r}")
    return Frame(str(file), table)


def local(path: str) -> tuple[Frame, Frame]:
    """The training and the test table of the folder `path` (option dataset.path)."""
    folder = Path(path).expanduser()
    if not folder.is_dir():
        raise DataError(f"dataset.path={path}: there is no such folder (from {Path.cwd()})")
    files = []
    for part in ("train", "test"):
        found = [folder / (part + kind) for kind in KINDS if (folder / (part + kind)).is_file()]
        if not found:
            holds = ", ".join(sorted(entry.name for entry in folder.iterdir())) or "nothing"
            raise DataError(f"dataset.path={path} needs {part}.parquet or {part}.csv; it holds {holds}")
        files.append(found[0])
    return read(files[0]), read(files[1])
