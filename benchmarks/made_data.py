"""Data of the layout and the size of those that are not at hand, with nothing in them: for times, not for accuracies.

Rows, classes, people and the sizes of images are the original's; images are a few hundred of noise, each many times.
"""

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

DISTINCT = 300  # images of a table
ROWS = 5_000  # of a row group
IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
WORDS = 10_000  # of Reddit's vocabulary

Columns = dict[str, Any]
Parts = dict[str, tuple[int, Callable[[np.ndarray], Columns]]]  # of each part: rows, and the columns of some of them


def make(word: str, folder: Path) -> None:
    """Write the tables that `dataset=<word>` reads."""
    parts, others = MAKERS[word](np.random.default_rng(0))
    for part, (n, columns_of) in parts.items():
        _write(folder / f"{part}.parquet", (pa.table(columns_of(rows)) for rows in _pieces(n)))
    for name, columns in others.items():
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")


def _pieces(n: int) -> Iterator[np.ndarray]:
    return (np.arange(start, min(n, start + ROWS)) for start in range(0, n, ROWS))


def _write(file: Path, tables: Iterator[pa.Table]) -> None:
    first = next(tables)
    with pq.ParquetWriter(file, first.schema, compression="zstd") as writer:
        for table in (first, *tables):
            writer.write_table(table)


def _noise(rng: np.random.Generator, shape: tuple[int, ...], kind: str = "PNG") -> Callable[[np.ndarray], pa.Array]:
    """Images of rows: one of DISTINCT, smooth enough for a codec to be of use. shape: height, width and channels."""
    encoded = []
    for _ in range(DISTINCT):
        coarse = rng.integers(0, 256, (max(2, shape[0] // 8), max(2, shape[1] // 8), *shape[2:]), dtype=np.uint8)
        buffer = io.BytesIO()
        Image.fromarray(coarse).resize((shape[1], shape[0])).save(buffer, kind)
        encoded.append({"bytes": buffer.getvalue(), "path": None})
    return lambda rows: pa.array([encoded[row % DISTINCT] for row in rows], IMAGE)


def _people(rng: np.random.Generator, n: int, people: int) -> np.ndarray:
    """Whose each row is: a fifth more or fewer each, nobody without one."""
    share = rng.uniform(0.8, 1.2, people)
    return np.sort(np.concatenate([np.arange(people), rng.choice(people, n - people, p=share / share.sum())]))


def _femnist(rng: np.random.Generator) -> tuple[Parts, dict[str, Columns]]:
    image, owner, y = _noise(rng, (28, 28)), _people(rng, 805_263, 3_550), rng.integers(0, 62, 805_263)
    return {"train": (805_263, lambda r: {"image": image(r), "character": y[r], "writer_id": owner[r]})}, {}


def _emnist(rng: np.random.Generator) -> tuple[Parts, dict[str, Columns]]:
    image = _noise(rng, (28, 28))

    def columns_of(rows: np.ndarray) -> Columns:
        return {"image": image(rows), "label": rows % 62}

    return {"train": (697_932, columns_of), "test": (116_323, columns_of)}, {}


def _celeba(rng: np.random.Generator) -> tuple[Parts, dict[str, Columns]]:
    image, owner = _noise(rng, (218, 178, 3), "JPEG"), _people(rng, 202_599, 10_177)
    y = rng.integers(0, 2, 202_599)
    return {"train": (202_599, lambda r: {"image": image(r), "Smiling": y[r], "celeb_id": owner[r]})}, {}


def _cifar100(rng: np.random.Generator) -> tuple[Parts, dict[str, Columns]]:
    image = _noise(rng, (32, 32, 3))

    def columns_of(rows: np.ndarray) -> Columns:
        return {"img": image(rows), "fine_label": rows % 100}

    return {"train": (50_000, columns_of), "test": (10_000, columns_of)}, {}


def _waterbirds(rng: np.random.Generator) -> tuple[Parts, dict[str, Columns]]:
    image = _noise(rng, (375, 500, 3), "JPEG")
    groups = {"train": (3_498, 184, 56, 1_057), "valid": (467, 466, 133, 133), "test": (2_255, 2_255, 642, 642)}

    def columns_of(sizes: tuple[int, ...]) -> Callable[[np.ndarray], Columns]:
        group = rng.permutation(np.repeat(np.arange(4), sizes))
        return lambda rows: {"image": image(rows), "y": group[rows] // 2, "place": group[rows] % 2}

    return {part: (sum(sizes), columns_of(sizes)) for part, sizes in groups.items()}, {}


def _spawrious(rng: np.random.Generator) -> tuple[Parts, dict[str, Columns]]:
    image = _noise(rng, (224, 224, 3), "JPEG")
    breeds = np.array(["bulldog", "corgi", "dachshund", "labrador"])
    places = np.array(["beach", "desert", "dirt", "jungle", "mountain", "snow"])

    def columns_of(rows: np.ndarray) -> Columns:
        return {"image": image(rows), "label": breeds[rows % 4], "place": places[rows // 4 % 6]}

    return {"train": (4 * 6 * 6_336, columns_of)}, {}


def _reddit(rng: np.random.Generator) -> tuple[Parts, dict[str, Columns]]:
    """Words as often as Zipf's law has them; each sequence a comment of nine."""
    words = np.array([f"w{i}" for i in range(WORDS)])
    often = 1 / np.arange(1, WORDS + 1)

    def columns_of(n: int) -> tuple[int, Callable[[np.ndarray], Columns]]:
        owner, text = _people(rng, n, 813), rng.choice(WORDS, (n, 9), p=often / often.sum())

        def columns(rows: np.ndarray) -> Columns:
            said = words[text[rows]].tolist()
            x, y = ([[*before, *row, *after] for row in said] for before, after in (((BOS,), ()), ((), (EOS,))))
            return {"client": owner[rows], "x": x, "y": y}

        return n, columns

    return {"train": columns_of(29_412), "test": columns_of(3_268)}, {"vocabulary": {"word": [BOS, EOS, *words]}}


def _shakespeare(rng: np.random.Generator) -> tuple[Parts, dict[str, Columns]]:
    """Sequences of 80 characters and the next one, as many as LEAF makes of the plays."""
    owner, letters = _people(rng, 4_226_158, 1_129), np.frombuffer(b"abcdefghijklmnopqrstuvwxyz ,.", dtype=np.uint8)

    def texts(n: int, length: int) -> pa.Array:
        ends, characters = np.arange(0, n * length + 1, length, dtype=np.int32), rng.choice(letters, n * length)
        return pa.StringArray.from_buffers(n, pa.py_buffer(ends), pa.py_buffer(characters))

    def columns_of(rows: np.ndarray) -> Columns:
        return {"client": owner[rows], "x": texts(len(rows), 80), "y": texts(len(rows), 1)}

    return {"train": (len(owner), columns_of)}, {}


BOS, EOS = "<BOS>", "<EOS>"
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
