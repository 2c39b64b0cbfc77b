"""The targets that runs are timed to: a number, or what the best of some runs came to.

target=best_of:a,b is, on each seed, the best of the last values of the runs of a and b on that seed: where a and b are
rows, within each column, where they are columns, within each row. (FedBalancer's is that of the best variant of FedAvg
at the end of the window: give all runs one window by until.virtual_s.) A seed that one of them lacks has no target, and
is left out; so is a cell of another federation than theirs, as equal seeds are no pairs there.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fedcohort.observe.comparison.cells import Cell, spell
from fedcohort.observe.comparison.runs import Sorted
from fedcohort.observe.comparison.series import Series
from fedcohort.observe.comparison.shown import unit_of
from fedcohort.observe.comparison.table import is_apart
from fedcohort.ranges import refuse

BEST_OF = "best_of:"


@dataclass(frozen=True)
class Goal:
    """The target of one seed. by: whose last value it is, None where it is a number that was given."""

    value: float
    by: Cell | None = None


def parse(target: str, metric: str) -> float | list[str]:
    """The number, or the words after `best_of:`. Raises `OptionError`, also where no value of `metric` can be it."""
    if target.startswith(BEST_OF) and (words := [word for word in target.removeprefix(BEST_OF).split(",") if word]):
        return words
    try:
        value = float(target)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise refuse("target", "a number, or best_of: and values of rows or of cols, as best_of:random,oort", target)
    if unit_of(metric).name == "%" and not 0 <= value <= 1:
        raise refuse("target", f"a number in [0, 1], as {metric} is a share (0.8 is 80 %)", target)
    return value


def set_all(
    found: Sorted,
    histories: Mapping[Cell, Mapping[int, Series]],
    wanted: float | Sequence[str],
    baseline: str | None,
    sign: int,
) -> tuple[dict[Cell, dict[int, Goal]], list[str]]:
    """The targets of each cell, by seed, and a note on what has none. sign: -1 where less of the metric is better.

    Raises `OptionError` for words that are no rows or columns, and for a baseline of the other direction.
    """
    if isinstance(wanted, float):
        return {cell: dict.fromkeys(of, Goal(wanted)) for cell, of in histories.items()}, []
    notes: list[str] = []
    goals = _best_of(found, histories, wanted, sign, notes)
    _check_baseline(found, wanted, baseline)
    return goals, list(dict.fromkeys(notes))


def _check_baseline(found: Sorted, words: Sequence[str], baseline: str | None) -> None:
    """A word of the other direction would be timed to another target than the cell that is compared with it."""
    if baseline is not None and (baseline in found.rows) != (words[0] in found.rows):
        allowed = found.rows if words[0] in found.rows else found.cols
        raise refuse("baseline", f"one of {', '.join(allowed)}, among which target={BEST_OF} chooses", baseline)


def _best_of(
    found: Sorted,
    histories: Mapping[Cell, Mapping[int, Series]],
    words: Sequence[str],
    sign: int,
    notes: list[str],
) -> dict[Cell, dict[int, Goal]]:
    """The targets of each cell, by seed; what has none is noted."""
    known = found.cols if words[0] in found.cols and words[0] not in found.rows else found.rows
    if odd := [word for word in words if word not in known]:
        raise refuse("target", f"{BEST_OF} and one or more of {', '.join(known)}", f"{BEST_OF}{','.join(odd)}")
    goals: dict[Cell, dict[int, Goal]] = {}
    for cell, of in histories.items():
        named = [(word, cell[1]) if known is found.rows else (cell[0], word) for word in words]
        goals[cell] = {}
        if apart := [spell(each) for each in named if is_apart(cell, each, found)]:
            notes.append(f"no target: {spell(cell)}, of another federation than {', '.join(apart)}")
            continue
        for seed in of:
            last = [histories[each][seed].value[-1:] for each in named if seed in histories.get(each, {})]
            values = sign * np.concatenate([*last, np.empty(0)])
            if len(values) == len(named) and np.isfinite(values).all():
                goals[cell][seed] = Goal(sign * float(values.max()), named[int(values.argmax())])
            else:
                notes.append(f"no target: {spell(cell)} on seed {seed}, where one of {', '.join(words)} has no value")
    return goals
