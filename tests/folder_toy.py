"""Tables in a folder, and the dataset of them."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from fedcohort.dataset.folder import Folder
from yaml_words import node

DEFAULTS: dict[str, Any] = {name: value for name, value in node("dataset", "folder").items() if name != "_target_"}
THREES = [k % 3 for k in range(40)]  # labels


def folder(path: Path, **options: object) -> Folder:
    return Folder(**{**DEFAULTS, "path": str(path), **options})


def write(path: Path, part: str, **columns: object) -> None:
    pa.parquet.write_table(pa.table(columns), path / f"{part}.parquet")


def table(path: Path, n: int = 40, **columns: object) -> None:
    """Two equal parts of n rows with the classes 0, 1, 2 in turn."""
    for part in ("train", "test"):
        write(path, part, **{"x": np.arange(n) / n, "label": np.arange(n) % 3, **columns})


def at(values: Any, row: int, value: object) -> list[Any]:
    """`values` with another one in one place."""
    changed = list(values)
    changed[row] = value
    return changed
