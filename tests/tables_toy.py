"""Small tables in the layouts of the bundled datasets."""

import importlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from hydra.utils import get_class

from fedcohort.dataset.image_dataset import ImageLayout
from fedcohort.dataset.shakespeare import SEQUENCE_LENGTH
from fedcohort.dataset.uci_har import SIGNALS, WINDOW_LENGTH
from pictures_toy import encode, noise
from reddit_toy import WORDS, sequences
from roles_toy import lines
from yaml_words import list_options, node

N = 24
Tables = Mapping[str, Mapping[str, list[Any]]]  # a part's columns


def pictures_of(word: str) -> Any:
    """Return the module of an image dataset; None for other datasets."""
    module = importlib.import_module(node("dataset", word)["_target_"].rpartition(".")[0])
    return module if isinstance(getattr(module, "LAYOUT", None), ImageLayout) else None


MODULES = {word: module for word in list_options("dataset") if (module := pictures_of(word)) is not None}


def shape_of(pictures: ImageLayout) -> tuple[int, int, int]:
    """Return the shape of stored images; small if the dataset resizes them."""
    return (pictures.image_format.shape[0], 20, 24) if pictures.image_format.resize else pictures.image_format.shape


def images(word: str, **changes: Any) -> dict[str, Any]:
    """Return the columns of one part: alternating labels 0 and 1, four clients, and places in pairs of rows."""
    module = MODULES[word]
    pictures: ImageLayout = module.LAYOUT
    columns: dict[str, Any] = {
        pictures.image_columns[0]: [encode(image) for image in noise(N, shape_of(pictures))],
        pictures.label_columns[0]: [i % 2 for i in range(N)],
    }
    if client_columns := getattr(get_class(node("dataset", word)["_target_"]), "client", ()):
        columns[client_columns[0]] = [f"f{i // 6:02}" for i in range(N)]
    if hasattr(module, "PLACES"):
        columns["place"] = [i // 2 % 2 for i in range(N)]
    return {**columns, **changes}


def _digits(n: int) -> dict[str, list[Any]]:
    return {"image": list(noise(n, (784,))), "label": [i % 10 for i in range(n)]}


def _dogs() -> dict[str, list[Any]]:
    rows = {"label": [i // 2 % 2 for i in range(N)], "place": [i % 2 for i in range(N)]}
    return {"image": [encode(image) for image in noise(N, (3, 8, 8))], **rows}


def _windows(first: int) -> dict[str, list[Any]]:
    signals = {name: list(noise(N, (WINDOW_LENGTH,), c) + 0.5) for c, name in enumerate(SIGNALS)}
    return {**signals, "label": [i % 6 for i in range(N)], "subject": [first + i % 3 for i in range(N)]}


def _play(first: int) -> dict[str, list[Any]]:
    rows = [(role, line) for role in ("R0", "R1") for line in lines(int(role[1:]), 30)[first : first + 9]]
    return {"role": [role for role, _ in rows], "line": [line for _, line in rows]}


def _characters() -> dict[str, list[Any]]:
    texts = [line[:SEQUENCE_LENGTH] for line in lines(3, N, SEQUENCE_LENGTH)]
    return {"client": [f"c{i % 3}" for i in range(N)], "x": texts, "y": [text[0] for text in texts]}


def _comments(seed: int) -> dict[str, list[Any]]:
    rng = np.random.default_rng(seed)
    cut = [(i % 3, sequences(rng.choice(WORDS, 15).tolist())) for i in range(12)]
    rows = [(f"u{who}", x, y) for who, (xs, ys) in cut for x, y in zip(xs, ys, strict=True)]
    return dict(zip(("client", "x", "y"), map(list, zip(*rows, strict=True)), strict=True))


OTHERS: Mapping[str, tuple[Tables, Mapping[str, Any]]] = {  # and options
    "emnist": ({"train": _digits(30), "test": _digits(20)}, {"kind": "digits"}),
    "cmnist": ({"train": _digits(100), "test": _digits(40)}, {"clients": 2, "ci": 0.5, "ai": 0.0}),
    "spawrious": (
        {"train": _dogs()},
        {"breeds": ["bulldog", "corgi"], "places": ["beach", "desert"], "size": 8, "test_share": 0.4},
    ),
    "uci_har": ({"train": _windows(1), "test": _windows(7)}, {}),
    "shakespeare": ({"train": _play(0), "test": _play(9)}, {"test": "given"}),
    "shakespeare as LEAF's": ({"train": _characters()}, {"test": "user"}),
    "reddit": ({"train": _comments(0), "test": _comments(1), "vocabulary": {"word": list(WORDS)}}, {}),
}
LAYOUTS = (*MODULES, *OTHERS)  # a word, and perhaps which of its layouts


def tables_of(layout: str) -> tuple[Tables, Mapping[str, Any]]:
    """The columns of each part, and options that suit so small tables."""
    if layout in OTHERS:
        return OTHERS[layout]
    small = {"size": 16} if "size" in node("dataset", layout) else {}
    return {"train": images(layout), "valid": images(layout), "test": images(layout)}, small
