"""LEAF's JSON: SRC/train/*.json and SRC/test/*.json, or SRC/*.json as one part.

    {"users": [...], "num_samples": [...], "user_data": {user: {"x": [...], "y": [...]}}}

Columns: `client`, `x` (lists of numbers, or texts), `y`. FEMNIST's and Synthetic's x are numbers, Shakespeare's are
texts of 80 characters; CelebA's are names of images, for which there is `fedcohort prepare celeba`.

Reddit's x are comments, each cut into lists of ten words, and its y are what is known of a comment:

    x [[["<BOS>", "so", ...], [..., "<EOS>", "<PAD>"]], ...],   y [{"target_tokens": [[...], ...], ...}, ...]

A row for each list of words, `x`, with that of its targets, `y`, of the same length; all else that is known of a
comment is left out, and so is SRC/val. Its num_samples are those of all three parts together, and not checked. The
words of the training part are counted (`dataset.raw.vocabulary`).
"""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from fedcohort.dataset.raw import vocabulary
from fedcohort.dataset.raw.pieces import Piece, stamp
from fedcohort.dataset.raw.source import IMAGES, inside
from fedcohort.errors import DataError

finish = vocabulary.finish  # once all parts are there


def plan(source: Path, size: int | None) -> list[Piece]:
    """Plan the tables: a file is a piece. Raises `DataError` where there is no JSON."""
    if size is not None:
        raise DataError("size= is for images in files, and LEAF's JSON holds none")
    files = [("train", file) for file in _files(source, source)]
    if (source / "train").is_dir():
        files = [(part, file) for part in ("train", "test") for file in _files(source, source / part)]
    if not files:
        raise DataError(f"{source} has no train/*.json, test/*.json, and no *.json either")
    return [Piece(part, f"{file.name} {stamp(file)}", partial(_make, file)) for part, file in files]


def _files(source: Path, folder: Path) -> list[Path]:
    found = sorted(folder.glob("*.json")) if folder.is_dir() else []
    return [inside(source, file.relative_to(source)) for file in found]


def _make(file: Path) -> Any:  # noqa: ANN401  pyarrow has no types
    """The samples of a file, user by user. Raises `DataError` by user."""
    import pyarrow as pa

    rows = list(_rows(file))
    if not rows:
        raise DataError(f"{file} holds no samples")
    clients, x, y = zip(*rows, strict=True)
    words = isinstance(y[0], list)
    try:
        kind = pa.string() if isinstance(x[0], str) else pa.list_(pa.string() if words else pa.float32())
        label = pa.list_(pa.string()) if words else pa.string() if isinstance(y[0], str) else pa.int64()
        return pa.table({"client": clients, "x": pa.array(x, kind), "y": pa.array(y, label)})
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise DataError(f"{file}: x and y are not of one kind each: {str(error).splitlines()[0]}") from error


def _rows(file: Path) -> Iterator[tuple[str, Any, Any]]:
    try:
        with file.open(encoding="utf-8") as stream:
            read = json.load(stream)
    except ValueError as error:
        raise DataError(f"{file} is no JSON, or was cut off: {error}") from error
    data = read.get("user_data") if isinstance(read, dict) else None
    if not isinstance(data, dict) or not isinstance(read.get("users"), list):
        raise DataError(f"{file} is not LEAF's: it needs users, num_samples and user_data")
    told = read.get("num_samples")
    counts = dict(zip(read["users"], told, strict=False)) if isinstance(told, list) else {}
    for user in read["users"]:
        own = data.get(user)
        x, y = (own.get("x"), own.get("y")) if isinstance(own, dict) else (None, None)
        if not isinstance(x, list) or not isinstance(y, list):
            raise DataError(f"{file}: user {user!r} has no lists x and y")
        if y and isinstance(y[0], dict):
            counts = {}
            x, y = _sequences(file, user, x, y)
        if len(x) != len(y) or (counts and len(y) != counts.get(user)):
            said = f", num_samples says {counts.get(user, 'nothing')}" if counts else ""
            raise DataError(f"{file}: user {user!r} has {len(x)} x and {len(y)} y{said}")
        odd = next((label for label in y if isinstance(label, float) and not label.is_integer()), None)
        if odd is not None:
            raise DataError(f"{file}: user {user!r} has label {odd:g}; labels are whole numbers, or texts")
        if x and isinstance(x[0], str) and Path(x[0]).suffix in IMAGES:
            raise DataError(f"{file}: x are names of images, {x[0]!r}: fedcohort prepare celeba reads images")
        yield from zip([str(user)] * len(x), x, y, strict=True)


def _sequences(file: Path, user: str, comments: list[Any], told: list[Any]) -> tuple[list[Any], list[Any]]:
    """The lists of words of all comments, and of their targets. Raises `DataError` by user and comment."""
    if len(comments) != len(told):
        raise DataError(f"{file}: user {user!r} has {len(comments)} x and {len(told)} y")
    x: list[Any] = []
    y: list[Any] = []
    for number, (words, known) in enumerate(zip(comments, told, strict=True)):
        targets = known.get("target_tokens") if isinstance(known, dict) else None
        if not isinstance(words, list) or not isinstance(targets, list):
            raise DataError(f"{file}: user {user!r}, comment {number} has no lists x and y.target_tokens")
        if _lengths(words) != _lengths(targets):
            raise DataError(
                f"{file}: user {user!r}, comment {number} has words in lists of {_lengths(words)} and targets in lists "
                f"of {_lengths(targets)}"
            )
        x += words
        y += targets
    return x, y


def _lengths(lists: list[Any]) -> list[int]:
    return [len(each) if isinstance(each, list) else -1 for each in lists]
