"""The tables of a study's page."""

import json
import math
from collections.abc import Mapping, Sequence

from fedcohort import units
from fedcohort.report.comparison.tables import format_p
from fedcohort.report.table import EMPTY_CELL, Table
from fedcohort.results.verdict import judge_difference, sign_of_verdict
from fedcohort.round.score_correlation import CLIENT_FACTS
from fedcohort.study.definition import BOUND, BOUND_PREFIX, ORACLE, Study
from fedcohort.study.formats import SIGN_MARKS, Format, format_rank, format_share, join_first_texts
from fedcohort.study.ranking import Ranks, group_runs
from fedcohort.study.results import Results
from fedcohort.study.verdict import COST_NAMES, MethodVerdict, SettingVerdict, Verdict

MAX_SETTING_COLUMNS, MAX_NAMED_METHODS = 8, 4  # settings in a table that fits on a page; methods named in a cell
ORACLE_MARK, OTHER_CODE_MARK = "‡", "§"
SCORE_NAMES = {"score": "score", "exploit": "exploitation", "reward": "reward"}
TARGET_FORMATS = {"rounds": "{:.0f} rounds".format, "virtual_s": units.seconds, "bytes": units.bytes_}
MEAN_TABLES = {  # by table: the column of the results, its factor and the caption
    "attackers": ("attack_share", 100, "Share of attackers among the clients that arrived, in %"),
    "privacy": ("epsilon", 1, "Largest epsilon of a client's reports over a run"),
}
FACT_NAMES = {"noise": "label noise", "skew": "class imbalance", "seconds": "seconds", "samples": "samples"}


