"""Find options that differ between compared cells although they are not what is compared.

A verdict on runs of 50 rounds against runs of 500 says nothing about the selector. The page therefore reports such
differences in the same sentence as the verdict.
"""

from collections.abc import Mapping, Sequence

from fedcohort.record.tags import BUDGET
from fedcohort.results.matching.cells import Cell, follows_from_choice
from fedcohort.results.matching.match import ALL, STANDS_FOR, Matched
from fedcohort.results.matching.run import SEED, Run, settings

FIRST = (*BUDGET, "deadline")  # named before other options: they decide where a run and a round end


def find_unlike(cell: Cell, base: Cell, matched: Matched, compared: str) -> tuple[str, ...]:
    """Return the options in which runs of two cells differ on a common seed, without what is compared.

    The options of a choice that differs itself are left out, and so are the options that the compared choice may set.
    If the cells differ in an experiment or in a name that a user gave, any option may differ. Then only the budgets are
    returned.

    Args:
        cell: cell of the table.
        base: cell that it is compared with.
        matched: the runs.
        compared: the parameter or tag in which the two cells differ.
    """
    runs, base_runs = matched.cells.get(cell, {}), matched.cells.get(base, {})
    options: dict[str, None] = {}
    for seed in sorted(set(runs) & set(base_runs)):
        options |= dict.fromkeys(_differing({cell: runs[seed], base: base_runs[seed]}, compared))
    names = [name for name in options if not any(name.startswith(f"{option}.") for option in options)]
    return tuple(sorted(names, key=lambda name: (FIRST.index(name) if name in FIRST else len(FIRST), name)))


def _differing(runs: Mapping[Cell, Run], compared: str) -> list[str]:
    options = [dict(settings(run)) for run in runs.values()]
    names = sorted({name for by_name in options for name in by_name})
    values = {name: {cell: run.params.get(name, "none") for cell, run in runs.items()} for name in names}
    stand_ins = STANDS_FOR.get(compared, ())
    any_may_differ = ALL in stand_ins or not any(compared in by_name for by_name in options)
    return [
        name
        for name, by_cell in values.items()
        if len(set(by_cell.values())) > 1
        and name not in (compared, SEED)
        and not name.startswith(f"{compared}.")
        and not follows_from_choice(name, values)
        and (name in BUDGET if any_may_differ else not name.startswith(stand_ins))
    ]


def find_newest_sweep(matched: Matched) -> str | None:
    """Return the newest sweep of the runs; None if all runs belong to one sweep, or none belongs to any."""
    runs = [run for by_seed in matched.cells.values() for run in by_seed.values()]
    if not runs or set.intersection(*(set(run.sweeps) for run in runs)):
        return None
    return name_newest(runs)


def name_newest(runs: Sequence[Run]) -> str | None:
    """Return the sweep with the newest run; among equals the sweep whose name sorts last."""
    began: dict[str, int] = {}
    for run in runs:
        for sweep in run.sweeps:
            began[sweep] = max(began.get(sweep, 0), run.started_ms)
    return max(began, key=lambda sweep: (began[sweep], sweep), default=None)
