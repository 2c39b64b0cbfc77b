"""Write small tables of random images in the format of the Hugging Face hub."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from PIL import Image

DATA_FOLDER = Path(__file__).resolve().parents[1] / ".." / "shared" / "data"


def encode_image(pixels: np.ndarray, kind: str = "PNG") -> dict[str, Any]:
    """Return an image as the Hugging Face hub stores it. pixels: uint8 [channels, height, width]."""
    buffer = io.BytesIO()
    Image.fromarray(pixels[0] if len(pixels) == 1 else pixels.transpose(1, 2, 0)).save(buffer, kind, compress_level=1)
    return {"bytes": buffer.getvalue(), "path": None}


def random_images(n: int, shape: Sequence[int], seed: int = 0) -> np.ndarray:
    """Return random images, uint8 [n, *shape]."""
    return np.random.default_rng(seed).integers(0, 256, (n, *shape)).astype(np.uint8)


def write_image_table(folder: Path, part: str, row_group: int = 7, **columns: Any) -> None:
    """Write one part of a dataset; columns that are None are omitted."""
    table = pa.table({name: column for name, column in columns.items() if column is not None})
    pa.parquet.write_table(table, folder / f"{part}.parquet", row_group_size=row_group)
