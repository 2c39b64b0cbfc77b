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
import math
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fedcohort.dataset.raw import vocabulary
from fedcohort.dataset.raw.pieces import Piece, stamp
from fedcohort.dataset.raw.source import IMAGES, file_in, folders_in, note_left_out
from fedcohort.errors import DataError

LARGEST = float(np.finfo(np.float32).max)
UNIQUE = "client"  # a user's samples are in one file of a part
finish = vocabulary.finish  # once all parts are there


def plan(source: Path, size: int | None) -> list[Piece]:
    """Plan the tables: a file is a piece. Raises `DataError` where there is no JSON."""
    if size is not None:
        raise DataError("size= is for images in files, and LEAF's JSON holds none")
    files = [("train", file) for file in _files(source, source)]
    if (source / "train").is_dir():
        note_left_out(source, [file.name for _, file in files])
        parts = [folder for folder in folders_in(source, source) if folder.name in ("train", "test")]
        files = [(folder.name, file) for folder in reversed(parts) for file in _files(source, folder)]
    if not files:
        raise DataError(f"{source} has no train/*.json, test/*.json, and no *.json either")
    return [Piece(part, f"{file.name} {stamp(file)}", partial(_make, file)) for part, file in files]


def _files(source: Path, folder: Path) -> list[Path]:
    names = sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
    if folder != source:
        note_left_out(folder, [name for name in names if not name.endswith(".json")])
    return [file_in(source, (folder / name).relative_to(source)) for name in names if name.endswith(".json")]


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
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise DataError(f"{file}: x and y are not of one kind each: {str(error).splitlines()[0]}") from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object; of a repeated key Python would keep the last value alone. Raises `ValueError`."""
    content = dict(pairs)
    if len(content) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the key {next(name for name in names if names.count(name) > 1)!r} is there twice")
    return content


def _content(file: Path) -> tuple[dict[str, Any], list[str], dict[str, int]]:
    """Return user_data, users, and num_samples by user, empty where the file has none. Raises `DataError`."""
    try:
        with file.open(encoding="utf-8") as stream:
            content = json.load(stream, object_pairs_hook=_object)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{file} is no JSON, or was cut off: {error}") from error
    data = content.get("user_data") if isinstance(content, dict) else None
    users = content.get("users") if isinstance(content, dict) else None
    if not isinstance(data, dict) or not isinstance(users, list):
        raise DataError(f"{file} is not LEAF's: it needs users, num_samples and user_data")
    if odd := [user for user in users if not isinstance(user, str) or not user.strip()]:
        raise DataError(f"{file}: user {odd[0]!r} must be a text that is not empty")
    if len(set(users)) < len(users):
        twice = next(user for user in users if users.count(user) > 1)
        raise DataError(f"{file}: user {twice!r} is listed twice in users")
    if unlisted := sorted(set(data) - set(users)):
        raise DataError(f"{file}: users does not list {unlisted[0]!r}, which user_data has ({len(unlisted)} such)")
    counts = content.get("num_samples")
    if counts is None:
        return data, users, {}
    if not isinstance(counts, list) or len(counts) != len(users):
        raise DataError(f"{file}: num_samples must be a list of {len(users)} numbers, one for each of users")
    return data, users, dict(zip(users, counts, strict=True))


def _rows(file: Path) -> Iterator[tuple[str, Any, Any]]:
    data, users, counts = _content(file)
    length = None
    for user in users:
        samples = data.get(user)
        x, y = (samples.get("x"), samples.get("y")) if isinstance(samples, dict) else (None, None)
        if not isinstance(x, list) or not isinstance(y, list):
            raise DataError(f"{file}: user {user!r} has no lists x and y")
        if y and isinstance(y[0], dict):
            counts = {}
            x, y = _sequences(file, user, x, y)
        if len(x) != len(y) or (counts and len(y) != counts[user]):
            stated = f", num_samples says {counts[user]}" if counts else ""
            raise DataError(f"{file}: user {user!r} has {len(x)} x and {len(y)} y{stated}")
        if x and isinstance(x[0], str) and Path(x[0]).suffix in IMAGES:
            raise DataError(f"{file}: x are names of images, {x[0]!r}: fedcohort prepare celeba reads images")
        _check_labels(file, user, y)
        length = _check_inputs(file, user, x, length)
        yield from zip([user] * len(x), x, y, strict=True)


def _check_labels(file: Path, user: str, y: Sequence[Any]) -> None:
    """Raise `DataError` for labels that are neither whole numbers, texts nor lists of words."""
    for label in y:
        if isinstance(label, bool) or label is None or (isinstance(label, float) and not label.is_integer()):
            shown = f"{label:g}" if isinstance(label, float) else repr(label)
            raise DataError(f"{file}: user {user!r} has label {shown}; labels are whole numbers, or texts")
        if isinstance(label, list) and not all(isinstance(word, str) for word in label):
            raise DataError(f"{file}: user {user!r} has targets that are no lists of words")


def _check_inputs(file: Path, user: str, x: Sequence[Any], length: int | None) -> int | None:
    """Check a user's inputs; return how many numbers each holds, None for texts and words.

    length: that of the users before, None for the first. Raises `DataError`.
    """
    for row, sample in enumerate(x):
        where = f"{file}: user {user!r}, sample {row}"
        if not isinstance(sample, str | list):
            raise DataError(f"{where}: x must hold lists of numbers, or texts, and holds {sample!r:.40}")
        kinds = set(map(type, sample))
        if isinstance(sample, str) or kinds == {str}:
            continue
        if kinds - {int, float}:
            odd = next(value for value in sample if type(value) not in (int, float))
            raise DataError(f"{where}: x holds {odd!r:.40} where a number is meant")
        if not (max(map(abs, sample), default=0) <= LARGEST and math.isfinite(sum(sample))):
            odd = next(value for value in sample if not abs(value) <= LARGEST)
            raise DataError(f"{where}: x holds {odd!r:.40}, which float32 can't hold")
        length = len(sample) if length is None else length
        if len(sample) != length or not sample:
            raise DataError(f"{where}: x has {len(sample)} numbers, and the first sample {length}")
    return length


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
