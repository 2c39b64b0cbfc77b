"""Write the report of a study: README.md, report.html, two figures, and the tables as .csv and .tex."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from fedcohort.host import disk
from fedcohort.record.folder import write_atomically
from fedcohort.report.figure.study_map import SettingMap, draw_map, draw_ranks
from fedcohort.report.render import document, render
from fedcohort.report.table import Table
from fedcohort.results.method_names import ORACLES, REFERENCES, describe_method
from fedcohort.results.metric import label_metric
from fedcohort.study import overview, page_tables
from fedcohort.study.definition import METHOD, ORACLE, REFERENCE, Study
from fedcohort.study.formats import Format, format_of, number_range, power_of, relative_costs, write_p, write_share
from fedcohort.study.judge import judge
from fedcohort.study.numbers import numbers_frame
from fedcohort.study.outcome import find_outcome
from fedcohort.study.results import Results, list_runs, with_oracles
from fedcohort.study.run_facts import describe_origin, find_notes, list_changed, list_missing, list_rejected
from fedcohort.study.speed import AXES, measure_speeds
from fedcohort.study.speed_tables import speed_tables
from fedcohort.study.verdict import Verdict

MAP, RANKS, TABLES = "map.png", "ranks.png", "tables"
PAGES = ("report.html", "README.md")
GENERATED = ("setting", "differences", "speed", "overall", "others", "correlations")  # beginnings of tables' names
WRITERS = {"p": write_p, "share": write_share, "power": power_of, "costs": relative_costs, "span": number_range}


def write(study: Study, results: Results) -> list[Path]:
    """Write all files into the study's folder, and return them, the page first.

    Raises `OptionError` if the folder has a page that was not written here, such as a user's own notes.
    """
    disk.check_outputs(study.folder, (*PAGES, MAP, RANKS), "README.md", "\n## How to read it\n")
    study = with_oracles(study, results)
    verdict, show, speeds = judge(study, results), format_of(study, study.metric), measure_speeds(study, results)
    tables = {"settings": page_tables.settings_table(study, verdict, show)}
    differences = page_tables.difference_tables(study, verdict, show)
    tables |= number_names("differences", [table for _, table in differences])
    if (overall := page_tables.overall_table(study, verdict, show)) is not None:
        tables["overall"] = overall
    faster = speed_tables(study, verdict, speeds)
    for axis in AXES:
        tables |= number_names(f"speed_{axis}", [table for of_axis, _, table in faster if of_axis == axis])
    if (correlations := page_tables.correlation_table(study, results)) is not None:
        tables["correlations"] = correlations
    setting_tables = {
        name: page_tables.setting_table(study, setting, show) for name, setting in verdict.settings.items()
    }
    data = page_data(study, results, verdict, show) | {
        "outcome": find_outcome(study, results, verdict, speeds),
        "settings_table": tables["settings"],
        "differences": differences,
        "overall_table": overall,
        "speeds": [(AXES[axis], title, table) for axis, title, table in faster],
        "correlations": correlations,
        "setting_tables": setting_tables,
        "missing": [*list_missing(study, verdict), *list_changed(study, results)],
        "rejected": list_rejected(study, results),
        "origin": describe_origin(list_runs(row for _, row in results.done())),
    }
    tables |= {f"setting_{name}": table for name, table in setting_tables.items()}
    csv = {
        "numbers": numbers_frame(study, verdict).to_csv(index=False, lineterminator="\n"),
        "overview": overview.lines_of(study, results, verdict, speeds, show),
    }
    return save(study, "study.md.j2", data, tables, csv)


def page_data(study: Study, results: Results, verdict: Verdict, show: Format) -> dict[str, object]:
    """Draw the figures, and return the data that the templates of studies and of leaderboards have in common."""
    notes, figures = find_notes(study, results, verdict), draw(study, verdict, show)
    shared = {"study": study, "base": study.baseline, "verdict": verdict, "show": show}
    return {**shared, "notes": notes, "figures": figures, **WRITERS}


def number_names(name: str, tables: Sequence[Table]) -> dict[str, Table]:
    """Return the tables by file name: `name` for one, `name_1`, `name_2` and so on for several."""
    return {name: tables[0]} if len(tables) == 1 else {f"{name}_{i}": table for i, table in enumerate(tables, start=1)}


def save(
    study: Study, template: str, data: Mapping[str, object], tables: Mapping[str, Table], csv: Mapping[str, str]
) -> list[Path]:
    """Write the page and its tables, remove tables that an earlier page had, and return all files, the page first.

    Args:
        study: in whose folder the files are.
        template: template of the page in Markdown; report.html contains the figures, and README.md names them only.
        data: data of the template.
        tables: the tables by name, written as .csv and .tex.
        csv: other .csv files, by name.
    """
    folder = study.folder
    (folder / TABLES).mkdir(exist_ok=True)
    html, text = (render(template, with_figures=with_figures, **data) for with_figures in (True, False))
    files = {"report.html": document(study.title, html, folder), "README.md": text}
    for name, table in tables.items():
        files |= {f"{TABLES}/{name}.csv": table.csv(), f"{TABLES}/{name}.tex": table.latex()}
    files |= {f"{TABLES}/{name}.csv": content for name, content in csv.items()}
    for name, content in files.items():
        write_atomically(folder / name, content)
    for path in (folder / TABLES).iterdir():
        is_generated = path.name.startswith(GENERATED) and path.suffix in (".csv", ".tex") and path.is_file()
        if is_generated and f"{TABLES}/{path.name}" not in files:
            path.unlink()
    figures = [name for name in (MAP, RANKS) if (folder / name).exists()]
    return [folder / name for name in dict.fromkeys((*PAGES, *figures, *files))]


def draw(study: Study, verdict: Verdict, show: Format) -> list[tuple[str, str]]:
    """Draw the figures that have data, remove those of an earlier report, and return names with captions."""
    captions = {}
    for name in (MAP, RANKS):
        (study.folder / name).unlink(missing_ok=True)
    setting_map = _map_of(study, verdict, show)
    if setting_map.difference.size:
        draw_map(setting_map, study.folder / MAP)
        captions[MAP] = f"Mean difference to {study.baseline} of each method in each setting, in {show.unit}"
    if verdict.ranks is not None:
        note = f"{study.title}; {len(verdict.ranks.by_setting)} settings; a rank does not say how far apart results are"
        spread = verdict.ranks.spread
        ranks = {name: (_group_of(study, name), rank, *spread[name]) for name, rank in verdict.ranks.mean.items()}
        draw_ranks(ranks, study.baseline, note, study.folder / RANKS)
        captions[RANKS] = "Mean rank of each method over the settings"
    return list(captions.items())


def _group_of(study: Study, method: str) -> str:
    """Return the group of a method in figures: that of its role, or of its name."""
    return {ORACLE: ORACLES, REFERENCE: REFERENCES}.get(study.role_of(method)) or describe_method(method)[1]


def _map_of(study: Study, verdict: Verdict, show: Format) -> SettingMap:
    settings = verdict.settings.values()
    names = list(dict.fromkeys(m.method for m in verdict.methods if m.role in (METHOD, ORACLE, REFERENCE)))
    methods = [[setting.methods.get(name) for name in names] for setting in settings]
    values = [[method.over.mean * show.factor if method else math.nan for method in row] for row in methods]
    is_clear = [[method is not None and method.sign != 0 for method in row] for row in methods]
    seeds = number_range(method.value.n for method in verdict.methods)
    statistic = "mean of the last evaluations" if study.result == "late" else f"{study.result} evaluation"
    data = [word.split("=")[1] for word in study.common if word.startswith("dataset=")]
    metric = " or ".join(map(label_metric, study.metric.split(" or ")))  # a leaderboard has several
    title = "; ".join([study.title, *(f"dataset {name}" for name in data)])
    note = f"{title}; {statistic} of {metric}; {seeds} seeds"
    labels = [study.settings[name].label for name in verdict.settings]
    shape = (len(settings), len(names))
    arrays = np.array(values).reshape(shape), np.array(is_clear, dtype=bool).reshape(shape)
    groups = [_group_of(study, name) for name in names]
    return SettingMap(labels, names, groups, *arrays, show.unit, study.baseline, note)
