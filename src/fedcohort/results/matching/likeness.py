"""Whether two cells are compared like with like, and if not, in what else they differ than in what is compared.

A verdict of runs with 50 rounds over runs with 500 says nothing about the selector: who reads that one is ahead of the
other has to read in the same sentence that their budgets differ.
"""

from collections.abc import Mapping, Sequence

from fedcohort.record.tags import BUDGET
from fedcohort.results.matching.cells import Cell, comes_along
from fedcohort.results.matching.match import ALL, STANDS_FOR, Matched
from fedcohort.results.matching.run import SEED, Run, settings

FIRST = (*BUDGET, "deadline")  # what is named before anything else: what ends a run, and a round


def find_unlike(cell: Cell, base: Cell, found: Matched, compared: str) -> tuple[str, ...]:
    """Return the options in which runs of two cells differ on a common seed, and which aren't what is compared.

    An option of a word that differs itself is left out, and so is what the compared word may set beside its own. Where
    no setting is compared but names that a user gave, the cells differ in whatever these stand for: then only the
    budgets count, which no name should hide. The same holds for an experiment.

    Args:
        cell: of the table.
        base: the one that it is compared with.
        found: the runs.
        compared: the parameter or tag in which the two cells differ.
    """
    mine, theirs = found.cells.get(cell, {}), found.cells.get(base, {})
    named: dict[str, None] = {}
    for seed in sorted(set(mine) & set(theirs)):
        named |= dict.fromkeys(_differing({cell: mine[seed], base: theirs[seed]}, compared))
    names = [name for name in named if not any(name.startswith(f"{other}.") for other in named)]
    return tuple(sorted(names, key=lambda name: (FIRST.index(name) if name in FIRST else len(FIRST), name)))


def _differing(runs: Mapping[Cell, Run], compared: str) -> list[str]:
    known = [dict(settings(run)) for run in runs.values()]
    names = sorted({name for of in known for name in of})
    every = {name: {cell: run.params.get(name, "none") for cell, run in runs.items()} for name in names}
    stand_ins = STANDS_FOR.get(compared, ())
    all_of_them = ALL in stand_ins or not any(compared in of for of in known)
    return [
        name
        for name, values in every.items()
        if len(set(values.values())) > 1
        and name not in (compared, SEED)
        and not name.startswith(f"{compared}.")
        and not comes_along(name, every)
        and (name in BUDGET if all_of_them else not name.startswith(stand_ins))
    ]


def find_newest_sweep(found: Matched) -> str | None:
    """Return the newest of the sweeps that the runs were in; None where all runs are of one, or none is of any."""
    runs = [run for of in found.cells.values() for run in of.values()]
    took_part = {run.id: set(run.sweeps) for run in runs}
    if not runs or set.intersection(*took_part.values()):
        return None
    return name_newest(runs)


def name_newest(runs: Sequence[Run]) -> str | None:
    """Return the sweep whose newest run is the newest of all, of equals the one whose name sorts last."""
    began: dict[str, int] = {}
    for run in runs:
        for sweep in run.sweeps:
            began[sweep] = max(began.get(sweep, 0), run.started_ms)
    return max(began, key=lambda sweep: (began[sweep], sweep), default=None)
