"""The tables of a comparison: results with costs, and costs until a target is met."""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from fedcohort import units
from fedcohort.report.table import EMPTY_CELL, Table
from fedcohort.results.compare import Cell, Comparison
from fedcohort.results.compare_cost import ROUNDS_AXIS, CostComparison, CostResult
from fedcohort.results.difference import Mean
from fedcohort.results.matching.question import Answer
from fedcohort.results.metric import find_metric_unit

if TYPE_CHECKING:
    import pandas as pd

ATYPICAL, ORACLE = "†", "‡"
DIFFERENCE_COLUMNS = ("low", "high", "std", "median", "worst", "best", "n")  # of `Difference`, in the CSV file
COST_NAMES = {
    "virtual_s": "virtual time",
    "bytes": "bytes",
    "client_flops": "client computation",
    "joules": "energy",
    ROUNDS_AXIS: "rounds",
}
COST_FORMATS: dict[str, Callable[[float], str]] = {
    "virtual_s": units.seconds,
    "bytes": units.bytes_,
    "client_flops": units.flops,
    "joules": units.joules,
    ROUNDS_AXIS: lambda value: f"{value:.0f}",
}


def count_decimals(half_widths: Sequence[float]) -> int:
    """Return the number of decimals that shows two digits of the median half-width, from one to six."""
    finite_widths = sorted(width for width in half_widths if math.isfinite(width) and width > 0)
    return min(max(1 - math.floor(math.log10(finite_widths[len(finite_widths) // 2])), 1), 6) if finite_widths else 1


def difference_decimals(comparison: Comparison) -> int:
    """Return the number of decimals of differences."""
    factor = find_metric_unit(comparison.options.metric).factor
    differences = [entry.difference for entry in comparison.entries.values() if entry.difference is not None]
    return count_decimals([factor * effect.half for effect in differences if effect.half > 1e-9 * abs(effect.mean)])


def format_mean(value: Mean | None, factor: float, number_format: str) -> str:
    """Return text such as `12.3 [11.0, 13.6]`, or only the mean without an interval."""
    if value is None or not value.n:
        return EMPTY_CELL
    if not math.isfinite(value.mean):
        return "diverged"
    mean_text = f"{value.mean * factor:{number_format}}"
    if not math.isfinite(value.half):
        return mean_text
    return f"{mean_text} [{value.low * factor:{number_format}}, {value.high * factor:{number_format}}]"


def format_p(p: float) -> str:
    """Return text such as `0.012`, or `< 0.001` if three decimals would be zeros; a dash without a test."""
    return EMPTY_CELL if not math.isfinite(p) else "< 0.001" if p < 0.0005 else f"{p:.3f}"


def sort_cells(result: Answer) -> list[Cell]:
    """Return the cells (setting, condition) in the order of settings, from the best result to the worst in each.

    Results are those of the comparison's first metric.
    """
    table = result.headline
    return [(setting, condition) for setting in table.settings for condition in table.list_results(setting)]


def make_result_table(result: Answer) -> Table:
    """Return one row per cell: results, differences, verdict, required seeds, other metrics and costs."""
    import pandas as pd

    baseline, main_comparison, cells = result.question.baseline, result.headline, sort_cells(result)
    columns = _name_columns(result, cells)
    columns["seeds"] = [str(main_comparison.entries[cell].mean.n) for cell in cells]
    for comparison in result.tables:
        metric, entries = comparison.options.metric, [comparison.entries[cell] for cell in cells]
        unit = find_metric_unit(metric, max((abs(cell_result.mean.mean) for cell_result in entries), default=0.0))
        pattern = f".{count_decimals([unit.factor * cell_result.mean.half for cell_result in entries])}f"
        columns[f"{metric}, {unit.name}".rstrip(", ")] = [format_mean(e.mean, unit.factor, pattern) for e in entries]
        if baseline is None:
            continue
        pattern = f"+.{difference_decimals(comparison)}f"
        heading = f"{'' if comparison is main_comparison else f'{metric}: '}better than {baseline}, {unit.difference}"
        columns[heading.rstrip(", ")] = [format_mean(e.difference, unit.factor, pattern) for e in entries]
        if comparison is main_comparison:
            columns["p"] = [format_p(cell_result.p) for cell_result in entries]
            columns["verdict"] = [cell_result.verdict or EMPTY_CELL for cell_result in entries]
            if min_effect := main_comparison.options.rules.worth:
                heading = f"seeds for {unit.factor * min_effect:g} {unit.difference.removesuffix('s')}"
                columns[heading] = [str(cell_result.seeds_needed or EMPTY_CELL) for cell_result in entries]
    for cost, by_cell in result.costs.items():
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
        caption += f"; cost by the end (times that of {baseline})" if result.costs else ""
    return Table(pd.DataFrame(columns, index=range(len(cells))), caption, values=frame_results(result))


def _name_columns(result: Answer, cells: Sequence[Cell]) -> dict[str, list[str]]:
    """Return the columns that name a cell; marks follow the name of a condition."""
    oracles = {cell for cell in cells if result.headline.entries[cell].is_untested}
    atypical_cells = result.matched.atypical_cells
    marks = {c: f"{' ' + ATYPICAL if c in atypical_cells else ''}{' ' + ORACLE if c in oracles else ''}" for c in cells}
    setting_column = {result.matched.setting: [cell[0] for cell in cells]} if result.matched.setting else {}
    return {**setting_column, result.matched.condition: [cell[1] + marks[cell] for cell in cells]}


def _key_columns(result: Answer, cell: Cell) -> dict[str, Any]:
    """Return the first columns of a CSV file."""
    return {result.matched.condition: cell[1], result.matched.setting or "column": cell[0]}


def frame_results(result: Answer) -> "pd.DataFrame":
    """Return the content of the CSV file: one row per cell and metric, in the unit of the metric."""
    import pandas as pd

    rows = []
    for table in result.tables:
        for cell in sort_cells(result):
            entry, mean, diff = table.entries[cell], table.entries[cell].mean, table.entries[cell].difference
            row = _key_columns(result, cell) | {"metric": table.options.metric}
            row |= {name: getattr(mean, name) for name in ("mean", "std", "n", "low", "high")}
            row |= {"seeds": " ".join(map(str, entry.results)), "odd": cell in result.matched.atypical_cells}
            row |= {"oracle": entry.is_untested, "baseline": result.question.baseline if diff is not None else None}
            if diff is not None:
                row["difference"] = diff.mean
                row |= {f"difference_{name}": getattr(diff, name) for name in DIFFERENCE_COLUMNS}
                row |= {"p_raw": diff.p, "p": entry.p, "verdict": entry.verdict, "seeds_needed": entry.seeds_needed}
                row["unlike"] = " ".join(result.differing_options.get(cell, ()))
            for cost, cost_by_cell in result.costs.items():
                row |= {cost: cost_by_cell[cell].mean, f"{cost}_times": cost_by_cell[cell].times}
            rows.append(row)
    return pd.DataFrame(rows)


def make_cost_table(result: Answer) -> Table | None:
    """Return one row per cell: seeds that met the target, costs along each axis, speed-ups; None without a target."""
    import pandas as pd

    if (target_costs := result.times) is None:
        return None
    baseline, cells = result.question.baseline, sort_cells(result)
    columns = _name_columns(result, cells)
    median_costs = [target_costs.entries[target_costs.axis][cell].median for cell in cells]
    columns["met the target"] = [f"{median_cost.met} of {median_cost.n} seeds" for median_cost in median_costs]
    for axis in dict.fromkeys((target_costs.axis, *target_costs.entries)):
        entries = [target_costs.entries[axis][cell] for cell in cells]
        columns[COST_NAMES[axis]] = [format_median_cost(cost_result, axis) for cost_result in entries]
        if baseline is not None:
            columns[f"{COST_NAMES[axis]}: times as fast"] = [format_speed_up(cost_result) for cost_result in entries]
        if axis == target_costs.axis and baseline is not None:
            columns["p"] = [format_p(cost_result.p) for cost_result in entries]
            columns["verdict"] = [cost_result.verdict or EMPTY_CELL for cost_result in entries]
    caption = "Median cost to the target over seeds"
    if baseline is not None:
        caption += (
            f"; times as fast as {baseline} [95 % interval], paired restricted cost on a log scale; p of the paired "
            "t-test after Holm's correction over the methods of a setting"
        )
    return Table(pd.DataFrame(columns, index=range(len(cells))), caption, values=_frame_costs(result, target_costs))


def format_median_cost(entry: CostResult, axis: str) -> str:
    """Return text such as `12 min 3 s`, or `> 30 min` if at most half of the seeds met the target."""
    median, cost_format = entry.median, COST_FORMATS[axis]
    if not median.n:
        return EMPTY_CELL
    if math.isfinite(median.value):
        return cost_format(median.value)
    lower_bound = median.lower if math.isfinite(median.lower) else max(cost.value for cost in entry.costs.values())
    return f"> {cost_format(lower_bound)}"


def format_speed_up(cost_result: CostResult) -> str:
    """Return text such as `1.18 [0.94, 1.47]`, with a bound in front if runs never met the target."""
    speed_up = cost_result.speed_up
    if speed_up is None or not math.isfinite(speed_up.ratio):
        return EMPTY_CELL
    if not speed_up.reached:
        return "target not reached"
    interval_text = f" [{speed_up.low:.2f}, {speed_up.high:.2f}]" if math.isfinite(speed_up.low) else ""
    return f"{speed_up.bound + ' ' if speed_up.bound else ''}{speed_up.ratio:.2f}{interval_text}"


def _frame_costs(result: Answer, target_costs: CostComparison) -> "pd.DataFrame":
    """Return the content of the CSV file: one row per cell, axis and seed, and one per cell with an empty seed."""
    import pandas as pd

    rows = []
    for axis, cost_results in target_costs.entries.items():
        for cell in sort_cells(result):
            entry, up = cost_results[cell], cost_results[cell].speed_up
            key = {**_key_columns(result, cell), "metric": result.headline.options.metric, "axis": axis}
            for seed, cost in entry.costs.items():
                target = target_costs.targets[cell[0]][seed]
                rows.append({**key, "seed": seed, "target": target, "met": int(cost.met), "n": 1, "cost": cost.value})
            row = {**key, "seed": None, "met": entry.median.met, "n": entry.median.n, "cost": entry.median.value}
            if up is not None:
                row |= {"baseline": result.question.baseline, "speed_up": up.ratio, "low": up.low, "high": up.high}
                row |= {"bound": up.bound, "p": entry.p, "pairs": up.n, "unmet_pairs": up.n_unmet, "median": up.median}
                row["verdict"] = entry.verdict
            rows.append(row)
    return pd.DataFrame(rows).astype({"seed": "Int64"})
