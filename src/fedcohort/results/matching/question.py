"""A comparison of tracked runs: the question, and the answer as data for tables, figures and pages."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fedcohort.ranges import refuse
from fedcohort.results.compare import CLOCK, Comparison, Options, Spent, compare, count_costs
from fedcohort.results.compare_cost import CostComparison, Target, compare_cost
from fedcohort.results.frame import COSTS, Frames
from fedcohort.results.matching.cells import Cell, spell
from fedcohort.results.matching.likeness import find_newest_sweep, find_unlike
from fedcohort.results.matching.match import Matched, base_of, list_apart
from fedcohort.results.matching.run import Run
from fedcohort.results.metric import rules_of, sign_of
from fedcohort.results.run import Kind

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Question:
    """What is asked of runs.

    Attributes:
        rows: a parameter or tag, down the table.
        cols: another one across it, None for a single column.
        metrics: the verdict is about the first; the others stand beside it.
        baseline: a value of rows or of cols, None without one.
        better: of the first metric: `high`, `low`, or `auto` by its name.
        result: what a run's result is: `late`, `last` or `best`.
        horizon: round up to which evaluations count; None for the end.
        target: None without a comparison of costs to a target.
        axis: along which a target's verdicts are primary.
        source: which runs are compared, in words.
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
    """What the runs say.

    Attributes:
        matched: the runs in their cells, and what was left out.
        frames: the runs that are compared, and their evaluations; a cell is (setting, condition).
        tables: a comparison for each metric; the verdict is about the first.
        costs: what was spent by the end, by the name of the cost.
        times: costs to the target, None without one.
        odd: cells that differ from most others of their setting in more than the condition.
        unlike: options in which a cell differs from its baseline's beside what is compared.
        newest: newest sweep of the runs, None where one sweep has all of them.
        notes: what was left out and why, what else differs, what can't be compared.
    """

    question: Question
    matched: Matched
    frames: Frames
    tables: Sequence[Comparison]
    costs: Mapping[str, Mapping[Cell, Spent]]
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
    """Compare the runs. Raises `OptionError` for a baseline or a target that is not there.

    Args:
        question: what is asked.
        matched: runs in their cells, (row, column).
        curves: evaluations of these runs, as `results.frame` describes them.
    """
    q = question
    if q.baseline is not None and q.baseline not in (*matched.rows, *matched.cols):
        known = [
            f"{q.rows} ({', '.join(matched.rows)})",
            *([f"{q.cols} ({', '.join(matched.cols)})"] if q.cols else []),
        ]
        raise refuse("baseline", f"a value of {' or '.join(known)}", q.baseline)
    is_column = q.baseline is not None and q.baseline not in matched.rows

    def to_cell(cell: Cell) -> Cell:
        """Return (setting, condition) of (row, column): conditions are where the baseline is."""
        row, column = cell
        return (row, column) if is_column else (column, row)

    frames = Frames(_frame_runs(matched, to_cell), curves)
    apart = {to_cell(cell) for cell in list_apart(matched, q.baseline)}
    tables = []
    for i, metric in enumerate(q.metrics):
        sign = sign_of(metric, q.better if i == 0 else "auto")
        options = Options(metric, q.baseline, sign, q.result, q.horizon, rules_of(metric))
        tables.append(compare(frames, options, apart))
    unlike, notes = {}, list(matched.notes)
    for cell in matched.cells if q.baseline is not None else ():
        base = base_of(cell, str(q.baseline), matched)
        if base not in matched.cells:
            notes.append(f"no baseline: there are no runs of {spell(base)}")
        elif base != cell and to_cell(cell) not in apart:
            unlike[to_cell(cell)] = find_unlike(cell, base, matched, str(q.cols) if is_column else q.rows)
    if apart:
        names = ", ".join(spell(cell) for cell in matched.cells if to_cell(cell) in apart)
        notes.append(f"not compared with {q.baseline}: {names}, of other clients or data (see what also differs)")
    times = None
    if q.target is not None:
        times = compare_cost(frames, tables[0].options, q.target, q.axis, apart)
    costs = count_costs(frames, q.baseline, apart)
    odd = frozenset(map(to_cell, matched.odd))
    newest = find_newest_sweep(matched)
    return Answer(q, matched, frames, tables, costs, times, odd, unlike, newest, list(dict.fromkeys(notes)))


def _frame_runs(matched: Matched, to_cell: Callable[[Cell], Cell]) -> "pd.DataFrame":
    """Return the frame of the matched runs, in the order of the cells."""
    import pandas as pd

    rows = []
    for cell, runs in matched.cells.items():
        setting, condition = to_cell(cell)
        for run in runs.values():
            key = {"run": run.id, "study": "", "setting": setting, "condition": condition}
            rows.append({**key, **_facts(run), "oracle": cell in matched.oracles})
    return pd.DataFrame(rows)


def _facts(run: Run) -> dict[str, object]:
    """Return the columns of `results.frame` that tracking knows of a run."""
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
