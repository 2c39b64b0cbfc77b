"""Notices about a user's table: what was left out, what looks wrong, and which option helps."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from fedcohort.dataset.naming import list_names
from fedcohort.dataset.table import Frame
from fedcohort.dataset.user_table.columns import MAX_AUTO_LEVELS, Inputs, count_levels, kind_of, text_numbers
from fedcohort.dataset.user_table.windows import find_series

MAX_SIZE = 10.0  # root mean square of a feature, above which it is far from unit scale
MIN_SIZE = 0.01  # largest value of a feature, below which it is far from unit scale
MAX_NAMES = 3  # features that a notice names


def of_columns(train: Frame, inputs: Inputs, label: str, excluded: Sequence[str]) -> Iterator[str]:
    """Yield notices about columns that are no inputs, though they may hold something.

    Args:
        train: the training table.
        inputs: the columns that are inputs.
        label: the column of labels.
        excluded: the columns of labels, clients and series, and those that the user leaves out.
    """
    dropped = [name for name in train.names if name not in {*inputs.names, *excluded}]
    dropped = [name for name in dropped if not train.is_row_number(name)]
    kinds = {name: kind_of(train, name) for name in dropped}
    texts = [name for name, kind in kinds.items() if kind == "text"]
    for name in texts:
        for what, remedy in text_numbers(train, name):
            yield f"{train.where}: column {name!r} holds {what} and is left out: {remedy}"
    if len(dropped) > len(inputs.names) and not inputs.lists:
        remedies = []
        if any(2 <= count_levels(train, name) <= MAX_AUTO_LEVELS for name in texts):
            remedies.append("dataset.categories=auto encodes texts of few values")
        if "date" in kinds.values():
            remedies.append("dataset.dates=auto encodes dates as days")
        ending = f": {' and '.join(remedies)}" if remedies else ""
        yield (
            f"{train.where}: {len(dropped)} columns are left out ({list_names(dropped)}) and only "
            f"{len(inputs.names)} used as inputs{ending}"
        )


def of_series(train: Frame, label: str, excluded: Sequence[str]) -> Iterator[str]:
    """Yield a notice where a table looks like one row per time step."""
    if (columns := find_series(train, label)) is not None:
        series, time = columns
        leave_out = "" if time in excluded else f" dataset.leave_out=[{time}]"
        yield (
            f"{train.where} looks like a long table, one row per time step {time!r} of each {series!r}: "
            f"dataset.series={series} dataset.window=50{leave_out} makes samples of 50 rows"
        )


def of_scale(x: np.ndarray, names: Sequence[str]) -> Iterator[str]:
    """Yield a notice where features of the training rows are far from unit scale.

    Args:
        x: the inputs of the training rows, float32 [N, features].
        names: names of the features.
    """
    size = np.sqrt(np.einsum("nf,nf->f", x, x, dtype=np.float64, casting="same_kind") / len(x))
    largest_value = np.maximum(x.max(0), -x.min(0))
    extreme = np.flatnonzero((size > MAX_SIZE) | ((largest_value > 0) & (largest_value < MIN_SIZE)))
    if len(extreme):
        order = extreme[np.argsort(-np.abs(np.log(size[extreme])), kind="stable")]
        examples = ", ".join(f"{names[j]} ({_round(size[j])})" for j in order[:MAX_NAMES])
        rest_note = f" and {len(extreme) - MAX_NAMES} more" if len(extreme) > MAX_NAMES else ""
        yield (
            f"{len(extreme)} of {len(names)} features are far from unit scale (root mean square: {examples}"
            f"{rest_note}), which slows or stops training: set dataset.standardise=true"
        )


def _round(size: float) -> str:
    return f"{size:,.0f}" if size >= 1 else f"{size:.2g}"


def of_labels(names: Sequence[str], label: str) -> Iterator[str]:
    """Yield a notice where classes differ only in case. names: what the classes are called."""
    alike: dict[str, list[str]] = defaultdict(list)
    for name in names:
        alike[name.casefold()].append(name)
    for words in alike.values():
        if len(words) > 1:
            yield f"column {label!r} has labels that differ only in case, which are different classes: {words}"