def split_settings(study: Study, settings: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Return settings in groups of at most `MAX_SETTING_COLUMNS`, each with a title; only a larger axis is split."""
    settings_by_axis: dict[str, list[str]] = {}
    for setting in settings:
        settings_by_axis.setdefault(study.settings[setting].axis, []).append(setting)
    groups: list[tuple[list[str], list[str]]] = []
    for axis, axis_settings in settings_by_axis.items():
        for first_position in range(0, len(axis_settings), MAX_SETTING_COLUMNS):
            column_settings = axis_settings[first_position : first_position + MAX_SETTING_COLUMNS]
            if not groups or len(groups[-1][1]) + len(column_settings) > MAX_SETTING_COLUMNS:
                groups.append(([], []))
            groups[-1][0].append(axis)
            groups[-1][1].extend(column_settings)
    if len(groups) == 1:
        return [("", list(settings))]
    return [(", ".join(dict.fromkeys(filter(None, axis_names))), axis_settings) for axis_names, axis_settings in groups]


def label_method(study: Study, method: str) -> str:
    """Return the name of a method in a table: an oracle has a mark, and a bound reads `bound: iid`."""
    oracle_mark = f" {ORACLE_MARK}" if study.role_of(method) == ORACLE else ""
    return method.replace(BOUND_PREFIX, "bound: ") + oracle_mark


def make_settings_table(study: Study, verdict: Verdict, fmt: Format) -> Table:
    """Return the table of settings: headroom, better methods, and the difference that the seeds detect."""
    lines = []
    for name, setting in verdict.settings.items():
        baseline = setting.methods.get(study.baseline)
        bound_texts = [
            f"{fmt.difference(method.difference)} ({method.method.removeprefix(BOUND_PREFIX)})"
            for method in setting.methods.values()
            if method.role == BOUND
        ]
        power, better_methods = setting.power, setting.better()
        gain_texts = [f"{method.method} {fmt.signed(method.difference.mean)}" for method in better_methods]
        lines.append(
            {
                "setting": study.settings[name].label,
                study.baseline: fmt.mean(baseline.value) if baseline else "",
                "headroom (oracle)": format_headroom(setting, fmt) if setting.headroom.difference else "",
                "bound": "; ".join(bound_texts),
                "better, Holm within the setting": join_first_texts(gain_texts, MAX_NAMED_METHODS),
                "of these better, Holm over all": sum(m.p_values.over_all < study.rules.alpha for m in better_methods),
                f"seeds for {fmt.size(study.rules.worth)}": power.seeds_needed,
                "these seeds show": f"{power.detectable * fmt.factor:.1f}" if math.isfinite(power.detectable) else "",
            }
        )
    caption = f"Headroom and better methods in each setting, differences to {study.baseline} in {fmt.unit}"
    return make_table(lines, caption)


def format_headroom(setting: SettingVerdict, value_format: Format) -> str:
    """Format the headroom with its oracle: `+7.0 [6.8, 7.2] (oracle_clean)`; "–" without an oracle."""
    difference = setting.headroom.difference
    return f"{value_format.difference(difference)} ({setting.headroom.oracle})" if difference else EMPTY_CELL


def make_difference_tables(study: Study, verdict: Verdict, value_format: Format) -> list[tuple[str, Table]]:
    """Return the mean differences, methods as lines and settings as columns, each table with its title."""
    methods = dict.fromkeys(method.method for method in verdict.methods if method.role != BOUND)
    tables = []
    for title, settings in split_settings(study, list(verdict.settings)):
        lines = []
        for method in methods:
            if method != study.baseline:
                line = {
                    study.settings[name].label: _format_difference(study, verdict.settings[name], method, value_format)
                    for name in settings
                }
                lines.append({"method": label_method(study, method), **line})
        caption = f"Mean difference to {study.baseline} in {value_format.unit}{f': {title}' if title else ''}"
        tables.append((title, make_table(lines, caption)))
    return tables


def _format_difference(study: Study, setting: SettingVerdict, name: str, value_format: Format) -> str:
    """Format the difference of a method: `+1.2▲`, or `+1.2 (n=3)` if it has fewer seeds than the baseline."""
    method = setting.methods.get(name)
    if method is None or not method.is_compared:
        return EMPTY_CELL
    if not math.isfinite(method.difference.mean):
        return "diverged" if method.diverged else EMPTY_CELL
    verdict_marks = SIGN_MARKS[method.sign] + OTHER_CODE_MARK * (method.other_code > 0)
    few_seeds = format_few_seeds(method.difference.n, setting.methods[study.baseline])
    return f"{value_format.signed(method.difference.mean)}{verdict_marks}{few_seeds}"


def format_few_seeds(n: int, baseline: MethodVerdict) -> str:
    """Return the number of seeds, ` (n=3)`, if it is lower than that of the baseline; else ""."""
    return f" (n={n})" if n < baseline.value.n else ""


def make_overall_line(study: Study, ranks: Ranks, name: str, verdict: Verdict, fmt: Format) -> dict[str, object]:
    """Return the cells of a method in the table over all settings: mean difference, worst tenth, counts and rank."""
    overall = ranks.overall.get(name)
    difference_headings = ("over these settings", "p", "over settings like these", "p (families)")
    line: dict[str, object] = {"method": name}
    line |= dict.fromkeys((*difference_headings, "worst tenth (worst setting)", "better in", "worse in"), "")
    if overall is not None:
        methods = [verdict.settings[setting].methods[name] for setting in ranks.by_setting]
        # "better in some settings" is a claim on the method, whose family is its settings
        sign_texts = [
            sign_of_verdict(judge_difference(method.difference, method.p_values.within_method, study.rules))
            for method in methods
        ]
        worst_label = study.settings[overall.worst_setting].label if overall.worst_setting else EMPTY_CELL
        family_difference = overall.families
        line |= {
            "over these settings": fmt.difference(overall.seeds) + SIGN_MARKS[overall.sign(study.rules)],
            "p": format_p(overall.seeds.p),
            "over settings like these": fmt.difference(family_difference) if family_difference else "",
            "p (families)": format_p(family_difference.p) if family_difference else "",
            "worst tenth (worst setting)": f"{fmt.signed(overall.worst_decile)} ({worst_label})",
            "better in": sign_texts.count(1),
            "worse in": sign_texts.count(-1),
        }
    rank = ranks.rank_by_method[name]
    rank_interval = f" [{format_rank(rank.low)}, {format_rank(rank.high)}]" if math.isfinite(rank.low) else ""
    return line | {
        "mean rank [95 %]": format_rank(rank.mean) + rank_interval,
        "P(rank 1)": f"{100 * rank.first:.0f} %" if math.isfinite(rank.first) else "",
    }


def make_overall_table(study: Study, verdict: Verdict, fmt: Format) -> dict[str, Table]:
    """Return the table `overall` of methods over all settings, best mean rank first; none if nothing can be ranked."""
    ranks = verdict.ranks
    if ranks is None:
        return {}
    caption = f"Methods over {len(ranks.by_setting)} settings, mean differences to {study.baseline} in {fmt.unit}"
    lines = [make_overall_line(study, ranks, name, verdict, fmt) for name in ranks.mean]
    return {"overall": make_table(lines, caption)}


def make_setting_table(study: Study, setting: SettingVerdict, fmt: Format) -> Table:
    """Return the table of all methods of a setting: results, differences, ranks and costs."""
    baseline, setting_definition = setting.methods.get(study.baseline), study.settings[setting.setting]
    lines = []
    for name, method in setting.methods.items():
        diverged_text = f", {method.diverged} diverged" if method.diverged else ""
        code_text = f", {method.other_code}{OTHER_CODE_MARK}" if method.other_code else ""
        rounds_text = f", rounds ended {method.ended_by_rounds} of {method.value.n}" if method.ended_by_rounds else ""
        has_diverged = method.is_compared and method.diverged
        cost_ratios = {cost: _format_ratio(method, baseline, cost) for cost in COST_NAMES}
        joules = method.costs["joules"]  # 0 if it is not measured
        lines.append(
            {
                "method": f"{label_method(study, name)} {SIGN_MARKS[method.sign]}".strip(),
                "result": f"{fmt.mean(method.value)} (n={method.value.n}{diverged_text}{code_text})",
                "difference": f"diverged on {method.diverged}" if has_diverged else fmt.difference(method.difference),
                "p": format_p(method.p_values.within_setting),
                "verdict": method.verdict,
                "headroom closed": format_share(method.share_closed),
                "rank": format_rank(method.rank),
                "virtual time": units.seconds(method.costs["virtual_s"]) + cost_ratios["virtual_s"] + rounds_text,
                "bytes": units.bytes_(method.costs["bytes"]) + cost_ratios["bytes"],
                "client FLOPs (ratio)": cost_ratios["client_flops"].strip(" ()"),
                **({"energy": units.joules(joules) + cost_ratios["joules"]} if joules else {}),
                "to target": format_target(method) if setting_definition.target is not None else "",
            }
        )
    return make_table(lines, f"{setting_definition.label}: results and differences to {study.baseline} in {fmt.unit}")


def _format_ratio(method: MethodVerdict, baseline: MethodVerdict | None, cost: str) -> str:
    """Format a cost as a multiple of the baseline's: ` (×3.07)`."""
    if baseline is None or method.method == baseline.method or not baseline.costs[cost] > 0:
        return ""
    return f" (×{method.costs[cost] / baseline.costs[cost]:.2f})"


def format_target(method: MethodVerdict, cost_names: Sequence[str] = tuple(TARGET_FORMATS)) -> str:
    """Return the median costs to the target, or `2 of 4` where half of the seeds never met it; axes: names of costs."""
    if not math.isfinite(method.target[cost_names[0]]):
        return f"{method.reached} of {method.value.n}"
    return ", ".join(TARGET_FORMATS[cost_name](method.target[cost_name]) for cost_name in cost_names)


def make_correlation_table(study: Study, results: Results) -> dict[str, Table]:
    """Return the table `correlations`, of scores and rewards with facts of the clients; none if no run has a reward.

    Methods without a reward are left out; `results.parquet` has them in the column `follows`.
    """
    import pandas as pd

    means = {}
    for condition, rows in group_runs(study, results).items():
        runs = [json.loads(row["follows"] or "{}") for row in rows.values()]
        if runs := [run for run in runs if any(name.startswith("reward_") for name in run)]:
            means[condition] = pd.DataFrame(runs).mean()
    row_names = {
        f"{score}_{fact}": f"{SCORE_NAMES[score]}: {FACT_NAMES[fact]}" for score in SCORE_NAMES for fact in CLIENT_FACTS
    }
    frame = pd.DataFrame(means).reindex([*row_names]).dropna(how="all").rename(index=row_names)
    cell_texts = frame.map(lambda rho: f"{rho:+.2f}" if math.isfinite(rho) else "").to_dict()
    lines = [{"setting": study.settings[cell].label, "method": name, **cell_texts[cell, name]} for cell, name in means]
    caption = "Rank correlation of scores and rewards with facts of the clients"
    return {"correlations": make_table(lines, caption)} if lines else {}


def make_mean_tables(study: Study, results: Results) -> dict[str, Table]:
    """Return a table for each column of `MEAN_TABLES` that the runs have: means over seeds by method and setting."""
    tables = {}
    for name, (column, factor, caption) in MEAN_TABLES.items():
        texts_by_method: dict[str, dict[str, str]] = {}
        for (setting, method), rows in group_runs(study, results).items():
            values = [row[column] for row in rows.values() if math.isfinite(row.get(column, math.nan))]
            if values:
                texts_by_method.setdefault(method, {})[study.settings[setting].label] = (
                    f"{factor * sum(values) / len(values):.1f}"
                )
        if lines := [{"method": label_method(study, method), **columns} for method, columns in texts_by_method.items()]:
            tables[name] = make_table(lines, caption)
    return tables


def make_table(lines: Sequence[Mapping[str, object]], caption: str) -> Table:
    """Return a table of texts and numbers by their headings."""
    import pandas as pd

    return Table(pd.DataFrame(lines, dtype=object), caption)
