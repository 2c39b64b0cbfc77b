"""Speed-up of methods to a setting's target over the baseline: by virtual time, by bytes and by rounds.

The speed-up is that of `results.target`. Its p-value is corrected by Holm over the methods of the setting, for each of
the three separately. `costs` are client FLOPs and bytes of whole runs over those of the baseline, as means over the
same seeds: a method that is faster to the target may have spent more by the end.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from fedcohort.report.table import EMPTY_CELL, Table
from fedcohort.results.compare_cost import compare_axis_costs, compute_relative_cost
from fedcohort.results.target import RESTRICTED_RATIO, SpeedUp
from fedcohort.results.verdict import TARGET_UNREACHED, sign_of_verdict
from fedcohort.study.definition import BOUND, METHOD, ConditionKey, Study
from fedcohort.study.judge import read_target_cost
from fedcohort.study.number_formats import MARK_BY_SIGN, join_first_texts
from fedcohort.study.page_tables import format_few_seeds, format_method_label, format_target, make_table, split_settings
from fedcohort.study.ranking import group_runs
from fedcohort.study.results import Results
from fedcohort.study.verdict import Verdict

RUN_COSTS = ("client_flops", "bytes")  # costs of whole runs
MAX_NAMED_METHODS = 2  # methods of an axis that are named in a cell
COST_LABELS = {"virtual_s": "virtual time", "bytes": "bytes", "rounds": "rounds"}  # costs to the target


@dataclass(frozen=True)
class SpeedVerdict:
    """The speed-up of a method to the target of a setting, with its verdict.

    Attributes:
        speed_up: the speed-up over the baseline.
        p: p-value, corrected by Holm over the methods of the setting.
        verdict: a verdict of `results.verdict`.
        costs: costs of whole runs over those of the baseline, by name; NaN if the baseline's are 0.
    """

    speed_up: SpeedUp
    p: float
    verdict: str
    costs: Mapping[str, float]

    @property
    def sign(self) -> int:
        """1 if the method is faster than the baseline, -1 if it is slower, else 0."""
        return sign_of_verdict(self.verdict)


Speeds = Mapping[str, Mapping[ConditionKey, SpeedVerdict]]  # by axis, and by setting and method


def measure_speed_ups(study: Study, results: Results) -> Speeds:
    """Return the speed-ups of methods by cost, and by setting and method, where a run of a pair met the target.

    Bounds have none. `results` are the stored results of `study`.
    """
    runs = {key: rows for key, rows in group_runs(study, results).items() if study.find_role(key[1]) != BOUND}
    untested_conditions = [key for key in runs if study.find_role(key[1]) != METHOD]
    run_costs = {
        cost: {key: {seed: row[cost] for seed, row in rows.items()} for key, rows in runs.items()} for cost in RUN_COSTS
    }
    verdicts_by_cost: dict[str, dict[ConditionKey, SpeedVerdict]] = {}
    for cost_name in COST_LABELS:
        costs = {
            key: {seed: read_target_cost(row, cost_name) for seed, row in rows.items()} for key, rows in runs.items()
        }
        verdicts_by_cost[cost_name] = {}
        for key, cost_result in compare_axis_costs(costs, untested_conditions, study.comparison_options).items():
            speed_up = cost_result.speed_up
            if speed_up is not None and speed_up.n_unmet < speed_up.n and math.isfinite(speed_up.ratio):
                baseline = key[0], study.baseline
                ratios = {
                    cost: compute_relative_cost(total_by_condition[key], total_by_condition[baseline])
                    for cost, total_by_condition in run_costs.items()
                }
                verdicts_by_cost[cost_name][key] = SpeedVerdict(speed_up, cost_result.p, cost_result.verdict, ratios)
    return verdicts_by_cost


def make_speed_tables(study: Study, verdict: Verdict, speeds_by_cost: Speeds) -> list[tuple[str, str, Table]]:
    """Return tables of speed-ups with a line per method and a column per setting in which a run met the target.

    Args:
        study: the study's definition.
        verdict: the study's verdict.
        speeds_by_cost: speed-ups by axis, and by setting and method.

    Returns:
        For each table: the axis, which is the cost that the speed-up is measured by; the title of the group of settings
            that it shows, "" for a single group; and the table.
    """
    tables = []
    for cost_name, speed_by_condition in speeds_by_cost.items():
        settings_with_target = [
            setting for setting in verdict.settings if setting in {name for name, _ in speed_by_condition}
        ]
        for title, settings in split_settings(study, settings_with_target):
            baseline_verdicts = {name: verdict.settings[name].methods[study.baseline] for name in settings}
            setting_labels = {name: study.settings[name].label for name in settings}
            row = {setting_labels[name]: format_target(baseline_verdicts[name], (cost_name,)) for name in settings}
            table_rows = [{"method": f"{study.baseline} (cost)", **row}]
            for method in dict.fromkeys(method for name in settings for method in verdict.settings[name].methods):
                row = {}
                for name in settings:
                    if speed := speed_by_condition.get((name, method)):
                        few_seeds_text = format_few_seeds(speed.speed_up.n, baseline_verdicts[name])
                        speed_text = f"{format_speed_up(speed)} {format_cost_ratios(speed)}"
                        row[setting_labels[name]] = f"{speed_text}{few_seeds_text}"
                if row:
                    empty_cells = dict.fromkeys(setting_labels.values(), EMPTY_CELL)
                    table_rows.append({"method": format_method_label(study, method), **empty_cells, **row})
            caption = f"Speed-up to the target over {study.baseline}, by {COST_LABELS[cost_name]}"
            tables.append((cost_name, title, make_table(table_rows, caption + (title and f": {title}"))))
    return tables


def format_speed_up(speed: SpeedVerdict) -> str:
    """Format a `speed`-up: `1.91▲`, `>=1.91▲`, `1.10 (restricted)`, or `not reached` if most pairs never met it."""
    if speed.verdict == TARGET_UNREACHED:
        return "not reached"
    bound_mark, speed_up_text = speed.speed_up.bound, f"{speed.speed_up.ratio:.2f}{MARK_BY_SIGN[speed.sign]}"
    return f"{speed_up_text} ({bound_mark})" if bound_mark == RESTRICTED_RATIO else f"{bound_mark}{speed_up_text}"


def format_cost_ratios(speed: SpeedVerdict) -> str:
    """Format client FLOPs and bytes of whole runs of `speed` as multiples of the baseline's: `(7.6, 2.8)`.

    A multiple that is not finite is "–".
    """
    return f"({', '.join(f'{ratio:.1f}' if math.isfinite(ratio) else EMPTY_CELL for ratio in speed.costs.values())})"


def describe_faster_methods(study: Study, setting: str, speeds_by_cost: Speeds) -> str:
    """Describe the faster methods of a setting: `virtual time: fedcbs 1.86 (1.0, 1.2); bytes: ...`; "" without any.

    Args:
        study: the study's definition.
        setting: name of the setting.
        speeds_by_cost: speed-ups by cost, and by setting and method.
    """
    cost_texts = []
    for cost_name, verdict_by_condition in speeds_by_cost.items():
        faster_methods = {
            method: speed
            for (name, method), speed in verdict_by_condition.items()
            if name == setting and speed.sign > 0 and study.find_role(method) == METHOD
        }
        texts = [
            f"{method} {format_speed_up(speed).replace(MARK_BY_SIGN[1], '')} {format_cost_ratios(speed)}"
            for method, speed in sorted(faster_methods.items(), key=lambda item: -item[1].speed_up.ratio)
        ]
        cost_texts += [f"{COST_LABELS[cost_name]}: {join_first_texts(texts, MAX_NAMED_METHODS)}"] if texts else []
    return "; ".join(cost_texts)
