"""Write the report of a leaderboard: the methods of several studies over all of their settings."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from statistics import fmean

from fedcohort.report.table import Table
from fedcohort.study import page_data, ranking, report
from fedcohort.study.judge import judge_settings
from fedcohort.study.leaderboard import Leaderboard
from fedcohort.study.mean_tables import make_overall_row
from fedcohort.study.number_formats import MetricFormat, choose_metric_format, format_rank
from fedcohort.study.page_tables import make_difference_tables, make_settings_table, make_table
from fedcohort.study.results import drop_repeated_runs
from fedcohort.study.verdict import Ranks, Verdict


def write_leaderboard_page(leaderboard: Leaderboard) -> list[Path]:
    """Write the page, tables and figures of `leaderboard` into its folder; return their paths, the page first."""
    study, results = leaderboard.study, leaderboard.results
    result_values = ranking.collect_ranked_results(study, results)
    methods, unranked_methods = ranking.split_ranked_methods(study, result_values)
    ranks = ranking.rank_and_compare(study, result_values, methods)
    verdict = replace(judge_settings(study, results), ranks=ranks)
    fmt = choose_metric_format(study, next(iter(leaderboard.studies.values())).metric)
    all_ranks = {name: ranking.rank_and_compare(study, result_values, [*methods, name]) for name in unranked_methods}
    tables = {"settings": make_settings_table(study, verdict, fmt)}
    if ranks is not None:
        tables["overall"] = _make_ranked_methods_table(leaderboard, ranks, verdict, fmt)
    if valid_ranks := {method: method_ranks for method, method_ranks in all_ranks.items() if method_ranks is not None}:
        tables["others"] = _make_partial_table(leaderboard, valid_ranks, verdict, fmt)
    differences = []
    for name, member_study in leaderboard.studies.items():
        settings = {key: setting for key, setting in verdict.settings.items() if leaderboard.study_names[key] == name}
        titled_tables = make_difference_tables(study, replace(verdict, settings=settings), fmt) if settings else []
        tables |= report.name_tables(f"differences_{name}", [table for _, table in titled_tables])
        differences += [(f"{member_study.title}{title and f': {title}'}", table) for title, table in titled_tables]
    runs = drop_repeated_runs(row for key, row in results.done_runs() if key[0] in leaderboard.study_names)
    template_data = report.collect_shared_data(study, results, verdict, fmt) | {
        "board": leaderboard,
        "ranked_settings": [verdict.settings[name] for name in ranks.rank_table] if ranks else [],
        "summary": page_data.summarise_study(study, results, verdict, {}),
        "tables": tables,
        "differences": differences,
        "missing": _find_missing_results(leaderboard, verdict, [name for name in all_ranks if name not in valid_ranks]),
        "runs_by_study": Counter(leaderboard.study_names[row["cell"]] for row in runs),
        "origin": page_data.summarise_runs_by_commit(runs),
    }
    metric_by_setting = {setting: leaderboard.studies[name].metric for setting, name in leaderboard.study_names.items()}
    numbers_csv = report.make_numbers_frame(study, verdict, metric_by_setting).to_csv(index=False, lineterminator="\n")
    return report.save_report_files(study, "leaderboard.md.j2", template_data, tables, {"numbers": numbers_csv})


def _make_ranked_methods_table(leaderboard: Leaderboard, ranks: Ranks, verdict: Verdict, fmt: MetricFormat) -> Table:
    """Return the table of ranked methods, with the mean rank in each study if there are several.

    Args:
        leaderboard: the leaderboard.
        ranks: ranks of the methods.
        verdict: verdict on the joined study.
        fmt: format of differences.
    """
    settings_by_study: dict[str, list[str]] = {}
    for setting in ranks.rank_table:
        settings_by_study.setdefault(leaderboard.study_names[setting], []).append(setting)
    table_rows, rank_positions = [], ranks.find_rank_positions()
    for method in ranks.mean_ranks:
        table_row = make_overall_row(leaderboard.study, ranks, method, verdict, fmt)
        table_row["method"] = f"{rank_positions[method]}. {method}"
        if len(settings_by_study) > 1:
            for study_name, settings in settings_by_study.items():
                mean_rank = fmean(ranks.rank_table[setting][method] for setting in settings)
                table_row[f"rank: {leaderboard.label_prefixes[study_name]} ({len(settings)})"] = format_rank(mean_rank)
        table_rows.append(table_row)
    return make_table(table_rows, f"Methods over {len(ranks.rank_table)} settings, differences in {fmt.unit}")


def _make_partial_table(
    leaderboard: Leaderboard, all_ranks: Mapping[str, Ranks], verdict: Verdict, fmt: MetricFormat
) -> Table:
    """Return the table of methods without results in some settings, each ranked in the settings that it has.

    Args:
        leaderboard: the leaderboard.
        all_ranks: for each of these methods, its ranks among the ranked methods in the settings that they share.
        verdict: verdict on the joined study.
        fmt: format of differences.
    """
    table_rows = []
    relative_ranks = {name: ranks.mean_ranks[name] / len(ranks.mean_ranks) for name, ranks in all_ranks.items()}
    for method, ranks in sorted(all_ranks.items(), key=lambda method_and_ranks: relative_ranks[method_and_ranks[0]]):
        rank_position_text = f"{ranks.find_rank_positions()[method]} of {len(ranks.mean_ranks)}"
        n_seeds = len({seed for seeds in ranks.seeds.values() for seed in seeds})
        table_row = {"method": method, "place": rank_position_text, "settings": len(ranks.rank_table), "seeds": n_seeds}
        table_rows.append({**table_row, **make_overall_row(leaderboard.study, ranks, method, verdict, fmt)})
    return make_table(table_rows, f"Methods that lack some of these settings, differences in {fmt.unit}")


def _find_missing_results(leaderboard: Leaderboard, verdict: Verdict, unranked_methods: list[str]) -> dict[str, object]:
    """Return the data on missing results for the template of the page.

    Args:
        leaderboard: the leaderboard.
        verdict: verdict on the joined study.
        unranked_methods: methods that share no setting with the ranked ones.

    Returns:
        A dictionary with the keys below.
        without_runs: number of settings without runs, by study.
        unranked: labels of settings without ranks, by the methods that lack them.
        repeated: labels of settings that are left out, by their study and the earlier one that has them.
        changed: runs that are left out because their configuration changed (`page_data.find_changed_runs`).
        unplaced: `unranked_methods`.
    """
    unranked_settings, repeated_settings = dict[tuple[str, ...], list[str]](), dict[tuple[str, str], list[str]]()
    for name, setting in verdict.settings.items() if verdict.ranks else ():
        if verdict.ranks and name not in verdict.ranks.rank_table:
            missing_methods = tuple(method for method in verdict.ranks.rank_by_method if method not in setting.methods)
            unranked_settings.setdefault(missing_methods, []).append(leaderboard.study.settings[name].label)
    for duplicate_setting, earlier_setting in leaderboard.duplicate_settings.items():
        name, _, setting_name = duplicate_setting.partition("/")
        setting_label = leaderboard.studies[name].settings[setting_name].label
        repeated_settings.setdefault((name, earlier_setting.partition("/")[0]), []).append(setting_label)
    changed_runs_by_study = dict[str, object]()
    for name, study in leaderboard.studies.items():
        changed_runs_by_study |= page_data.find_changed_runs(study, leaderboard.results_by_study[name])
    return {
        "without_runs": Counter(name for key, name in leaderboard.study_names.items() if key not in verdict.settings),
        "unranked": unranked_settings,
        "repeated": repeated_settings,
        "changed": changed_runs_by_study,
        "unplaced": unranked_methods,
    }
