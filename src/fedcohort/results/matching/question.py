"""Compare tracked runs: the question, and the answer as data for tables, figures and pages."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fedcohort.ranges import refuse
from fedcohort.results.compare import Comparison, Options, compare
from fedcohort.results.compare_cost import CostComparison, Target, compare_cost
from fedcohort.results.frame import CLOCK, COSTS, Frames
from fedcohort.results.matching.cells import Cell, spell
from fedcohort.results.matching.likeness import find_newest_sweep, find_unlike
from fedcohort.results.matching.match import Matched
from fedcohort.results.matching.run import Run
from fedcohort.results.metric import rules_of, sign_of
from fedcohort.results.run import Kind
from fedcohort.results.spent import CellCost, count_costs

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Question:
    """What is compared.

    Attributes:
        rows: the parameter or tag whose values are the rows of the table.
        cols: the parameter or tag whose values are the columns, None for a single column.
        metrics: the verdict is about the first; the table also shows the others.
        baseline: a value of rows or of cols, None without one.
        better: whether `high` or `low` values of the first metric are better, or `auto` by its name.
        result: result of a run: `late`, `last` or `best`.
        horizon: last round whose evaluations count; None for the end.
        target: target of the comparison of costs, None without one.
        axis: cost that the primary verdicts on a target are about.
        source: describes which runs are compared.
    """

    rows: str = "selector"
    cols: str | None = None
    metrics: Sequence[str] = ("test/acc",)
    baseline: str | None = None
    better: str = "auto"
    result: Kind = "late"
    horizon: int | None = None
    target: Target | None = None
    axis: str = "virtual_s"
    source: str = "all runs"


@dataclass(frozen=True)
class Answer:
    """The result of a comparison.

    Attributes:
        matched: the runs in their cells, and the runs that were left out.
        frames: the runs that are compared, and their evaluations; a cell is (setting, condition).
        tables: a comparison for each metric; the verdict is about the first.
        costs: cost of the runs by their end, by name of the cost and cell.
        times: costs to the target, None without one.
        odd: cells that differ from most cells of their setting in more than the condition.
        unlike: options, other than the compared one, in which a cell differs from its baseline's.
        newest: newest sweep of the runs, None if one sweep has all of them.
        notes: runs that were left out, options that also differ, and cells that cannot be compared.
    """

    question: Question
    matched: Matched
    frames: Frames
    tables: Sequence[Comparison]
    costs: Mapping[str, Mapping[Cell, CellCost]]
    times: CostComparison | None = None
    odd: frozenset[Cell] = frozenset()
    unlike: Mapping[Cell, Sequence[str]] = field(default_factory=dict)
    newest: str | None = None
    notes: Sequence[str] = ()

    @property
    def headline(self) -> Comparison:
        """The comparison that the verdict is about."""
        return self.tables[0]


def answer(question: Question, matched: Matched, curves: "pd.DataFrame") -> Answer:
    """Compare the runs.

    Args:
        question: what is compared.
        matched: runs in their cells, (row, column).
        curves: evaluations of these runs, in the form that `results.frame` describes.

    Raises:
        OptionError: no run has the baseline or the target.
    """
    q = question
    if q.baseline is not None and q.baseline not in (*matched.rows, *matched.cols):
        columns = f" or {q.cols} ({', '.join(matched.cols)})" if q.cols else ""
        raise refuse("baseline", f"a value of {q.rows} ({', '.join(matched.rows)}){columns}", q.baseline)
    is_column = q.baseline is not None and q.baseline not in matched.rows

    def to_cell(cell: Cell) -> Cell:
        """Return (setting, condition) of (row, column): the baseline is one of the conditions."""
        row, column = cell
        return (row, column) if is_column else (column, row)

    frames = Frames(_frame_runs(matched, to_cell), curves)
    unpaired = {to_cell(cell) for cell in _list_unpaired(matched, q.baseline)}
    tables = []
    for i, metric in enumerate(q.metrics):
        sign = sign_of(metric, q.better if i == 0 else "auto")
        options = Options(metric, q.baseline, sign, q.result, q.horizon, rules_of(metric))
        tables.append(compare(frames, options, unpaired))
    unlike, notes = {}, list(matched.notes)
    for cell in matched.cells if q.baseline is not None else ():
        base = _base_of(cell, str(q.baseline), matched)
        if base not in matched.cells:
            notes.append(f"no baseline: there are no runs of {spell(base)}")
        elif base != cell and to_cell(cell) not in unpaired:
            unlike[to_cell(cell)] = find_unlike(cell, base, matched, str(q.cols) if is_column else q.rows)
    if unpaired:
        names = ", ".join(spell(cell) for cell in matched.cells if to_cell(cell) in unpaired)
        notes.append(f"not compared with {q.baseline}: {names}, with other clients or data (see what also differs)")
    times = None
    if q.target is not None:
        times = compare_cost(frames, tables[0].options, q.target, q.axis, unpaired)
    costs = count_costs(frames, q.baseline, unpaired)
    odd = frozenset(map(to_cell, matched.odd))
    newest = find_newest_sweep(matched)
    return Answer(q, matched, frames, tables, costs, times, odd, unlike, newest, list(dict.fromkeys(notes)))


def _frame_runs(matched: Matched, to_cell: Callable[[Cell], Cell]) -> "pd.DataFrame":
    """Return the frame of the matched runs, in the order of their cells."""
    import pandas as pd

    rows = []
    for cell, runs in matched.cells.items():
        setting, condition = to_cell(cell)
        for run in runs.values():
            key = {"run": run.id, "study": "", "setting": setting, "condition": condition}
            rows.append({**key, **_facts(run), "oracle": cell in matched.oracles})
    return pd.DataFrame(rows)


def _facts(run: Run) -> dict[str, object]:
    """Return the columns of `results.frame` that are known of a tracked run."""
    clock = run.params.get("until.virtual_s", "null")
    return {
        "seed": run.seed,
        "folder": run.tags.get("folder", ""),
        "status": run.status,
        "commit": run.tags.get("commit", ""),
        "dirty": run.tags.get("dirty") == "true",
        "config_hash": run.tags.get("config_hash", ""),
        "rounds": int(run.tags.get("rounds_done", "0")),
        **{cost: sum(run.metrics.get(name, math.nan) for name in names) for cost, names in COSTS.items()},
        CLOCK: math.nan if clock == "null" else float(clock),
    }


def _base_of(cell: Cell, baseline: str, matched: Matched) -> Cell:
    """Return the baseline's cell in the cell's column, or in its row if the baseline is a column."""
    return (baseline, cell[1]) if baseline in matched.rows else (cell[0], baseline)


def _list_unpaired(matched: Matched, baseline: str | None) -> set[Cell]:
    """Return the cells whose seeds give other clients or data than the baseline's, so that runs form no pairs."""
    if baseline is None:
        return set()
    bases = {cell: _base_of(cell, baseline, matched) for cell in matched.cells}
    federations = matched.federations
    return {c for c, base in bases.items() if base in matched.cells and federations.get(c) != federations.get(base)}
