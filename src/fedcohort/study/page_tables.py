"""The tables of a study's page."""

import math
from collections.abc import Mapping, Sequence

from fedcohort import units
from fedcohort.report.comparison.tables import format_p
from fedcohort.report.table import EMPTY_CELL, Table
from fedcohort.study.definition import BOUND, BOUND_PREFIX, ORACLE, Study
from fedcohort.study.number_formats import (
    MARK_BY_SIGN,
    MetricFormat,
    format_headroom_share,
    format_rank,
    join_first_texts,
)
from fedcohort.study.verdict import COST_NAMES, MethodVerdict, SettingVerdict, Verdict

MAX_SETTING_COLUMNS, MAX_NAMED_METHODS = 8, 4  # settings in a table that fits on a page; methods named in a cell
ORACLE_MARK, OTHER_CODE_MARK = "‡", "§"
TARGET_FORMATS = {
    "rounds": lambda n: units.format_count(round(n), "round"),
    "virtual_s": units.format_seconds,
    "bytes": units.format_bytes,
}


def split_settings(study: Study, settings: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Return names of settings in groups of at most `MAX_SETTING_COLUMNS`, each with a title, "" for one group.

    Settings with one kind of heterogeneity stay together, unless they are too many for a group.

    Args:
        study: the study, which has the heterogeneity of each setting.
        settings: names of the settings.
    """
    settings_by_heterogeneity: dict[str, list[str]] = {}
    for setting in settings:
        settings_by_heterogeneity.setdefault(study.settings[setting].heterogeneity_kind, []).append(setting)
    groups: list[tuple[list[str], list[str]]] = []
    for heterogeneity_kind, group_settings in settings_by_heterogeneity.items():
        for column_start in range(0, len(group_settings), MAX_SETTING_COLUMNS):
            column_settings = group_settings[column_start : column_start + MAX_SETTING_COLUMNS]
            if not groups or len(groups[-1][1]) + len(column_settings) > MAX_SETTING_COLUMNS:
                groups.append(([], []))
            groups[-1][0].append(heterogeneity_kind)
            groups[-1][1].extend(column_settings)
    if len(groups) == 1:
        return [("", list(settings))]
    return [(", ".join(dict.fromkeys(filter(None, titles))), group_settings) for titles, group_settings in groups]


def format_method_label(study: Study, method: str) -> str:
    """Return the name of `method` in a table: oracles of `study` get a mark, bounds a prefix, as in `bound: iid`."""
    return method.replace(BOUND_PREFIX, "bound: ") + (f" {ORACLE_MARK}" if study.find_role(method) == ORACLE else "")


def make_settings_table(study: Study, verdict: Verdict, fmt: MetricFormat) -> Table:
    """Return the table of settings with headroom, better methods, and the difference that the seeds detect.

    Args:
        study: the study's definition.
        verdict: the study's verdict.
        fmt: format of the metric's values.
    """
    table_rows = []
    for setting_name, setting in verdict.settings.items():
        baseline = setting.methods.get(study.baseline)
        bound_texts = [
            f"{fmt.format_diff(method.difference)} ({method.method.removeprefix(BOUND_PREFIX)})"
            for method in setting.methods.values()
            if method.role == BOUND
        ]
        power, better_methods, alpha = setting.power, setting.find_better_methods(), study.rules.alpha
        table_rows.append(
            {
                "setting": study.settings[setting_name].label,
                study.baseline: fmt.format_mean(baseline.value) if baseline else "",
                "headroom (oracle)": format_headroom(setting, fmt) if setting.headroom.difference else "",
                "bound": "; ".join(bound_texts),
                "better, Holm within the setting": format_gains(better_methods, fmt),
                "of these better, Holm over all": sum(m.p_values.p_in_study < alpha for m in better_methods),
                f"seeds for {fmt.format_difference_size(study.rules.detectable_difference)}": power.seeds_needed,
                "these seeds show": f"{power.detectable * fmt.factor:.1f}" if math.isfinite(power.detectable) else "",
            }
        )
    caption = f"Headroom and better methods in each setting, differences to {study.baseline} in {fmt.unit}"
    return make_table(table_rows, caption)


def format_gains(methods: Sequence[MethodVerdict], metric_format: MetricFormat, alpha: float = 0.0) -> str:
    """Format methods with differences: `**oort +2.4**, powd +1.1 and 3 more`.

    Args:
        methods: verdicts on the methods, in the order in which they are written.
        metric_format: format of the differences.
        alpha: level of significance; a method that is significant after Holm over the study is bold.
    """
    method_texts = []
    for method in methods:
        bold_marks = "**" * (method.p_values.p_in_study < alpha)
        gain_text = metric_format.format_signed_value(method.difference.mean)
        method_texts.append(f"{bold_marks}{method.method} {gain_text}{bold_marks}")
    return join_first_texts(method_texts, MAX_NAMED_METHODS)


def format_headroom(setting: SettingVerdict, metric_format: MetricFormat) -> str:
    """Format the headroom of a setting with its oracle: `+7.0 [6.8, 7.2] (oracle_clean)`; "–" without an oracle.

    Args:
        setting: verdict on the setting.
        metric_format: format of differences.
    """
    gain = setting.headroom.difference
    return f"{metric_format.format_diff(gain)} ({setting.headroom.oracle})" if gain else EMPTY_CELL


def make_difference_tables(study: Study, verdict: Verdict, metric_format: MetricFormat) -> list[tuple[str, Table]]:
    """Return tables of mean differences to the baseline with their titles; rows are methods, columns settings.

    Args:
        study: the study's definition.
        verdict: the study's verdict.
        metric_format: format of differences.
    """
    methods = dict.fromkeys(m.method for m in verdict.methods if m.role != BOUND and m.method != study.baseline)
    tables = []
    for title, settings in split_settings(study, list(verdict.settings)):
        table_rows = []
        for method in methods:
            table_row = {
                study.settings[name].label: _format_difference(study, verdict.settings[name], method, metric_format)
                for name in settings
            }
            table_rows.append({"method": format_method_label(study, method), **table_row})
        caption = f"Mean difference to {study.baseline} in {metric_format.unit}{f': {title}' if title else ''}"
        tables.append((title, make_table(table_rows, caption)))
    return tables


def _format_difference(study: Study, setting: SettingVerdict, method_name: str, metric_format: MetricFormat) -> str:
    """Format a method's mean difference to the baseline: `+1.2▲`, or `+1.2 (n=3)` if it has fewer seeds.

    Args:
        study: the study's definition.
        setting: verdict on the setting.
        method_name: name of the method.
        metric_format: format of differences.
    """
    method = setting.methods.get(method_name)
    if method is None or not method.has_difference:
        return EMPTY_CELL
    if not math.isfinite(method.difference.mean):
        return "diverged" if method.n_diverged else EMPTY_CELL
    verdict_marks = MARK_BY_SIGN[method.sign] + OTHER_CODE_MARK * (method.n_other_code_seeds > 0)
    few_seeds_text = format_few_seeds(method.difference.n, setting.methods[study.baseline])
    return f"{metric_format.format_signed_value(method.difference.mean)}{verdict_marks}{few_seeds_text}"


def format_few_seeds(n: int, baseline: MethodVerdict) -> str:
    """Return the number of seeds `n` as ` (n=3)`, or "" if the baseline has no more seeds in the setting."""
    return f" (n={n})" if n < baseline.value.n else ""


def make_setting_table(study: Study, setting: SettingVerdict, fmt: MetricFormat) -> Table:
    """Return the table of all methods of one setting: results, differences, ranks and costs.

    Args:
        study: the study's definition.
        setting: verdict on the setting.
        fmt: format of the metric's values.
    """
    baseline, setting_definition = setting.methods.get(study.baseline), study.settings[setting.setting]
    lines = []
    for method_name, method in setting.methods.items():
        diverged_text = f", {method.n_diverged} diverged" if method.n_diverged else ""
        other_code_text = f", {method.n_other_code_seeds}{OTHER_CODE_MARK}" if method.n_other_code_seeds else ""
        rounds_text = f", rounds ended {method.n_early_ends} of {method.value.n}" if method.n_early_ends else ""
        is_diverged = method.has_difference and method.n_diverged
        cost_ratios = {cost_name: _format_cost_ratio(method, baseline, cost_name) for cost_name in COST_NAMES}
        joules = method.costs["joules"]  # 0 if it is not measured
        lines.append(
            {
                "method": f"{format_method_label(study, method_name)} {MARK_BY_SIGN[method.sign]}".strip(),
                "result": f"{fmt.format_mean(method.value)} (n={method.value.n}{diverged_text}{other_code_text})",
                "difference": f"diverged on {method.n_diverged}" if is_diverged else fmt.format_diff(method.difference),
                "p": format_p(method.p_values.p_within_setting),
                "verdict": method.verdict,
                "headroom closed": format_headroom_share(method.headroom_share),
                "rank": format_rank(method.rank),
                "virtual time": units.format_seconds(method.costs["virtual_s"])
                + cost_ratios["virtual_s"]
                + rounds_text,
                "bytes": units.format_bytes(method.costs["bytes"]) + cost_ratios["bytes"],
                "client FLOPs (ratio)": cost_ratios["client_flops"].strip(" ()"),
                **({"energy": units.format_joules(joules) + cost_ratios["joules"]} if joules else {}),
                "to target": format_target(method) if setting_definition.target is not None else "",
            }
        )
    return make_table(lines, f"{setting_definition.label}: results and differences to {study.baseline} in {fmt.unit}")


def _format_cost_ratio(method: MethodVerdict, baseline: MethodVerdict | None, cost_name: str) -> str:
    """Format a method's mean cost as a multiple of the baseline's: ` (×3.07)`; "" if there is none.

    Args:
        method: verdict on the method in a setting.
        baseline: verdict on the baseline there; None if it has no runs.
        cost_name: name of the cost, a key of `MethodVerdict.costs`.
    """
    if baseline is None or method.method == baseline.method or not baseline.costs[cost_name] > 0:
        return ""
    return f" (×{method.costs[cost_name] / baseline.costs[cost_name]:.2f})"


def format_target(method: MethodVerdict, cost_names: Sequence[str] = tuple(TARGET_FORMATS)) -> str:
    """Return a text with a method's median costs until it met the target, or how many seeds met it, as `2 of 4`.

    The latter is shown if half of the seeds or more never met it.

    Args:
        method: verdict on a method in a setting.
        cost_names: names of the costs, keys of `TARGET_FORMATS`.
    """
    if not math.isfinite(method.target[cost_names[0]]):
        return f"{method.n_reached_seeds} of {method.value.n}"
    return ", ".join(TARGET_FORMATS[cost_name](method.target[cost_name]) for cost_name in cost_names)


def make_table(table_rows: Sequence[Mapping[str, object]], caption: str) -> Table:
    """Return a table with a caption from `table_rows`, dictionaries of texts and numbers by heading."""
    import pandas as pd

    return Table(pd.DataFrame(table_rows, dtype=object), caption)
