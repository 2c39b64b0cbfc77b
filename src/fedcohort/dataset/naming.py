"""Name columns and classes in a line of text."""

import re
from collections.abc import Sequence

MAX_NAMES = 12  # entries that a line names


def list_names(names: Sequence[str], limit: int = MAX_NAMES) -> str:
    """Return `age, x0 ... x7, site`: consecutive numbers in short, and at most `limit` entries."""
    runs: list[list[str]] = []
    for name in names:
        if runs and _follows(runs[-1][-1], name):
            runs[-1].append(name)
        else:
            runs.append([name])
    entries = [entry for run in runs for entry in ([f"{run[0]} ... {run[-1]}"] if len(run) > 2 else run)]
    names_shown = [entry or "''" for entry in entries[:limit]]
    return ", ".join([*names_shown, *([f"{len(entries) - limit} more"] if len(entries) > limit else [])])


def difference(what: str, count: int, original: int) -> list[str]:
    """Return one line, `3 training images, 7 fewer than the original's 10`; none where the counts are equal."""
    if count == original:
        return []
    than = "fewer" if count < original else "more"
    return [f"{count:,} {what}, {abs(original - count):,} {than} than the original's {original:,}"]


def _follows(before: str, name: str) -> bool:
    first, second = (re.fullmatch(r"(.*?)(\d{1,9})", text) for text in (before, name))
    if first is None or second is None:
        return False
    return first[1] == second[1] and int(second[2]) == int(first[2]) + 1
