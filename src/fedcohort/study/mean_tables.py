"""Tables of a study's page with means over settings or seeds: methods, correlations of scores, attackers, privacy."""

import json
import math

from fedcohort.report.comparison.tables import format_p
from fedcohort.report.table import EMPTY_CELL, Table
from fedcohort.results.verdict import judge_difference, sign_of_verdict
from fedcohort.round.score_correlation import CLIENT_FACTS
from fedcohort.study.definition import Study
from fedcohort.study.number_formats import MARK_BY_SIGN, MetricFormat, format_rank
from fedcohort.study.page_tables import format_method_label, make_table
from fedcohort.study.ranking import group_runs
from fedcohort.study.results import Results
from fedcohort.study.verdict import Ranks, Verdict

SCORE_NAMES = {"score": "score", "exploit": "exploitation", "reward": "reward"}
MEAN_TABLES = {  # by table: the column of the results, its factor and the caption
    "attackers": ("attack_share", 100, "Share of attackers among the clients that arrived, in %"),
    "privacy": ("epsilon", 1, "Largest epsilon of a client's reports over a run"),
}
CLIENT_FACT_NAMES = {"noise": "label noise", "skew": "class imbalance", "seconds": "seconds", "samples": "samples"}


def make_overall_row(study: Study, ranks: Ranks, method: str, verdict: Verdict, fmt: MetricFormat) -> dict[str, object]:
    """Return the cells of a method, by heading, in the table of methods over all settings.

    Args:
        study: the study's definition.
        ranks: ranks of the methods, with their overall differences.
        method: name of the method.
        verdict: the study's verdict.
        fmt: format of differences.
    """
    result = ranks.overall_results.get(method)
    difference_headings = ("over these settings", "p", "over settings like these", "p (families)")
    table_row: dict[str, object] = {"method": method}
    table_row |= dict.fromkeys((*difference_headings, "worst tenth (worst setting)", "better in", "worse in"), "")
    if result is not None:
        verdicts = [verdict.settings[setting].methods[method] for setting in ranks.rank_table]
        # "better in some settings" is a claim on the method, whose family is its settings
        verdict_signs = [
            sign_of_verdict(judge_difference(v.difference, v.p_values.p_within_method, study.rules)) for v in verdicts
        ]
        worst_setting_label = study.settings[result.worst_setting].label if result.worst_setting else EMPTY_CELL
        family_difference = result.family_mean
        table_row |= {
            "over these settings": fmt.format_diff(result.seeds) + MARK_BY_SIGN[result.find_verdict_sign(study.rules)],
            "p": format_p(result.seeds.p),
            "over settings like these": fmt.format_diff(family_difference) if family_difference else "",
            "p (families)": format_p(family_difference.p) if family_difference else "",
            "worst tenth (worst setting)": f"{fmt.format_signed_value(result.worst_decile)} ({worst_setting_label})",
            "better in": verdict_signs.count(1),
            "worse in": verdict_signs.count(-1),
        }
    rank = ranks.rank_by_method[method]
    rank_interval = f" [{format_rank(rank.low)}, {format_rank(rank.high)}]" if math.isfinite(rank.low) else ""
    return table_row | {
        "mean rank [95 %]": format_rank(rank.mean) + rank_interval,
        "P(rank 1)": f"{100 * rank.first_share:.0f} %" if math.isfinite(rank.first_share) else "",
    }


def make_overall_table(study: Study, verdict: Verdict, fmt: MetricFormat) -> dict[str, Table]:
    """Return the table of methods over all settings as {"overall": table}, best mean rank first; {} without ranks.

    Args:
        study: the study's definition.
        verdict: the study's verdict, with the ranks.
        fmt: format of differences.
    """
    ranks = verdict.ranks
    if ranks is None:
        return {}
    caption = f"Methods over {len(ranks.rank_table)} settings, mean differences to {study.baseline} in {fmt.unit}"
    table_rows = [make_overall_row(study, ranks, method, verdict, fmt) for method in ranks.mean_ranks]
    return {"overall": make_table(table_rows, caption)}


def make_correlation_table(study: Study, results: Results) -> dict[str, Table]:
    """Return rank correlations of scores and rewards with properties of the clients, as {"correlations": table}.

    Such a property is the rate of wrong labels. Methods without a reward are left out; {} if no run has one. The column
    `follows` of `results.parquet` has the correlations of all runs.

    Args:
        study: the study's definition.
        results: the study's stored results.
    """
    import pandas as pd

    means_by_condition = {}
    for condition, rows in group_runs(study, results).items():
        runs = [json.loads(run["follows"] or "{}") for run in rows.values()]
        if runs := [means for means in runs if any(measure_name.startswith("reward_") for measure_name in means)]:
            means_by_condition[condition] = pd.DataFrame(runs).mean()
    row_names = {
        f"{score}_{fact}": f"{SCORE_NAMES[score]}: {CLIENT_FACT_NAMES[fact]}"
        for score in SCORE_NAMES
        for fact in CLIENT_FACTS
    }
    correlation_frame = pd.DataFrame(means_by_condition).reindex([*row_names]).dropna(how="all").rename(index=row_names)
    cell_texts = correlation_frame.map(lambda rho: f"{rho:+.2f}" if math.isfinite(rho) else "").to_dict()
    table_rows = [
        {"setting": study.settings[cell[0]].label, "method": cell[1], **cell_texts[cell]} for cell in means_by_condition
    ]
    caption = "Rank correlation of scores and rewards with facts of the clients"
    return {"correlations": make_table(table_rows, caption)} if table_rows else {}


def make_mean_tables(study: Study, results: Results) -> dict[str, Table]:
    """Return the tables of `MEAN_TABLES` for which runs have values, by name: means over seeds by method and setting.

    Args:
        study: the study's definition.
        results: the study's stored results.
    """
    tables = {}
    for table_name, (column, scale_factor, caption) in MEAN_TABLES.items():
        texts_by_method: dict[str, dict[str, str]] = {}
        for (setting, method), rows in group_runs(study, results).items():
            run_values = [run[column] for run in rows.values() if math.isfinite(run.get(column, math.nan))]
            if run_values:
                mean_text = f"{scale_factor * sum(run_values) / len(run_values):.1f}"
                texts_by_method.setdefault(method, {})[study.settings[setting].label] = mean_text
        table_rows = [{"method": format_method_label(study, m), **texts_by_method[m]} for m in texts_by_method]
        if table_rows:
            tables[table_name] = make_table(table_rows, caption)
    return tables
