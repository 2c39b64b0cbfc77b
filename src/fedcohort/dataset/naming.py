"""Columns and classes in a line of text."""

import re
from collections.abc import Sequence

SHOWN = 12  # entries that a line names


def list_names(names: Sequence[str], most: int = SHOWN) -> str:
    """`age, x0 ... x7, site`: numbered neighbours in short, and no more than `most` entries."""
    runs: list[list[str]] = []
    for name in names:
        if runs and _follows(runs[-1][-1], name):
            runs[-1].append(name)
        else:
            runs.append([name])
    entries = [entry for run in runs for entry in ([f"{run[0]} ... {run[-1]}"] if len(run) > 2 else run)]
    more = [f"{len(entries) - most} more"] if len(entries) > most else []
    return ", ".join([entry or "''" for entry in entries[:most]] + more)


def difference(what: str, found: int, original: int) -> list[str]:
    """`3 training images, 7 fewer than the original's 10`: one line, or none where they are as many."""
    if found == original:
        return []
    than = "fewer" if found < original else "more"
    return [f"{found:,} {what}, {abs(original - found):,} {than} than the original's {original:,}"]


def _follows(before: str, name: str) -> bool:
    found = [re.fullmatch(r"(.*?)(\d{1,9})", text) for text in (before, name)]
    if found[0] is None or found[1] is None:
        return False
    return found[0][1] == found[1][1] and int(found[1][2]) == int(found[0][2]) + 1
