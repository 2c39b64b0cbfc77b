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
COST_NAMES = {
    "virtual_s": "virtual time",
    "bytes": "bytes",
    "client_flops": "client computation",
    ROUNDS: "rounds",
}
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
    """Return text such as `< 0.001` or `0.012`; a dash without a test."""
    return EMPTY if not math.isfinite(p) else "< 0.001" if p < 0.001 else f"{p:.3f}"


def ordered_cells(answer: Answer) -> list[Cell]:
    """Return the cells by setting, in each setting the best of the first metric first."""
    table = answer.headline
    return [(setting, condition) for setting in table.settings for condition in table.in_setting(setting)]


def result_table(answer: Answer) -> Table:
    """Return one row per cell: results, differences, verdict, required seeds, other metrics and costs."""
    import pandas as pd

    q, table = answer.question, answer.headline
    cells = ordered_cells(answer)
    columns: dict[str, list[str]] = _names(answer, cells)
    columns["seeds"] = [str(table.entries[cell].mean.n) for cell in cells]
    for i, comparison in enumerate(answer.tables):
        largest = max((abs(entry.mean.mean) for entry in comparison.entries.values()), default=0.0)
        unit = unit_of(comparison.options.metric, largest)
        means = decimals([unit.factor * entry.mean.half for entry in comparison.entries.values()])
        heading = f"{comparison.options.metric}{f', {unit.name}' if unit.name else ''}"
        columns[heading] = [show_interval(comparison.entries[c].mean, unit.factor, f".{means}f") for c in cells]
        if q.baseline is None:
            continue
        form = f"+.{difference_decimals(comparison)}f"
        against = f"better than {q.baseline}" if i == 0 else f"{comparison.options.metric}: better than {q.baseline}"
        against += f", {unit.difference}" if unit.difference else ""
        columns[against] = [show_interval(comparison.entries[c].difference, unit.factor, form) for c in cells]
        if i == 0:
            columns["p"] = [show_p(table.entries[cell].p) for cell in cells]
            columns["verdict"] = [table.entries[cell].verdict or EMPTY for cell in cells]
            if table.options.rules.worth:
                worth = f"seeds for {unit.factor * table.options.rules.worth:g} {unit.difference.removesuffix('s')}"
                columns[worth] = [str(table.entries[cell].seeds_needed or EMPTY) for cell in cells]
    for cost, by_cell in answer.costs.items():
        columns[COST_NAMES[cost]] = [
            COST_FORMATS[cost](by_cell[c].mean) + (f" ({by_cell[c].times:.2f} ×)" if by_cell[c].times > 0 else "")
            for c in cells
        ]
    caption = "Mean over seeds [95 % interval]"
    if q.baseline is not None:
        caption += (
            f"; paired difference to {q.baseline} [95 % interval], positive is better; p of the paired t-test after "
            "Holm's correction over the methods of a setting"
        )
        caption += f"; cost by the end (times that of {q.baseline})" if answer.costs else ""
    frame = pd.DataFrame(columns, index=range(len(cells)))
    return Table(frame, caption, values=result_values(answer))


def _names(answer: Answer, cells: Sequence[Cell]) -> dict[str, list[str]]:
    """Return the columns that name a cell; marks follow the name of a condition."""
    condition, setting = axis_names(answer)
    marked = []
    for cell in cells:
        marks = [
            mark for mark, holds in ((ODD, cell in answer.odd), (ORACLE, answer.headline.entries[cell].oracle)) if holds
        ]
        marked.append(" ".join([cell[1], *marks]))
    settings = {setting: [cell[0] for cell in cells]} if setting else {}
    return {**settings, condition: marked}


def axis_names(answer: Answer) -> tuple[str, str | None]:
    """Return the options whose values are the conditions and the settings."""
    q = answer.question
    is_column = q.baseline is not None and q.baseline not in answer.matched.rows
    return (str(q.cols), q.rows) if is_column else (q.rows, q.cols)


def result_values(answer: Answer) -> "pd.DataFrame":
    """Return the content of the CSV file: one row per cell and metric, in the unit of the metric."""
    import pandas as pd

    cells = ordered_cells(answer)
    condition, setting = axis_names(answer)
    rows = []
    for table in answer.tables:
        for cell in cells:
            entry, gap = table.entries[cell], table.entries[cell].difference
            row: dict[str, Any] = {condition: cell[1], setting or "column": cell[0], "metric": table.options.metric}
            mean = entry.mean
            row |= {"mean": mean.mean, "std": mean.std, "n": mean.n, "low": mean.low, "high": mean.high}
            row |= {"seeds": " ".join(map(str, entry.results)), "odd": cell in answer.odd, "oracle": entry.oracle}
            row["baseline"] = answer.question.baseline if gap is not None else None
            if gap is not None:
                row |= {"difference": gap.mean, "difference_low": gap.low, "difference_high": gap.high}
                row |= {"difference_std": gap.std, "difference_median": gap.median, "difference_worst": gap.worst}
                row |= {"difference_best": gap.best, "difference_n": gap.n, "p_raw": gap.p, "p": entry.p}
                row |= {"verdict": entry.verdict, "seeds_needed": entry.seeds_needed}
                row["unlike"] = " ".join(answer.unlike.get(cell, ()))
            for cost, by_cell in answer.costs.items():
                row |= {cost: by_cell[cell].mean, f"{cost}_times": by_cell[cell].times}
            rows.append(row)
    return pd.DataFrame(rows)


def target_table(answer: Answer, times: CostComparison) -> Table:
    """Return one row per cell: number of seeds that met the target, cost along comparison axis, and speed-ups."""
    import pandas as pd

    baseline = answer.question.baseline
    cells = ordered_cells(answer)
    columns = _names(answer, cells)
    first = times.entries[times.axis]
    columns["met the target"] = [f"{first[cell].median.met} of {first[cell].median.n} seeds" for cell in cells]
    axes = [times.axis, *(axis for axis in times.entries if axis != times.axis)]
    for axis in axes:
        entries = times.entries[axis]
        columns[COST_NAMES[axis]] = [show_median(entries[cell], axis) for cell in cells]
        if baseline is not None:
            columns[f"{COST_NAMES[axis]}: times as fast"] = [show_speed_up(entries[cell]) for cell in cells]
        if axis == times.axis and baseline is not None:
            columns["p"] = [show_p(entries[cell].p) for cell in cells]
            columns["verdict"] = [entries[cell].verdict or EMPTY for cell in cells]
    caption = "Median cost to the target over seeds"
    if baseline is not None:
        caption += (
            f"; times as fast as {baseline} [95 % interval], paired restricted cost on a log scale; p of the paired "
            "t-test after Holm's correction over the methods of a setting"
        )
    frame = pd.DataFrame(columns, index=range(len(cells)))
    return Table(frame, caption, values=_target_values(answer, times, cells))


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


def _target_values(answer: Answer, times: CostComparison, cells: Sequence[Cell]) -> "pd.DataFrame":
    """Return the content of the CSV file: one row per cell, axis and seed, and one per cell with an empty seed."""
    import pandas as pd

    condition, setting = axis_names(answer)
    rows = []
    for axis, entries in times.entries.items():
        for cell in cells:
            entry, up = entries[cell], entries[cell].speed_up
            key: dict[str, Any] = {condition: cell[1], setting or "column": cell[0]}
            key |= {"metric": answer.headline.options.metric, "axis": axis}
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
