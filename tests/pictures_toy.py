"""Small tables of images of the layouts that data sets of images have."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from PIL import Image

SHARED = Path(__file__).resolve().parents[1] / ".." / "shared" / "data"


def encode(pixels: np.ndarray, kind: str = "PNG") -> dict[str, Any]:
    """As the Hugging Face hub stores an image. pixels: uint8 [channels, height, width]."""
    buffer = io.BytesIO()
    Image.fromarray(pixels[0] if len(pixels) == 1 else pixels.transpose(1, 2, 0)).save(buffer, kind)
    return {"bytes": buffer.getvalue(), "path": None}


def noise(n: int, shape: Sequence[int], seed: int = 0) -> np.ndarray:
    """uint8 [n, *shape]."""
    return np.random.default_rng(seed).integers(0, 256, (n, *shape)).astype(np.uint8)


def write(folder: Path, part: str, row_group: int = 7, **columns: Any) -> None:
    """Write a part; a column that is None is left out."""
    table = pa.table({name: column for name, column in columns.items() if column is not None})
    pa.parquet.write_table(table, folder / f"{part}.parquet", row_group_size=row_group)
