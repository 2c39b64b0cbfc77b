"""Random data with the layout and size of a dataset, to measure time and memory where its files are unavailable.

The numbers of rows, classes and users and the sizes of images are the original's. Each image is one of a few hundred
random ones. Accuracies on these data have no meaning.
"""

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

DISTINCT = 300  # different images in a table
ROWS = 5_000  # rows in a row group
IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
WORDS = 10_000  # size of Reddit's vocabulary

Columns = dict[str, Any]
Parts = dict[
    str, tuple[int, Callable[[np.ndarray], Columns]]
]  # for each part: number of rows, and columns of some rows


def write_tables(dataset: str, folder: Path) -> None:
    """Write random tables in the format that the dataset `word` reads."""
    parts, further_tables = MAKERS[dataset](np.random.default_rng(0))
    for part, (n, make_columns) in parts.items():
        _write(folder / f"{part}.parquet", (pa.table(make_columns(rows)) for rows in _row_groups(n)))
    for name, columns in further_tables.items():
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")


def _row_groups(n: int) -> Iterator[np.ndarray]:
    return (np.arange(start, min(n, start + ROWS)) for start in range(0, n, ROWS))


def _write(file: Path, tables: Iterator[pa.Table]) -> None:
    first = next(tables)
    with pq.ParquetWriter(file, first.schema, compression="zstd") as writer:
        for table in (first, *tables):
            writer.write_table(table)


