"""The tables of a comparison: results with costs, and costs until a target is met."""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from fedcohort import units
from fedcohort.report.table import EMPTY_CELL, Table
from fedcohort.results.compare import Cell, Comparison
from fedcohort.results.compare_cost import ROUNDS_AXIS, CostComparison, CostResult
from fedcohort.results.difference import Mean
from fedcohort.results.matching.question import ComparisonAnswer
from fedcohort.results.metric import find_metric_unit

if TYPE_CHECKING:
    import pandas as pd

ATYPICAL_MARK, ORACLE = "†", "‡"
DIFFERENCE_COLUMNS = ("low", "high", "std", "median", "worst", "best", "n")  # of `Difference`, in the CSV file
COST_NAMES_AND_FORMATS: Sequence[tuple[str, str, Callable[[float], str]]] = (  # name and format of each cost
    ("virtual_s", "virtual time", units.format_seconds),
    ("bytes", "bytes", units.format_bytes),
    ("client_flops", "client computation", units.format_flops),
    ("joules", "energy", units.format_joules),
    (ROUNDS_AXIS, "rounds", "{:.0f}".format),
)
COST_NAMES = {cost: cost_name for cost, cost_name, _ in COST_NAMES_AND_FORMATS}
COST_FORMATS = {cost: cost_format for cost, _, cost_format in COST_NAMES_AND_FORMATS}


