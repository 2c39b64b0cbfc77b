"""What stands beside the headline: other metrics of the same runs, and what each cell had cost by its end.

A cost is a run's last value: virtual seconds, bytes down and up, operations of all clients. How many times the
baseline's it is, is the sum over common seeds over that of the baseline.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from fedcohort import units
from fedcohort.observe.comparison.cells import Cell
from fedcohort.observe.comparison.runs import Sorted
from fedcohort.observe.comparison.series import FLOPS
from fedcohort.observe.comparison.sheet import NONE, ODD, YARDSTICK, Sheet, exact, write_csv
from fedcohort.observe.comparison.shown import digits, digits_of_gaps, unit
from fedcohort.observe.comparison.table import Entry, Mean, Table, base_of, mean
from fedcohort.observe.comparison.tracked import Run
from fedcohort.observe.reached import CLOCK, DOWN, UP

COSTS = {  # the metrics whose sum it is, its name, and how it is shown
    "virtual_s": ((CLOCK,), "virtual time", units.seconds),
    "bytes": ((DOWN, UP), "bytes down and up", units.bytes_),
    "client_flops": ((FLOPS,), "client computation", units.flops),
}


@dataclass(frozen=True)
class Spent:
    """What the runs of a cell had spent of one cost by their end.

    Attributes:
        value: the mean over seeds, in seconds, bytes or operations.
        times: how many times the baseline's, over common seeds; NaN without one.
        n: common seeds.
    """

    value: Mean
    times: float
    n: int


Costs = Mapping[str, Mapping[Cell, Spent]]  # by the name of the cost


def count_costs(found: Sorted, baseline: str | None) -> Costs:
    """Count the costs that the runs know of; one that nobody has is left out."""
    counted = {}
    for name, (metrics, _, _) in COSTS.items():
        values = {cell: {seed: _sum(run, metrics) for seed, run in runs.items()} for cell, runs in found.cells.items()}
        if any(value > 0 for of in values.values() for value in of.values()):
            counted[name] = {cell: _spent(cell, values, base_of(cell, baseline, found)) for cell in values}
    return counted


def _sum(run: Run, metrics: Sequence[str]) -> float:
    return sum(run.metrics.get(name, math.nan) for name in metrics)


def _spent(cell: Cell, values: Mapping[Cell, Mapping[int, float]], base: Cell | None) -> Spent:
    own, theirs = values[cell], values.get(base, {}) if base is not None and base != cell else {}
    common = sorted(set(own) & set(theirs))
    total = sum(theirs[seed] for seed in common)
    times = sum(own[seed] for seed in common) / total if total > 0 else math.nan
    return Spent(mean(list(own.values())), times, len(common))


def sheet_of_metrics(table: Table, others: Sequence[Table]) -> Sheet:
    """A line a cell of `table`: the mean of each other metric, and its difference to a baseline."""
    against = f", and paired difference to {table.baseline}" if table.baseline is not None else ""
    return _sheet("others", f"Other metrics: mean [95 % interval]{against}", table, table.entries, others, {})


def sheet_of_costs(table: Table, costs: Costs) -> Sheet:
    """A line a cell: what it had spent by the end, and how many times the baseline's."""
    against = f" (how many times {table.baseline}'s, over common seeds)" if table.baseline is not None else ""
    return _sheet("costs", f"Cost by the end: mean over seeds{against}", table, table.entries, [], costs)


def sheet_of_all(table: Table, others: Sequence[Table], costs: Costs) -> Sheet:
    """A line a cell, the best first: all metrics and costs beside each other."""
    against = f", and paired difference to {table.baseline}" if table.baseline is not None else ""
    best = sorted(table.entries, key=lambda cell: _badness(table, cell))
    return _sheet("all", f"Mean [95 % interval]{against}; cost by the end", table, best, [table, *others], costs)


def _badness(table: Table, cell: Cell) -> float:
    value = -table.sign * table.entries[cell].value.mean
    return value if math.isfinite(value) else math.inf


def _sheet(name: str, title: str, first: Table, cells: Iterable[Cell], tables: Sequence[Table], costs: Costs) -> Sheet:
    """A line for each of `cells`; first: the table whose marks they have, and, if it is shown, whose seeds."""
    head = [first.rows_name, *([first.cols_name] if first.cols_name else [])]
    head += ["seeds"] if first in tables else []
    for table in tables:
        u = unit(table).name
        head.append(f"{table.metric}{f', {u}' if u else ''}")
        head += [f"− {table.baseline}"] if table.baseline is not None else []
    head += [COSTS[cost][1] for cost in costs]
    rows: list[list[str]] = []
    strong = set()
    for cell in cells:
        entry = first.entries[cell]
        marks = [mark for mark, meant in ((ODD, entry.odd), (YARDSTICK, entry.yardstick)) if meant]
        line = [" ".join([cell[0], *marks]), *([cell[1]] if first.cols_name else [])]
        line += [str(entry.value.n)] if first in tables else []
        for table in tables:
            line += _show(table, table.entries.get(cell))
        if entry.best and first in tables:
            strong.add(len(rows))
        rows.append([*line, *(_show_cost(cost, of[cell]) for cost, of in costs.items())])
    return Sheet(name, title, head, rows, frozenset(strong))


def costs_csv(table: Table, costs: Costs) -> str:
    """Render one line a cell and cost, in seconds, bytes or operations; empty where a number isn't known."""
    lines: list[Sequence[object]] = [
        [table.rows_name, table.cols_name or "column", "cost", "mean", "std", "n", "baseline", "times", "times_n"]
    ]
    for name, of in costs.items():
        for (row, col), spent in of.items():
            own = [*exact(spent.value.mean, spent.value.std), spent.value.n]
            lines.append([row, col, name, *own, table.baseline or "", *exact(spent.times), spent.n])
    return write_csv(lines)


def _show_cost(cost: str, spent: Spent) -> str:
    times = f" ({spent.times:.2f} ×)" if math.isfinite(spent.times) else ""
    return f"{COSTS[cost][2](spent.value.mean)}{times}" if math.isfinite(spent.value.mean) else NONE


def _show(table: Table, entry: Entry | None) -> list[str]:
    """The mean, and the difference where there is a baseline."""
    factor = unit(table).factor
    own = _interval(entry.value if entry is not None else None, factor, f".{digits(table)}f")
    if table.baseline is None:
        return [own]
    gap = entry.difference if entry is not None else None
    return [own, _interval(gap.over if gap is not None else None, factor, f"+.{digits_of_gaps(table)}f")]


def _interval(value: Mean | None, factor: float, form: str) -> str:
    if value is None or not math.isfinite(value.mean):
        return NONE
    middle = f"{value.mean * factor:{form}}"
    if not math.isfinite(value.half):
        return middle
    return f"{middle} [{value.low * factor:{form}}, {value.high * factor:{form}}]"
