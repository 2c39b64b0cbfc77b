"""The page of a method in a level of the protocol, and the leaderboard of several files.

All statistics are those of a study with the settings of the level and one method. At equal bytes, the runs of the
reference take the place of the baseline's. Seeds of several studies are paired in their order, for the interval of the
mean over settings.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from fedcohort.errors import OptionError
from fedcohort.report.comparison.tables import format_p
from fedcohort.report.render import render
from fedcohort.report.table import Table
from fedcohort.study.definition import BASELINE, METHOD, Study
from fedcohort.study.judge import judge_settings
from fedcohort.study.mean_tables import make_overall_row
from fedcohort.study.number_formats import COST_NAMES, choose_metric_format, find_cost_ratios
from fedcohort.study.page_tables import make_table
from fedcohort.study.protocol_file import CONFIG_IDENTITY_COLUMNS, ProtocolFile
from fedcohort.study.ranking import collect_ranked_results, rank_and_compare
from fedcohort.study.results import Results
from fedcohort.study.verdict import TARGET_COSTS, MethodVerdict, OverallResult

OVERALL_HEADINGS = {"mean difference": "over these settings", "worst": "worst tenth (worst setting)"}
OVERALL_HEADINGS |= {"better in": "better in", "worse in": "worse in"}  # heading in a study's table of methods


@dataclass(frozen=True)
class ProtocolComparison:
    """A method compared with the baseline, or with its reference of equal bytes, in all settings of a level.

    Attributes:
        study: a study with these settings, named `<study>/<setting>`, and the method.
        pairs: verdicts on the method and on the baseline in each setting, by the setting's label.
        overall_result: the comparison over all settings.
        overall_cells: the cells of the method, by heading, in a table of methods over all settings.
    """

    study: Study
    pairs: dict[str, tuple[MethodVerdict, MethodVerdict]]
    overall_result: OverallResult
    overall_cells: dict[str, object]


def compare_protocol_runs(file: ProtocolFile, *, at_equal_bytes: bool) -> ProtocolComparison:
    """Return the comparison of the method in `file` with the baseline, or `at_equal_bytes` with its reference."""
    study, selector, settings, results = file.runs_by_part[0][0].study, file.selector, {}, Results(file.path)
    unknown_costs = {f"{cost}_spent": math.nan for cost in TARGET_COSTS}
    for part, part_results in file.runs_by_part:
        run_methods = {selector: selector, study.baseline: part.methods[1 if at_equal_bytes else 2]}
        for setting in (part.study.settings[name] for name in part.settings):
            label = setting.label if len(file.runs_by_part) == 1 else f"{part.study.name}: {setting.label}"
            joint_setting = replace(
                setting.rename_for_joint_study(part.study.name, label), bounds={}, target=None, oracle=None
            )
            settings[joint_setting.name] = joint_setting
            for i, seed in enumerate(part.seeds):
                for method, run_method in run_methods.items():
                    row = part_results.rows[setting.name, run_method, seed]
                    results.rows[joint_setting.name, method, i] = row | unknown_costs
    study = replace(
        study,
        settings=settings,
        overrides={study.baseline: (), selector: ()},
        role_by_method={study.baseline: BASELINE, selector: METHOD},
        seeds=range(max(len(part.seeds) for part, _ in file.runs_by_part)),
        seed_counts={},
        same_cost={},
        variants={},
    )
    verdict = judge_settings(study, results)
    ranks = rank_and_compare(study, collect_ranked_results(study, results), list(study.overrides))
    assert ranks is not None  # a file has both methods with all seeds in each setting (`protocol_file.read_protocol`)
    cells = make_overall_row(study, ranks, selector, verdict, choose_metric_format(study, study.metric))
    pairs = {
        settings[s.setting].label: (s.methods[selector], s.methods[study.baseline]) for s in verdict.settings.values()
    }
    return ProtocolComparison(study, pairs, ranks.overall_results[selector], cells)


def format_page(file: ProtocolFile) -> str:
    """Return the page of the method in `file`, in Markdown."""
    comparison_at_rounds, comparison_at_bytes = (
        compare_protocol_runs(file, at_equal_bytes=is_at_bytes) for is_at_bytes in (False, True)
    )
    study, table_rows = comparison_at_rounds.study, []
    show = choose_metric_format(study, study.metric)
    for label, (method, baseline) in comparison_at_rounds.pairs.items():
        equal_bytes_verdict = comparison_at_bytes.pairs[label][0]
        table_row = {"setting": label, study.baseline: show.format_mean(baseline.value)}
        for column_heading, verdict in (("equal rounds or time", method), ("equal bytes", equal_bytes_verdict)):
            table_row[f"at {column_heading}"] = show.format_diff(verdict.difference)
            table_row[f"p at {column_heading}"] = format_p(verdict.p_values.p_within_method)
        ratio_text = ", ".join(f"{ratio} × {cost}" for ratio, cost in find_cost_ratios(method, baseline))
        table_rows.append({**table_row, f"costs relative to {study.baseline}": ratio_text or "equal"})
    rows = [row for _, results in file.runs_by_part for row in results.rows.values()]
    code_origins = dict.fromkeys((row["commit"], row["dirty"], row["processor"]) for row in rows)
    page_data = {
        "file": file,
        "origins": code_origins,
        "study": study,
        "show": show,
        "table": make_table(table_rows, ""),
    }
    comparison_by_basis = {"at equal rounds or time": comparison_at_rounds, "at equal bytes": comparison_at_bytes}
    return render("protocol.md.j2", comparisons=comparison_by_basis, **page_data)


def make_leaderboard(files: Sequence[ProtocolFile]) -> Table:
    """Return the table of the methods in `files`, the largest mean difference at equal rounds or time first.

    Raises `OptionError` for a file of another level, or with other configurations of the baseline, than the first one.
    """
    table_rows = list[tuple[float, dict[str, object]]]()
    for file in files:
        if file.level != files[0].level:
            raise OptionError(
                f"{file.path} is of the level {file.level}, and {files[0].path} of {files[0].level}: give files of one "
                "level of the protocol"
            )
        if _identify_baseline(file) != _identify_baseline(files[0]):
            raise OptionError(
                f"{file.path}: the baseline has other options than in {files[0].path}: leave one of the two files out"
            )
        comparison_at_rounds, comparison_at_bytes = (
            compare_protocol_runs(file, at_equal_bytes=is_at_bytes) for is_at_bytes in (False, True)
        )
        table_row: dict[str, object] = {"method": file.selector}
        for name, comparison in (("rounds or time", comparison_at_rounds), ("bytes", comparison_at_bytes)):
            table_row |= {
                f"{title}, equal {name}": comparison.overall_cells[key] for title, key in OVERALL_HEADINGS.items()
            }
        for cost, label in COST_NAMES.items():
            ratios = [
                method.costs[cost] / baseline.costs[cost]
                for method, baseline in comparison_at_rounds.pairs.values()
                if baseline.costs[cost] > 0
            ]
            table_row |= {f"{label} (ratio)": f"{fmean(ratios):.2f}"} if ratios else {}
        mean_difference = comparison_at_rounds.overall_result.seeds.mean
        negative_mean_difference = -mean_difference if math.isfinite(mean_difference) else math.inf
        table_rows.append((negative_mean_difference, table_row | {"file": str(file.path)}))
    return make_table([table_row for _, table_row in sorted(table_rows, key=lambda key_and_row: key_and_row[0])], "")


def _identify_baseline(file: ProtocolFile) -> dict[tuple[object, ...], list[str]]:
    """Return the columns that identify the configuration of each run of the baseline, by study, setting and seed."""
    return {
        (part.study.name, *key): [row[column] for column in CONFIG_IDENTITY_COLUMNS]
        for part, results in file.runs_by_part
        for key, row in results.rows.items()
        if key[1] == part.study.baseline
    }
