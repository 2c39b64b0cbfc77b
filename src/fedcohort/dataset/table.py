"""Reading tables: a folder with train and test files (Parquet or CSV), or a dataset of the Hugging Face hub.

Every error names the file, the column and, where one value is to blame, its row (counted from 0).
"""

import io
from dataclasses import dataclass
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


def text(option: str, value: Any, *, optional: bool = False) -> None:
    """Check that `value` is a text that is not empty."""
    if not (value is None and optional) and not (isinstance(value, str) and value.strip()):
        raise ranges.refuse(option, "text or null" if optional else "text", value)


def _is_number(kind: Any) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _is_list(kind: Any) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


@dataclass(frozen=True)
class Frame:
    """A table and where it comes from."""

    where: str
    table: Any

    @property
    def names(self) -> list[str]:
        return [str(name) for name in self.table.column_names]

    def column(self, name: str) -> Any:
        """The column, without nulls, or `DataError` with the columns that there are."""
        if name not in self.names:
            raise DataError(f"{self.where} has no column {name!r}; it has {', '.join(self.names)}")
        column = self.table[name]
        if column.null_count:
            raise self.blame(name, int(np.argmax(column.is_null().to_numpy())), "is empty")
        return column

    def blame(self, name: str, row: int, what: str) -> DataError:
        return DataError(f"{self.where}: column {name!r}, row {row} {what}")

    def is_number(self, name: str) -> bool:
        return _is_number(self.table.schema.field(name).type)

    def labels(self, name: str, n_classes: int | None = None) -> Ids:
        """int64 labels in [0, n_classes)."""
        column = self.column(name)
        if not pa.types.is_integer(column.type):
            raise DataError(f"{self.where}: column {name!r} must hold labels 0, 1, 2, ..., it holds {column.type}")
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
                raise DataError(f"{self.where}: column {name!r} must hold numbers, it holds {column.type}")
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
            raise DataError(
                f"{self.where}: column {name!r} must hold lists of numbers or images, it holds {column.type}"
            )
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
        raise DataError(f"{file} can't be read, it is truncated or no {file.suffix[1:]} file: {reason}") from error
    if table.num_rows == 0:
        raise DataError(f"{file} has no rows")
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


def hub(name: str) -> tuple[Frame, Frame]:
    """The splits `train` and `test` of a dataset of the Hugging Face hub (option dataset.hub)."""
    from datasets import load_dataset  # imports torch
    from datasets.exceptions import DatasetsError

    try:
        parts = load_dataset(name)
    except (OSError, ValueError, RuntimeError, DatasetsError) as error:
        raise DataError(
            f"dataset.hub={name} can't be loaded from the Hugging Face hub ({type(error).__name__}: {error}); without "
            "a network set dataset.path to a folder that holds train.parquet and test.parquet"
        ) from error
    missing = [part for part in ("train", "test") if part not in parts]
    if missing:
        raise DataError(f"dataset.hub={name} has no split {missing[0]!r}; it has {', '.join(parts)}")
    train, test = (Frame(f"{name} ({part})", parts[part].with_format("arrow")[:]) for part in ("train", "test"))
    return train, test
