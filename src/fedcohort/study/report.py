"""Write the report of a study: README.md, report.html, two figures, and the tables as .csv and .tex."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from fedcohort.host import disk
from fedcohort.record.folder import write_atomically
from fedcohort.report.comparison.tables import format_p
from fedcohort.report.figure.methods import draw_difference_map, draw_ranks
from fedcohort.report.render import render, render_document
from fedcohort.report.table import Table
from fedcohort.results.method_names import ORACLE_GROUP, REFERENCE_GROUP, describe_method, name_method
from fedcohort.results.metric import label_metric
from fedcohort.startup.compose import read_yaml
from fedcohort.study import mean_tables, number_formats, overview, page_data, page_tables
from fedcohort.study.definition import METHOD, ORACLE, REFERENCE, Study
from fedcohort.study.judge import judge_study
from fedcohort.study.number_formats import MetricFormat
from fedcohort.study.results import Results, drop_repeated_runs, mark_oracle_methods
from fedcohort.study.speed import COST_LABELS, make_speed_tables, measure_speed_ups
from fedcohort.study.verdict import Verdict

MAP_FIGURE, RANKS_FILE, TABLES_FOLDER = "map.png", "ranks.png", "tables"
PAGE_FILES = ("report.html", "README.md")
TABLE_PREFIXES = ("setting", "differences", "speed", "overall", "others", "correlations")  # beginnings of tables' names


def write_study_report(study: Study, results: Results) -> list[Path]:
    """Write the pages, tables and figures of `study` into its folder; return their paths, the page first.

    `results` are the study's stored results. Raises `OptionError` if the folder has a page that this command did not
    write, such as a user's own notes.
    """
    disk.reject_foreign_files(study.folder, (*PAGE_FILES, MAP_FIGURE, RANKS_FILE), "README.md", "\n## How to read it\n")
    study = mark_oracle_methods(study, results)
    verdict, speeds = judge_study(study, results), measure_speed_ups(study, results)
    fmt = number_formats.choose_metric_format(study, study.metric)
    difference_tables = page_tables.make_difference_tables(study, verdict, fmt)
    speed_tables = make_speed_tables(study, verdict, speeds)
    tables = {"settings": page_tables.make_settings_table(study, verdict, fmt)}
    tables |= name_tables("differences", [table for _, table in difference_tables])
    tables |= mean_tables.make_overall_table(study, verdict, fmt)
    for cost in COST_LABELS:
        tables |= name_tables(f"speed_{cost}", [table for table_cost, _, table in speed_tables if table_cost == cost])
    tables |= mean_tables.make_correlation_table(study, results) | mean_tables.make_mean_tables(study, results)
    setting_tables = {}
    for setting_name, setting in verdict.settings.items():
        setting_tables[setting_name] = page_tables.make_setting_table(study, setting, fmt)
    template_data = collect_shared_data(study, results, verdict, fmt) | {
        "summary": page_data.summarise_study(study, results, verdict, speeds),
        "tables": tables,
        "differences": difference_tables,
        "speeds": [(COST_LABELS[cost], title, table) for cost, title, table in speed_tables],
        "setting_tables": setting_tables,
        "missing": {
            "gaps": page_data.find_missing_runs(study, verdict),
            "changed": page_data.find_changed_runs(study, results),
        },
        "rejected": page_data.list_rejected_runs(study, results),
        "origin": page_data.summarise_runs_by_commit(drop_repeated_runs(row for _, row in results.done_runs())),
    }
    tables = tables | {f"setting_{setting_name}": table for setting_name, table in setting_tables.items()}
    csv_by_name = {
        "numbers": make_numbers_frame(study, verdict).to_csv(index=False, lineterminator="\n"),
        "overview": overview.format_overview(study, results, verdict, speeds, fmt),
    }
    return save_report_files(study, "study.md.j2", template_data, tables, csv_by_name)


def collect_shared_data(
    study: Study, results: Results, verdict: Verdict, metric_format: MetricFormat
) -> dict[str, object]:
    """Draw the figures, and return the variables that the templates of studies and of leaderboards share, by name.

    Args:
        study: the study's definition.
        results: the study's stored results.
        verdict: the study's verdict.
        metric_format: format of the metric's values.
    """
    page_notes = page_data.collect_page_notes(study, results, verdict)
    page_variables = {"study": study, "base": study.baseline, "verdict": verdict, "show": metric_format}
    figure_files = draw_study_figures(study, verdict, metric_format)
    return {**page_variables, "notes": page_notes, "figures": figure_files, "p": format_p, "formats": number_formats}


def name_tables(name: str, tables: Sequence[Table]) -> dict[str, Table]:
    """Return the tables by file name: `name` for a single table, else `name_1`, `name_2` and so on."""
    return {name if len(tables) == 1 else f"{name}_{i}": table for i, table in enumerate(tables, start=1)}


def save_report_files(
    study: Study,
    page_template: str,
    template_data: Mapping[str, object],
    tables: Mapping[str, Table],
    csv_by_name: Mapping[str, str],
) -> list[Path]:
    """Write a page and its tables, remove tables of an earlier page, and return all paths, the page first.

    Args:
        study: the study, to whose folder the files are written.
        page_template: template of the page in Markdown; report.html contains the figures, README.md only names them.
        template_data: variables of the template, by name.
        tables: the tables by name, written as .csv and .tex.
        csv_by_name: content of further .csv files, by name.
    """
    study_folder = study.folder
    (study_folder / TABLES_FOLDER).mkdir(parents=True, exist_ok=True)
    page_html, markdown_text = (
        render(page_template, with_figures=with_figures, **template_data) for with_figures in (True, False)
    )
    content_by_file = {"report.html": render_document(study.title, page_html, study_folder), "README.md": markdown_text}
    for name, table in tables.items():
        content_by_file |= {f"{TABLES_FOLDER}/{name}.csv": table.csv(), f"{TABLES_FOLDER}/{name}.tex": table.latex()}
    content_by_file |= {f"{TABLES_FOLDER}/{name}.csv": file_content for name, file_content in csv_by_name.items()}
    for name, file_content in content_by_file.items():
        write_atomically(study_folder / name, file_content)
    for file in (study_folder / TABLES_FOLDER).iterdir():
        is_generated_table = file.name.startswith(TABLE_PREFIXES) and file.suffix in (".csv", ".tex") and file.is_file()
        if is_generated_table and f"{TABLES_FOLDER}/{file.name}" not in content_by_file:
            file.unlink()
    figure_files = [name for name in (MAP_FIGURE, RANKS_FILE) if (study_folder / name).exists()]
    return [study_folder / name for name in dict.fromkeys((*PAGE_FILES, *figure_files, *content_by_file))]


def draw_study_figures(study: Study, verdict: Verdict, metric_format: MetricFormat) -> list[tuple[str, str]]:
    """Draw the figures that have data, remove those of an earlier report, and return file names with captions.

    Args:
        study: the study, to whose folder the figures are written.
        verdict: the study's verdict.
        metric_format: format of differences.
    """
    caption_by_figure = {}
    for name in (MAP_FIGURE, RANKS_FILE):
        (study.folder / name).unlink(missing_ok=True)
    if method_names := list(dict.fromkeys(m.method for m in verdict.methods if m.role in (METHOD, ORACLE, REFERENCE))):
        _draw_difference_map(study, verdict, method_names, metric_format)
        caption = f"Mean difference to {study.baseline} of each method in each setting, in {metric_format.unit}"
        caption_by_figure[MAP_FIGURE] = caption
    if verdict.ranks is not None:
        note = f"{study.title}; {len(verdict.ranks.rank_table)} settings; a rank does not say how far apart results are"
        mean_ranks = verdict.ranks.rank_by_method
        ranks = {m: (_find_method_group(study, m), rank.mean, rank.low, rank.high) for m, rank in mean_ranks.items()}
        draw_ranks(ranks, study.baseline, note, study.folder / RANKS_FILE)
        caption_by_figure[RANKS_FILE] = "Mean rank of each method over the settings"
    return list(caption_by_figure.items())


def _find_method_group(study: Study, method: str) -> str:
    """Return the group of methods with which `method` is shown in figures, and whose colour it has.

    Oracles and references of `study` have their own groups; the published name decides that of other methods.
    """
    return {ORACLE: ORACLE_GROUP, REFERENCE: REFERENCE_GROUP}.get(study.find_role(method)) or describe_method(method)[1]


def _draw_difference_map(study: Study, verdict: Verdict, methods: list[str], fmt: MetricFormat) -> None:
    verdicts = [[setting.methods.get(name) for name in methods] for setting in verdict.settings.values()]
    values = [[method.difference.mean * fmt.factor if method else math.nan for method in row] for row in verdicts]
    is_significant = np.array([[method is not None and method.sign != 0 for method in row] for row in verdicts])
    result_text = "mean of the last evaluations" if study.result == "late" else f"{study.result} evaluation"
    metric_label = " or ".join(map(label_metric, study.metric.split(" or ")))  # a leaderboard has several
    dataset_texts = [
        f"dataset {override.split('=')[1]}" for override in study.common_overrides if override.startswith("dataset=")
    ]
    seed_range = number_formats.format_integer_range(method.value.n for method in verdict.methods)
    figure_note = f"{'; '.join([study.title, *dataset_texts])}; {result_text} of {metric_label}; {seed_range} seeds"
    title = f"Difference to {name_method(study.baseline)}, {fmt.unit} (bold*: significant)"
    differences = pd.DataFrame(values, [study.settings[name].label for name in verdict.settings], pd.Index(methods))
    method_groups = [_find_method_group(study, name) for name in methods]
    draw_difference_map(differences, is_significant, method_groups, title, figure_note, study.folder / MAP_FIGURE)


def make_numbers_frame(
    study: Study, verdict: Verdict, metric_by_setting: Mapping[str, str] | None = None
) -> pd.DataFrame:
    """Return all numbers in the metric's own unit, a row per setting and method; infinite numbers and NaN are empty.

    The column `joules` is left out if no run measured energy.

    Args:
        study: the study's definition.
        verdict: the study's verdict.
        metric_by_setting: metric of each setting whose metric is not that of the study; None if there is none.
    """

    def read_field(value: object, attribute_path: str) -> object:
        for name in attribute_path.split("."):
            value = value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
        return None if isinstance(value, float) and not math.isfinite(value) else value

    path_by_column, table_rows = read_yaml(Path(__file__).with_name("numbers.yaml")), []
    if not any(method.costs.get("joules") for method in verdict.methods):
        del path_by_column["joules"]
    for method in verdict.methods:
        table_row = {name: read_field(method, attribute_path) for name, attribute_path in path_by_column.items()}
        setting_has_target = study.settings[method.setting].target is not None
        table_row |= {"metric": (metric_by_setting or {}).get(method.setting, study.metric)}
        table_rows.append(table_row | {"reached": method.n_reached_seeds if setting_has_target else None})
    return pd.DataFrame(table_rows, dtype=object)
