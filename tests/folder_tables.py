"""Write tables into a folder, and load them as dataset=folder."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from config_options import load_options
from fedcohort.dataset.folder import Folder

DEFAULTS: dict[str, Any] = {
    name: value for name, value in load_options("dataset", "folder").items() if name != "_target_"
}
LABELS = [k % 3 for k in range(40)]  # labels


def make_folder_dataset(path: Path, **options: object) -> Folder:
    return Folder(**{**DEFAULTS, "path": str(path), **options})


def write_part(path: Path, part: str, **columns: object) -> None:
    pa.parquet.write_table(pa.table(columns), path / f"{part}.parquet")


def write_both_parts(path: Path, n: int = 40, **columns: object) -> None:
    """Write equal training and test parts of n rows with the labels 0, 1, 2 in turn."""
    for part in ("train", "test"):
        write_part(path, part, **{"x": np.arange(n) / n, "label": np.arange(n) % 3, **columns})


def set_value(values: Any, row: int, value: object) -> list[Any]:
    """Return `values` with `value` in one row."""
    changed = list(values)
    changed[row] = value
    return changed