def count_decimals(half_widths: Sequence[float]) -> int:
    """Return the number of decimals, 1 to 6, that shows two digits of the median of the intervals' `half_widths`."""
    finite_widths = sorted(half_width for half_width in half_widths if math.isfinite(half_width) and half_width > 0)
    return min(max(1 - math.floor(math.log10(finite_widths[len(finite_widths) // 2])), 1), 6) if finite_widths else 1


def count_difference_decimals(comparison: Comparison) -> int:
    """Return the number of decimals with which the differences in `comparison` are shown."""
    unit_factor = find_metric_unit(comparison.options.metric).factor
    differences = [entry.difference for entry in comparison.results.values() if entry.difference is not None]
    return count_decimals([unit_factor * d.half_width for d in differences if d.half_width > 1e-9 * abs(d.mean)])


def format_mean(estimate: Mean | None, unit_factor: float, number_format: str, unit_text: str = "") -> str:
    """Return a mean with its interval as text, such as "12.3 [11.0, 13.6]", or only the mean without an interval.

    The text is "diverged" if the mean is not finite.

    Args:
        estimate: mean with its interval; None for a dash.
        unit_factor: factor from the metric to its unit, such as 100 for per cent.
        number_format: format specification of the mean; the ends of the interval have no plus sign.
        unit_text: follows the mean, such as " points".
    """
    if estimate is None or not estimate.n:
        return EMPTY_CELL
    if not math.isfinite(estimate.mean):
        return "diverged"
    mean_text, low_text, high_text = (
        f"{x * unit_factor:{number_format}}" for x in (estimate.mean, estimate.low, estimate.high)
    )
    interval_text = f" [{low_text.removeprefix('+')}, {high_text.removeprefix('+')}]"
    return mean_text + unit_text + (interval_text if math.isfinite(estimate.half_width) else "")


def format_p(p: float) -> str:
    """Return the p-value `p` as text such as "0.012", or "< 0.001" if three decimals would be zeros; a dash for NaN."""
    return EMPTY_CELL if not math.isfinite(p) else "< 0.001" if p < 0.0005 else f"{p:.3f}"


def choose_caption_texts(answer: ComparisonAnswer) -> tuple[str, str, str]:
    """Return the texts on results, intervals and tests in the captions of `answer`; one seed has only results."""
    if answer.has_one_seed:
        return "Result of one seed", "", ""
    test_text = "; p of the paired t-test after Holm's correction over the methods of a setting"
    return "Mean over seeds [95 % interval]", " [95 % interval]", test_text


def sort_cells(answer: ComparisonAnswer) -> list[Cell]:
    """Return the pairs (setting, condition) in the order of settings, from the best result to the worst in each.

    Results are those of the first metric of the comparison `answer`.
    """
    table = answer.headline
    return [(setting, condition) for setting in table.settings for condition in table.list_results(setting)]


def make_result_table(answer: ComparisonAnswer) -> Table:
    """Return the table of the comparison `answer`, with one row per setting and condition.

    Its columns are results, differences, verdict, required seeds, other metrics and costs.
    """
    import pandas as pd

    baseline, main_comparison, cells = answer.question.baseline, answer.headline, sort_cells(answer)
    columns = _make_name_columns(answer, cells)
    columns["seeds"] = [str(main_comparison.results[cell].mean.n) for cell in cells]
    for comparison in answer.tables:
        metric, entries = comparison.options.metric, [comparison.results[cell] for cell in cells]
        unit = find_metric_unit(metric, max((abs(cell_result.mean.mean) for cell_result in entries), default=0.0))
        pattern = f".{count_decimals([unit.factor * cell_result.mean.half_width for cell_result in entries])}f"
        columns[f"{metric}, {unit.name}".rstrip(", ")] = [format_mean(e.mean, unit.factor, pattern) for e in entries]
        if baseline is None:
            continue
        pattern = f"+z.{count_difference_decimals(comparison)}f"
        heading = f"{'' if comparison is main_comparison else f'{metric}: '}better than {baseline}, {unit.difference}"
        columns[heading.rstrip(", ")] = [format_mean(e.difference, unit.factor, pattern) for e in entries]
        if comparison is main_comparison:
            columns["p"] = [format_p(cell_result.p) for cell_result in entries]
            columns["verdict"] = [cell_result.verdict or EMPTY_CELL for cell_result in entries]
            if min_effect := main_comparison.options.rules.detectable_difference:
                heading = f"seeds for {unit.factor * min_effect:g} {unit.difference.removesuffix('s')}"
                columns[heading] = [str(cell_result.seeds_needed or EMPTY_CELL) for cell_result in entries]
    for cost_name, costs in answer.costs.items():
        columns[COST_NAMES[cost_name]] = [
            COST_FORMATS[cost_name](costs[c].mean) + (f" ({costs[c].ratio:.2f} ×)" if costs[c].ratio > 0 else "")
            for c in cells
        ]
    caption, interval_text, test_text = choose_caption_texts(answer)
    if baseline is not None:
        caption += f"; paired difference to {baseline}{interval_text}, positive is better{test_text}"
        cost_end = f"the last evaluation up to round {h}" if (h := answer.question.horizon) else "the end"
        caption += f"; cost by {cost_end} (times that of {baseline})" if answer.costs else ""
    return Table(pd.DataFrame(columns, index=range(len(cells))), caption, values=make_result_frame(answer))


def _make_name_columns(answer: ComparisonAnswer, cells: Sequence[Cell]) -> dict[str, list[str]]:
    """Return the columns that name setting and condition, by heading; oracles and runs with other options are marked.

    `cells` are the pairs (setting, condition) of the comparison `answer`, in the order of the rows.
    """
    atypical_cells, results = answer.matching.atypical_cells, answer.headline.results
    names = [c[1] + f" {ATYPICAL_MARK}" * (c in atypical_cells) + f" {ORACLE}" * results[c].is_untested for c in cells]
    setting_column = {answer.matching.setting: [cell[0] for cell in cells]} if answer.matching.setting else {}
    return {**setting_column, answer.matching.condition: names}


def _make_cell_columns(answer: ComparisonAnswer, cell: Cell) -> dict[str, Any]:
    """Return condition and setting, the first columns of a CSV file, by heading; `cell` is this pair in reverse order.

    `answer` is the comparison, whose options are the headings.
    """
    return {answer.matching.condition: cell[1], answer.matching.setting or "column": cell[0]}


def make_result_frame(answer: ComparisonAnswer) -> "pd.DataFrame":
    """Return the CSV content of `answer`: one row per setting, condition and metric; accuracies are in [0, 1]."""
    import pandas as pd

    rows = []
    for table in answer.tables:
        for cell in sort_cells(answer):
            result, mean_result, gain = table.results[cell], table.results[cell].mean, table.results[cell].difference
            row = _make_cell_columns(answer, cell) | {"metric": table.options.metric}
            row |= {name: getattr(mean_result, name) for name in ("mean", "std", "n", "low", "high")}
            row |= {"seeds": " ".join(map(str, result.results)), "odd": cell in answer.matching.atypical_cells}
            row |= {"oracle": result.is_untested, "baseline": answer.question.baseline if gain is not None else None}
            if gain is not None:
                row["difference"] = gain.mean
                row |= {f"difference_{name}": getattr(gain, name) for name in DIFFERENCE_COLUMNS}
                row |= {"p_raw": gain.p, "p": result.p, "verdict": result.verdict, "seeds_needed": result.seeds_needed}
                row["unlike"] = " ".join(answer.differing_options.get(cell, ()))
            for cost_name, cost_by_cell in answer.costs.items():
                row |= {cost_name: cost_by_cell[cell].mean, f"{cost_name}_times": cost_by_cell[cell].ratio}
            rows.append(row)
    return pd.DataFrame(rows)


def make_cost_table(answer: ComparisonAnswer) -> Table | None:
    """Return the table of costs until the target is met, with one row per setting and condition; None without a target.

    Its columns are the number of seeds that met the target, costs along each axis, and speed-ups. `answer` is the
    comparison.
    """
    import pandas as pd

    if (target_costs := answer.target_costs) is None:
        return None
    baseline, cells = answer.question.baseline, sort_cells(answer)
    columns = _make_name_columns(answer, cells)
    median_costs = [target_costs.results[target_costs.axis][cell].median for cell in cells]
    columns["met the target"] = [f"{m.n_met} of {units.format_count(m.n, 'seed')}" for m in median_costs]
    for axis in dict.fromkeys((target_costs.axis, *target_costs.results)):
        entries = [target_costs.results[axis][cell] for cell in cells]
        columns[COST_NAMES[axis]] = [format_median_cost(cost_result, axis) for cost_result in entries]
        if baseline is not None:
            columns[f"{COST_NAMES[axis]}: times as fast"] = [format_speed_up(cost_result) for cost_result in entries]
        if axis == target_costs.axis and baseline is not None:
            columns["p"] = [format_p(cost_result.p) for cost_result in entries]
            columns["verdict"] = [cost_result.verdict or EMPTY_CELL for cost_result in entries]
    caption = "Cost to the target" if answer.has_one_seed else "Median cost to the target over seeds"
    if baseline is not None:
        _, interval_text, test_text = choose_caption_texts(answer)
        caption += f"; times as fast as {baseline}{interval_text}, paired restricted cost on a log scale{test_text}"
    return Table(pd.DataFrame(columns, index=range(len(cells))), caption, values=_make_cost_frame(answer, target_costs))


def format_median_cost(result: CostResult, axis: str) -> str:
    """Return the median cost as text, such as "12 min 3 s", or "> 30 min" if at most half of the seeds met the target.

    Args:
        result: costs of a method in a setting until the target is met.
        axis: name of the cost, a key of `COST_FORMATS`.
    """
    median, cost_format = result.median, COST_FORMATS[axis]
    if not median.n:
        return EMPTY_CELL
    return cost_format(median.value) if math.isfinite(median.value) else f"> {cost_format(median.lower)}"


def format_speed_up(cost_result: CostResult) -> str:
    """Return the speed-up in `cost_result` as text such as "1.18 [0.94, 1.47]".

    `>=`, `<=` or `restricted` precedes it if a run never met the target (`SpeedUp.bound`).
    """
    speed_up = cost_result.speed_up
    if speed_up is None or not math.isfinite(speed_up.ratio):
        return EMPTY_CELL
    if not speed_up.is_target_reached:
        return "target not reached"
    interval_text = f" [{speed_up.low:.2f}, {speed_up.high:.2f}]" if math.isfinite(speed_up.low) else ""
    return f"{speed_up.bound + ' ' if speed_up.bound else ''}{speed_up.ratio:.2f}{interval_text}"


def _make_cost_frame(answer: ComparisonAnswer, target_costs: CostComparison) -> "pd.DataFrame":
    """Return the CSV file's content by setting, condition and cost: a row per seed, and a row of all seeds.

    `answer` is the comparison, and `target_costs` has the costs until the target is met.
    """
    import pandas as pd

    rows = []
    for axis, cost_results in target_costs.results.items():
        for cell in sort_cells(answer):
            result, up = cost_results[cell], cost_results[cell].speed_up
            key = {**_make_cell_columns(answer, cell), "metric": answer.headline.options.metric, "axis": axis}
            for seed, cost in result.costs.items():
                target = target_costs.targets[cell[0]][seed]
                rows.append(
                    {**key, "seed": seed, "target": target, "met": int(cost.is_met), "n": 1, "cost": cost.value}
                )
            row = {**key, "seed": None, "met": result.median.n_met, "n": result.median.n, "cost": result.median.value}
            if up is not None:
                row |= {"baseline": answer.question.baseline, "speed_up": up.ratio, "low": up.low, "high": up.high}
                row |= {"bound": up.bound, "p": result.p, "pairs": up.n, "unmet_pairs": up.n_unmet, "median": up.median}
                row["verdict"] = result.verdict
            rows.append(row)
    return pd.DataFrame(rows).astype({"seed": "Int64"})
