"""Small tables in the layouts of the bundled datasets."""

import importlib
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
from hydra.utils import get_class

from config_options import list_options, load_options
from fedcohort.dataset.image_dataset import ImageTableSpec
from fedcohort.dataset.shakespeare import SEQUENCE_LENGTH
from fedcohort.dataset.uci_har import SIGNALS, WINDOW_LENGTH
from image_tables import encode_image, random_images
from reddit_tables import VOCABULARY, cut_comment
from shakespeare_tables import make_lines

N = 24
Tables = Mapping[str, Mapping[str, list[Any]]]  # columns by part


def find_image_module(choice: str) -> Any:
    """Return the module of an image dataset; None for other datasets."""
    module = importlib.import_module(load_options("dataset", choice)["_target_"].rpartition(".")[0])
    return module if isinstance(getattr(module, "TABLE_SPEC", None), ImageTableSpec) else None


IMAGE_MODULES = {
    choice: module for choice in list_options("dataset") if (module := find_image_module(choice)) is not None
}


def stored_shape(pictures: ImageTableSpec) -> tuple[int, int, int]:
    """Return the shape of stored images; small if the dataset resizes them."""
    return (pictures.image_format.shape[0], 20, 24) if pictures.image_format.resize else pictures.image_format.shape


@cache
def _encode_random_images(shape: tuple[int, int, int]) -> list[dict[str, Any]]:
    return [encode_image(image) for image in random_images(N, shape)]


def image_columns(choice: str, **changes: Any) -> dict[str, Any]:
    """Return the columns of one part: alternating labels 0 and 1, four clients, and places in pairs of rows."""
    module = IMAGE_MODULES[choice]
    pictures: ImageTableSpec = module.TABLE_SPEC
    columns: dict[str, Any] = {
        pictures.image_columns[0]: list(_encode_random_images(stored_shape(pictures))),
        pictures.label_columns[0]: [i % 2 for i in range(N)],
    }
    if client_columns := getattr(get_class(load_options("dataset", choice)["_target_"]), "client_columns", ()):
        columns[client_columns[0]] = [f"f{i // 6:02}" for i in range(N)]
    if hasattr(module, "PLACES"):
        columns["place"] = [i // 2 % 2 for i in range(N)]
    return {**columns, **changes}


def _digits(n: int) -> dict[str, list[Any]]:
    return {"image": list(random_images(n, (784,))), "label": [i % 10 for i in range(n)]}


def _dogs() -> dict[str, list[Any]]:
    rows = {"label": [i // 2 % 2 for i in range(N)], "place": [i % 2 for i in range(N)]}
    return {"image": [encode_image(image) for image in random_images(N, (3, 8, 8))], **rows}


def _windows(first: int) -> dict[str, list[Any]]:
    signals = {name: list(random_images(N, (WINDOW_LENGTH,), c) + 0.5) for c, name in enumerate(SIGNALS)}
    return {**signals, "label": [i % 6 for i in range(N)], "subject": [first + i % 3 for i in range(N)]}


def _play(first: int) -> dict[str, list[Any]]:
    rows = [(role, line) for role in ("R0", "R1") for line in make_lines(int(role[1:]), 30)[first : first + 9]]
    return {"role": [role for role, _ in rows], "line": [line for _, line in rows]}


def _characters() -> dict[str, list[Any]]:
    texts = [line[:SEQUENCE_LENGTH] for line in make_lines(3, N, SEQUENCE_LENGTH)]
    return {"client": [f"c{i % 3}" for i in range(N)], "x": texts, "y": [text[0] for text in texts]}


def _comments(seed: int) -> dict[str, list[Any]]:
    rng = np.random.default_rng(seed)
    token_rows = [(i % 3, cut_comment(rng.choice(VOCABULARY, 15).tolist())) for i in range(12)]
    rows = [(f"u{client_ids}", x, y) for client_ids, (xs, ys) in token_rows for x, y in zip(xs, ys, strict=True)]
    return dict(zip(("client", "x", "y"), map(list, zip(*rows, strict=True)), strict=True))


OTHER_LAYOUTS: Mapping[str, tuple[Tables, Mapping[str, Any]]] = {  # tables and options
    "emnist": ({"train": _digits(30), "test": _digits(20)}, {"kind": "digits"}),
    "cmnist": ({"train": _digits(100), "test": _digits(40)}, {"clients": 2, "ci": 0.5, "ai": 0.0}),
    "spawrious": (
        {"train": _dogs()},
        {"breeds": ["bulldog", "corgi"], "places": ["beach", "desert"], "size": 8, "test_share": 0.4},
    ),
    "uci_har": ({"train": _windows(1), "test": _windows(7)}, {}),
    "shakespeare": ({"train": _play(0), "test": _play(9)}, {"test": "given"}),
    "shakespeare as LEAF's": ({"train": _characters()}, {"test": "user"}),
    "reddit": ({"train": _comments(0), "test": _comments(1), "vocabulary": {"word": list(VOCABULARY)}}, {}),
}
LAYOUTS = (*IMAGE_MODULES, *OTHER_LAYOUTS)  # a dataset option, with the name of its layout if it has several


def make_tables(layout: str) -> tuple[Tables, Mapping[str, Any]]:
    """Return the columns of each part, and options for such small tables."""
    if layout in OTHER_LAYOUTS:
        return OTHER_LAYOUTS[layout]
    small_options = {"size": 16} if "size" in load_options("dataset", layout) else {}
    return {
        "train": image_columns(layout),
        "valid": image_columns(layout),
        "test": image_columns(layout),
    }, small_options
