"""The table of a study's page with the methods over all settings."""

import math

from fedcohort.report.comparison.tables import format_p
from fedcohort.report.table import EMPTY_CELL, Table
from fedcohort.results.verdict import judge_difference, sign_of_verdict
from fedcohort.study.definition import Study
from fedcohort.study.number_formats import SIGN_MARKS, Format, format_rank
from fedcohort.study.page_tables import make_table
from fedcohort.study.verdict import Ranks, Verdict


def make_overall_row(study: Study, ranks: Ranks, method: str, verdict: Verdict, fmt: Format) -> dict[str, object]:
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
            "over these settings": fmt.format_diff(result.seeds) + SIGN_MARKS[result.find_verdict_sign(study.rules)],
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


def make_overall_table(study: Study, verdict: Verdict, fmt: Format) -> dict[str, Table]:
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
