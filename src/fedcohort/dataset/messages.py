"""Text of messages about data: names in one line, and differences from the original."""

import re
from collections.abc import Sequence

MAX_NAMES = 12  # entries that a line shows


def list_names(names: Sequence[str], limit: int = MAX_NAMES) -> str:
    """Return names in one line, such as `age, x0 ... x7, site`.

    Args:
        names: names of columns, classes or files.
        limit: maximum number of entries; names with consecutive numbers are one entry.
    """
    runs: list[list[str]] = []
    for name in names:
        if runs and _is_next_number(runs[-1][-1], name):
            runs[-1].append(name)
        else:
            runs.append([name])
    entries = [entry for run in runs for entry in ([f"{run[0]} ... {run[-1]}"] if len(run) > 2 else run)]
    further = [f"{len(entries) - limit} more"] if len(entries) > limit else []
    return ", ".join([*(entry or "''" for entry in entries[:limit]), *further])


def _is_next_number(before: str, name: str) -> bool:
    """Return whether `name` is `before` with the next number, as x8 is after x7."""
    first, second = (re.fullmatch(r"(.*?)(\d{1,9})", text) for text in (before, name))
    return bool(first and second and first[1] == second[1] and int(second[2]) == int(first[2]) + 1)


def difference(what: str, count: int, original: int) -> list[str]:
    """Return one line, `3 training images, 7 fewer than the original's 10`; no line where the counts are equal."""
    if count == original:
        return []
    than = "fewer" if count < original else "more"
    return [f"{count:,} {what}, {abs(original - count):,} {than} than the original's {original:,}"]
