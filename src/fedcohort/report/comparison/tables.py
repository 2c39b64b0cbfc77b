"""The tables of a comparison: results with costs, and costs until a target is met."""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from fedcohort import units
from fedcohort.report.table import EMPTY, Table
from fedcohort.results.compare import Cell, Comparison
from fedcohort.results.compare_cost import ROUNDS, CostComparison, CostEntry
from fedcohort.results.difference import Mean
from fedcohort.results.matching.question import Answer
from fedcohort.results.metric import unit_of

if TYPE_CHECKING:
    import pandas as pd

ODD, ORACLE = "†", "‡"
GAP_COLUMNS = ("low", "high", "std", "median", "worst", "best", "n")  # of `Difference`, in the CSV file
COST_NAMES = {"virtual_s": "virtual time", "bytes": "bytes", "client_flops": "client computation", ROUNDS: "rounds"}
COST_FORMATS: dict[str, Callable[[float], str]] = {
    "virtual_s": units.seconds,
    "bytes": units.bytes_,
    "client_flops": units.flops,
    ROUNDS: lambda value: f"{value:.0f}",
}


def decimals(half_widths: Sequence[float]) -> int:
    """Return the number of decimals that shows two digits of the median half-width, from one to six."""
    widths = sorted(width for width in half_widths if math.isfinite(width) and width > 0)
    return min(max(1 - math.floor(math.log10(widths[len(widths) // 2])), 1), 6) if widths else 1


def difference_decimals(table: Comparison) -> int:
    """Return the number of decimals of differences."""
    factor = unit_of(table.options.metric).factor
    gaps = [entry.difference for entry in table.entries.values() if entry.difference is not None]
    return decimals([factor * gap.half for gap in gaps if gap.half > 1e-9 * abs(gap.mean)])


def show_interval(value: Mean | None, factor: float, form: str) -> str:
    """Return text such as `12.3 [11.0, 13.6]`, or only the mean without an interval; form: format of a number."""
    if value is None or not value.n:
        return EMPTY
    if not math.isfinite(value.mean):
        return "diverged"
    middle = f"{value.mean * factor:{form}}"
    if not math.isfinite(value.half):
        return middle
    return f"{middle} [{value.low * factor:{form}}, {value.high * factor:{form}}]"


def show_p(p: float) -> str:
    """Return text such as `0.012`, or `< 0.001` if three decimals would be zeros; a dash without a test."""
    return EMPTY if not math.isfinite(p) else "< 0.001" if p < 0.0005 else f"{p:.3f}"


def ordered_cells(answer: Answer) -> list[Cell]:
    """Return the cells by setting, in each setting the best of the first metric first."""
    table = answer.headline
    return [(setting, condition) for setting in table.settings for condition in table.in_setting(setting)]


def result_table(answer: Answer) -> Table:
    """Return one row per cell: results, differences, verdict, required seeds, other metrics and costs."""
    import pandas as pd

    baseline, table, cells = answer.question.baseline, answer.headline, ordered_cells(answer)
    columns = _name_columns(answer, cells)
    columns["seeds"] = [str(table.entries[cell].mean.n) for cell in cells]
    for comparison in answer.tables:
        metric, entries = comparison.options.metric, [comparison.entries[cell] for cell in cells]
        unit = unit_of(metric, max((abs(entry.mean.mean) for entry in entries), default=0.0))
        form = f".{decimals([unit.factor * entry.mean.half for entry in entries])}f"
        columns[f"{metric}, {unit.name}".rstrip(", ")] = [show_interval(e.mean, unit.factor, form) for e in entries]
        if baseline is None:
            continue
        form = f"+.{difference_decimals(comparison)}f"
        heading = f"{'' if comparison is table else f'{metric}: '}better than {baseline}, {unit.difference}"
        columns[heading.rstrip(", ")] = [show_interval(e.difference, unit.factor, form) for e in entries]
        if comparison is table:
            columns["p"] = [show_p(entry.p) for entry in entries]
            columns["verdict"] = [entry.verdict or EMPTY for entry in entries]
            if worth := table.options.rules.worth:
                heading = f"seeds for {unit.factor * worth:g} {unit.difference.removesuffix('s')}"
                columns[heading] = [str(entry.seeds_needed or EMPTY) for entry in entries]
    for cost, by_cell in answer.costs.items():
        columns[COST_NAMES[cost]] = [
            COST_FORMATS[cost](by_cell[c].mean) + (f" ({by_cell[c].times:.2f} ×)" if by_cell[c].times > 0 else "")
            for c in cells
        ]
    caption = "Mean over seeds [95 % interval]"
    if baseline is not None:
        caption += (
            f"; paired difference to {baseline} [95 % interval], positive is better; p of the paired t-test after "
            "Holm's correction over the methods of a setting"
        )
        caption += f"; cost by the end (times that of {baseline})" if answer.costs else ""
    return Table(pd.DataFrame(columns, index=range(len(cells))), caption, values=result_values(answer))


def _name_columns(answer: Answer, cells: Sequence[Cell]) -> dict[str, list[str]]:
    """Return the columns that name a cell; marks follow the name of a condition."""
    oracles = {cell for cell in cells if answer.headline.entries[cell].untested}
    marks = {c: f"{' ' + ODD if c in answer.matched.odd else ''}{' ' + ORACLE if c in oracles else ''}" for c in cells}
    settings = {answer.matched.setting: [cell[0] for cell in cells]} if answer.matched.setting else {}
    return {**settings, answer.matched.condition: [cell[1] + marks[cell] for cell in cells]}


def _key_columns(answer: Answer, cell: Cell) -> dict[str, Any]:
    """Return the first columns of a CSV file."""
    return {answer.matched.condition: cell[1], answer.matched.setting or "column": cell[0]}


def result_values(answer: Answer) -> "pd.DataFrame":
    """Return the content of the CSV file: one row per cell and metric, in the unit of the metric."""
    import pandas as pd

    rows = []
    for table in answer.tables:
        for cell in ordered_cells(answer):
            entry, mean, gap = table.entries[cell], table.entries[cell].mean, table.entries[cell].difference
            row = _key_columns(answer, cell) | {"metric": table.options.metric}
            row |= {name: getattr(mean, name) for name in ("mean", "std", "n", "low", "high")}
            row |= {"seeds": " ".join(map(str, entry.results)), "odd": cell in answer.matched.odd}
            row |= {"oracle": entry.untested, "baseline": answer.question.baseline if gap is not None else None}
            if gap is not None:
                row["difference"] = gap.mean
                row |= {f"difference_{name}": getattr(gap, name) for name in GAP_COLUMNS}
                row |= {"p_raw": gap.p, "p": entry.p, "verdict": entry.verdict, "seeds_needed": entry.seeds_needed}
                row["unlike"] = " ".join(answer.unlike.get(cell, ()))
            for cost, by_cell in answer.costs.items():
                row |= {cost: by_cell[cell].mean, f"{cost}_times": by_cell[cell].times}
            rows.append(row)
    return pd.DataFrame(rows)


def target_table(answer: Answer) -> Table | None:
    """Return one row per cell: seeds that met the target, costs along each axis, speed-ups; None without a target."""
    import pandas as pd

    if (times := answer.times) is None:
        return None
    baseline, cells = answer.question.baseline, ordered_cells(answer)
    columns = _name_columns(answer, cells)
    medians = [times.entries[times.axis][cell].median for cell in cells]
    columns["met the target"] = [f"{median.met} of {median.n} seeds" for median in medians]
    for axis in dict.fromkeys((times.axis, *times.entries)):
        entries = [times.entries[axis][cell] for cell in cells]
        columns[COST_NAMES[axis]] = [show_median(entry, axis) for entry in entries]
        if baseline is not None:
            columns[f"{COST_NAMES[axis]}: times as fast"] = [show_speed_up(entry) for entry in entries]
        if axis == times.axis and baseline is not None:
            columns["p"] = [show_p(entry.p) for entry in entries]
            columns["verdict"] = [entry.verdict or EMPTY for entry in entries]
    caption = "Median cost to the target over seeds"
    if baseline is not None:
        caption += (
            f"; times as fast as {baseline} [95 % interval], paired restricted cost on a log scale; p of the paired "
            "t-test after Holm's correction over the methods of a setting"
        )
    return Table(pd.DataFrame(columns, index=range(len(cells))), caption, values=_target_values(answer, times))


def show_median(entry: CostEntry, axis: str) -> str:
    """Return text such as `12 min 3 s`, or `> 30 min` if at most half of the seeds met the target."""
    median, show = entry.median, COST_FORMATS[axis]
    if not median.n:
        return EMPTY
    if math.isfinite(median.value):
        return show(median.value)
    lower = median.lower if math.isfinite(median.lower) else max(cost.value for cost in entry.costs.values())
    return f"> {show(lower)}"


def show_speed_up(entry: CostEntry) -> str:
    """Return text such as `1.18 [0.94, 1.47]`, with a bound in front if runs never met the target."""
    up = entry.speed_up
    if up is None or not math.isfinite(up.ratio):
        return EMPTY
    if not up.reached:
        return "target not reached"
    interval = f" [{up.low:.2f}, {up.high:.2f}]" if math.isfinite(up.low) else ""
    return f"{up.bound + ' ' if up.bound else ''}{up.ratio:.2f}{interval}"


def _target_values(answer: Answer, times: CostComparison) -> "pd.DataFrame":
    """Return the content of the CSV file: one row per cell, axis and seed, and one per cell with an empty seed."""
    import pandas as pd

    rows = []
    for axis, entries in times.entries.items():
        for cell in ordered_cells(answer):
            entry, up = entries[cell], entries[cell].speed_up
            key = {**_key_columns(answer, cell), "metric": answer.headline.options.metric, "axis": axis}
            for seed, cost in entry.costs.items():
                target = times.targets[cell[0]][seed]
                rows.append({**key, "seed": seed, "target": target, "met": int(cost.met), "n": 1, "cost": cost.value})
            row = {**key, "seed": None, "met": entry.median.met, "n": entry.median.n, "cost": entry.median.value}
            if up is not None:
                row |= {"baseline": answer.question.baseline, "speed_up": up.ratio, "low": up.low, "high": up.high}
                row |= {"bound": up.bound, "p": entry.p, "pairs": up.n, "unmet_pairs": up.unmet, "median": up.median}
                row["verdict"] = entry.verdict
            rows.append(row)
    return pd.DataFrame(rows).astype({"seed": "Int64"})