def _noise_images(
    rng: np.random.Generator, shape: tuple[int, ...], kind: str = "PNG"
) -> Callable[[np.ndarray], pa.Array]:
    """Return a function from row numbers to encoded random images, smooth enough to compress.

    Args:
        rng: source of the pixels.
        shape: height, width and, for colour images, channels.
        kind: image format, PNG or JPEG.
    """
    encoded = []
    for _ in range(DISTINCT):
        coarse = rng.integers(0, 256, (max(2, shape[0] // 8), max(2, shape[1] // 8), *shape[2:]), dtype=np.uint8)
        buffer = io.BytesIO()
        Image.fromarray(coarse).resize((shape[1], shape[0])).save(buffer, kind)
        encoded.append({"bytes": buffer.getvalue(), "path": None})
    return lambda rows: pa.array([encoded[row % DISTINCT] for row in rows], IMAGE)


def _draw_owners(rng: np.random.Generator, n: int, n_owners: int) -> np.ndarray:
    """Return the user of each row, sorted; every user has at least one row, and expected counts differ by 20 %."""
    share = rng.uniform(0.8, 1.2, n_owners)
    return np.sort(np.concatenate([np.arange(n_owners), rng.choice(n_owners, n - n_owners, p=share / share.sum())]))


def _femnist(rng: np.random.Generator) -> tuple[Parts, dict[str, Columns]]:
    image, owner, y = _noise_images(rng, (28, 28)), _draw_owners(rng, 805_263, 3_550), rng.integers(0, 62, 805_263)
    return {"train": (805_263, lambda r: {"image": image(r), "character": y[r], "writer_id": owner[r]})}, {}


def _emnist(rng: np.random.Generator) -> tuple[Parts, dict[str, Columns]]:
    image = _noise_images(rng, (28, 28))

    def make_columns(rows: np.ndarray) -> Columns:
        return {"image": image(rows), "label": rows % 62}

    return {"train": (697_932, make_columns), "test": (116_323, make_columns)}, {}


def _celeba(rng: np.random.Generator) -> tuple[Parts, dict[str, Columns]]:
    image, owner = _noise_images(rng, (218, 178, 3), "JPEG"), _draw_owners(rng, 202_599, 10_177)
    y = rng.integers(0, 2, 202_599)
    return {"train": (202_599, lambda r: {"image": image(r), "Smiling": y[r], "celeb_id": owner[r]})}, {}


def _cifar100(rng: np.random.Generator) -> tuple[Parts, dict[str, Columns]]:
    image = _noise_images(rng, (32, 32, 3))

    def make_columns(rows: np.ndarray) -> Columns:
        return {"img": image(rows), "fine_label": rows % 100}

    return {"train": (50_000, make_columns), "test": (10_000, make_columns)}, {}


def _waterbirds(rng: np.random.Generator) -> tuple[Parts, dict[str, Columns]]:
    image = _noise_images(rng, (375, 500, 3), "JPEG")
    groups = {"train": (3_498, 184, 56, 1_057), "valid": (467, 466, 133, 133), "test": (2_255, 2_255, 642, 642)}

    def make_columns(sizes: tuple[int, ...]) -> Callable[[np.ndarray], Columns]:
        group = rng.permutation(np.repeat(np.arange(4), sizes))
        return lambda rows: {"image": image(rows), "y": group[rows] // 2, "place": group[rows] % 2}

    return {part: (sum(sizes), make_columns(sizes)) for part, sizes in groups.items()}, {}


def _spawrious(rng: np.random.Generator) -> tuple[Parts, dict[str, Columns]]:
    image = _noise_images(rng, (224, 224, 3), "JPEG")
    breeds = np.array(["bulldog", "corgi", "dachshund", "labrador"])
    places = np.array(["beach", "desert", "dirt", "jungle", "mountain", "snow"])

    def make_columns(rows: np.ndarray) -> Columns:
        return {"image": image(rows), "label": breeds[rows % 4], "place": places[rows // 4 % 6]}

    return {"train": (4 * 6 * 6_336, make_columns)}, {}


def _reddit(rng: np.random.Generator) -> tuple[Parts, dict[str, Columns]]:
    """Return comments of nine words, whose frequencies follow Zipf's law."""
    vocabulary = np.array([f"w{i}" for i in range(WORDS)])
    frequencies = 1 / np.arange(1, WORDS + 1)

    def make_columns(n: int) -> tuple[int, Callable[[np.ndarray], Columns]]:
        owner, text = _draw_owners(rng, n, 813), rng.choice(WORDS, (n, 9), p=frequencies / frequencies.sum())

        def columns(rows: np.ndarray) -> Columns:
            sentences = vocabulary[text[rows]].tolist()
            x, y = (
                [[*prefix, *row, *suffix] for row in sentences] for prefix, suffix in (((START,), ()), ((), (END,)))
            )
            return {"client": owner[rows], "x": x, "y": y}

        return n, columns

    return {"train": make_columns(29_412), "test": make_columns(3_268)}, {
        "vocabulary": {"word": [START, END, *vocabulary]}
    }


def _shakespeare(rng: np.random.Generator) -> tuple[Parts, dict[str, Columns]]:
    """Return sequences of 80 characters and the next character, as many as LEAF makes from the plays."""
    owner, letters = (
        _draw_owners(rng, 4_226_158, 1_129),
        np.frombuffer(b"abcdefghijklmnopqrstuvwxyz ,.", dtype=np.uint8),
    )

    def texts(n: int, length: int) -> pa.Array:
        offsets, characters = np.arange(0, n * length + 1, length, dtype=np.int32), rng.choice(letters, n * length)
        return pa.StringArray.from_buffers(n, pa.py_buffer(offsets), pa.py_buffer(characters))

    def make_columns(rows: np.ndarray) -> Columns:
        return {"client": owner[rows], "x": texts(len(rows), 80), "y": texts(len(rows), 1)}

    return {"train": (len(owner), make_columns)}, {}


START, END = "<BOS>", "<EOS>"
MAKERS: dict[str, Callable[[np.random.Generator], tuple[Parts, dict[str, Columns]]]] = {
    "emnist": _emnist,
    "femnist": _femnist,
    "celeba": _celeba,
    "cifar100": _cifar100,
    "waterbirds": _waterbirds,
    "spawrious": _spawrious,
    "reddit": _reddit,
    "shakespeare": _shakespeare,
}
