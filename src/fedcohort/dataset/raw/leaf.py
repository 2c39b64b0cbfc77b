"""Convert LEAF's JSON: SRC/train/*.json and SRC/test/*.json, or SRC/*.json as one part.

    {"users": [...], "num_samples": [...], "user_data": {user: {"x": [...], "y": [...]}}}

Columns: `client`, `x` (lists of numbers, or texts), `y`. In FEMNIST and Synthetic x are numbers, in Shakespeare texts
of 80 characters. In CelebA x are file names of images, which `fedcohort prepare celeba` converts.

In Reddit x are comments, each a list of sequences of ten tokens, and y are objects with a comment's targets:

    x [[["<BOS>", "so", ...], [..., "<EOS>", "<PAD>"]], ...],   y [{"target_tokens": [[...], ...], ...}, ...]

Each sequence becomes a row: its tokens, `x`, and their targets, `y`, a list of the same length. The other fields of a
comment and SRC/val are left out. Reddit's num_samples count all three parts together and are not checked. The tokens of
the training part are counted (`dataset.raw.vocabulary`).
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
UNIQUE = "client"  # all samples of a user in a part must be in one file
finish = vocabulary.finish  # called after all parts are written


def plan(source: Path, size: int | None) -> list[Piece]:
    """Plan the tables, with one piece for each file. Raises `DataError` if there is no JSON."""
    if size is not None:
        raise DataError("size= resizes image files, but LEAF's JSON holds none: leave size= out")
    files = [("train", file) for file in _files(source, source)]
    if (source / "train").is_dir():
        note_left_out(source, [file.name for _, file in files])
        parts = [folder for folder in folders_in(source, source) if folder.name in ("train", "test")]
        files = [(folder.name, file) for folder in reversed(parts) for file in _files(source, folder)]
    if not files:
        raise DataError(f"{source} has no train/*.json, test/*.json, and no *.json either")
    return [Piece(part, f"{file.name} {stamp(file)}", partial(_make_table, file)) for part, file in files]


def _files(source: Path, folder: Path) -> list[Path]:
    names = sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
    if folder != source:
        note_left_out(folder, [name for name in names if not name.endswith(".json")])
    return [file_in(source, (folder / name).relative_to(source)) for name in names if name.endswith(".json")]


def _make_table(file: Path) -> Any:  # noqa: ANN401  pyarrow has no types
    """Return the samples of a file as a `pa.Table`, user by user. Raises `DataError` by user."""
    import pyarrow as pa

    rows = list(_rows(file))
    if not rows:
        raise DataError(f"{file} holds no samples")
    clients, x, y = zip(*rows, strict=True)
    has_sequences = isinstance(y[0], list)
    try:
        kind = pa.string() if isinstance(x[0], str) else pa.list_(pa.string() if has_sequences else pa.float32())
        label = pa.list_(pa.string()) if has_sequences else pa.string() if isinstance(y[0], str) else pa.int64()
        return pa.table({"client": clients, "x": pa.array(x, kind), "y": pa.array(y, label)})
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise DataError(f"{file}: x and y are not of one kind each: {str(error).splitlines()[0]}") from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object. Raises `ValueError` for a repeated key, of which Python would keep only the last value."""
    content = dict(pairs)
    if len(content) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the key {next(name for name in names if names.count(name) > 1)!r} is there twice")
    return content


def _content(file: Path) -> tuple[dict[str, Any], list[str], dict[str, int]]:
    """Return user_data, users, and num_samples by user, empty if the file has none. Raises `DataError`."""
    try:
        with file.open(encoding="utf-8") as stream:
            content = json.load(stream, object_pairs_hook=_object)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{file} is not valid JSON, or was truncated: {error}") from error
    data = content.get("user_data") if isinstance(content, dict) else None
    users = content.get("users") if isinstance(content, dict) else None
    if not isinstance(data, dict) or not isinstance(users, list):
        raise DataError(f"{file} is not LEAF's: it needs users, num_samples and user_data")
    if odd := [user for user in users if not isinstance(user, str) or not user.strip()]:
        raise DataError(f"{file}: user {odd[0]!r} must be a text that is not empty")
    if len(set(users)) < len(users):
        duplicate = next(user for user in users if users.count(user) > 1)
        raise DataError(f"{file}: user {duplicate!r} is listed twice in users")
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
    """Raise `DataError` for labels that are neither whole numbers, texts nor lists of tokens."""
    for label in y:
        if isinstance(label, bool) or label is None or (isinstance(label, float) and not label.is_integer()):
            value = f"{label:g}" if isinstance(label, float) else repr(label)
            raise DataError(f"{file}: user {user!r} has label {value}; labels are whole numbers, or texts")
        if isinstance(label, list) and not all(isinstance(token, str) for token in label):
            raise DataError(f"{file}: user {user!r} has targets that are not lists of texts")


def _check_inputs(file: Path, user: str, x: Sequence[Any], length: int | None) -> int | None:
    """Check a user's inputs and return how many numbers each holds; None for texts and tokens.

    length: the required number of numbers, from the users before; None for the first user. Raises `DataError`.
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
            raise DataError(f"{where}: x holds {odd!r:.40} where a number is expected")
        if not (max(map(abs, sample), default=0) <= LARGEST and math.isfinite(sum(sample))):
            odd = next(value for value in sample if not abs(value) <= LARGEST)
            raise DataError(f"{where}: x holds {odd!r:.40}, which float32 can't hold")
        length = len(sample) if length is None else length
        if len(sample) != length or not sample:
            raise DataError(f"{where}: x has {len(sample)} numbers, and the first sample {length}")
    return length


def _sequences(file: Path, user: str, comments: list[Any], notes: list[Any]) -> tuple[list[Any], list[Any]]:
    """Return the sequences of tokens of all comments, and the sequences of their targets.

    notes: the object of each comment, with its targets. Raises `DataError` by user and comment.
    """
    if len(comments) != len(notes):
        raise DataError(f"{file}: user {user!r} has {len(comments)} x and {len(notes)} y")
    x: list[Any] = []
    y: list[Any] = []
    for number, (tokens, note) in enumerate(zip(comments, notes, strict=True)):
        targets = note.get("target_tokens") if isinstance(note, dict) else None
        if not isinstance(tokens, list) or not isinstance(targets, list):
            raise DataError(f"{file}: user {user!r}, comment {number} has no lists x and y.target_tokens")
        if _lengths(tokens) != _lengths(targets):
            raise DataError(
                f"{file}: user {user!r}, comment {number} has words in lists of {_lengths(tokens)} and targets in "
                f"lists of {_lengths(targets)}"
            )
        x += tokens
        y += targets
    return x, y


def _lengths(lists: list[Any]) -> list[int]:
    return [len(entry) if isinstance(entry, list) else -1 for entry in lists]
