"""Write the report of a study: README.md, report.html, two figures, and the tables as .csv and .tex."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fedcohort.host import disk
from fedcohort.record.folder import write_atomically
from fedcohort.report.comparison.tables import show_p
from fedcohort.report.figure.methods import draw_map, draw_ranks
from fedcohort.report.render import document, render
from fedcohort.report.table import Table
from fedcohort.results.method_names import ORACLES, REFERENCES, describe_method, name_method
from fedcohort.results.metric import label_metric
from fedcohort.startup.compose import read_yaml
from fedcohort.study import overview, page_data, page_tables
from fedcohort.study.definition import METHOD, ORACLE, REFERENCE, Study
from fedcohort.study.formats import Format, format_of, number_range, power_of, relative_costs, write_share
from fedcohort.study.judge import judge
from fedcohort.study.results import Results, drop_repeated_runs, mark_oracles
from fedcohort.study.speed import AXES, measure_speeds, speed_tables
from fedcohort.study.verdict import Verdict

if TYPE_CHECKING:
    import pandas as pd

MAP, RANKS, TABLES = "map.png", "ranks.png", "tables"
PAGES = ("report.html", "README.md")
TABLE_PREFIXES = ("setting", "differences", "speed", "overall", "others", "correlations")  # beginnings of tables' names
TEMPLATE_FILTERS = {"p": show_p, "share": write_share, "power": power_of, "costs": relative_costs, "span": number_range}


def write(study: Study, results: Results) -> list[Path]:
    """Write all files into the study's folder, and return them, the page first.

    Raises `OptionError` if the folder has a page that was not written here, such as a user's own notes.
    """
    disk.check_outputs(study.folder, (*PAGES, MAP, RANKS), "README.md", "\n## How to read it\n")
    study = mark_oracles(study, results)
    verdict, fmt, speeds = judge(study, results), format_of(study, study.metric), measure_speeds(study, results)
    differences, faster = page_tables.difference_tables(study, verdict, fmt), speed_tables(study, verdict, speeds)
    tables = {"settings": page_tables.settings_table(study, verdict, fmt)}
    tables |= number_names("differences", [table for _, table in differences])
    tables |= page_tables.overall_table(study, verdict, fmt)
    for axis in AXES:
        tables |= number_names(f"speed_{axis}", [table for table_axis, _, table in faster if table_axis == axis])
    tables |= page_tables.correlation_table(study, results) | page_tables.mean_tables(study, results)
    setting_tables = {
        name: page_tables.setting_table(study, setting, fmt) for name, setting in verdict.settings.items()
    }
    data = shared_data(study, results, verdict, fmt) | {
        "summary": page_data.summarise(study, results, verdict, speeds),
        "tables": tables,
        "differences": differences,
        "speeds": [(AXES[axis], title, table) for axis, title, table in faster],
        "setting_tables": setting_tables,
        "missing": {
            "gaps": page_data.find_missing(study, verdict),
            "changed": page_data.find_changed(study, results),
        },
        "rejected": page_data.list_rejected(study, results),
        "origin": page_data.describe_origin(drop_repeated_runs(row for _, row in results.done_runs())),
    }
    tables = tables | {f"setting_{name}": table for name, table in setting_tables.items()}
    csv_by_name = {
        "numbers": numbers_frame(study, verdict).to_csv(index=False, lineterminator="\n"),
        "overview": overview.overview_csv(study, results, verdict, speeds, fmt),
    }
    return save(study, "study.md.j2", data, tables, csv_by_name)


def shared_data(study: Study, results: Results, verdict: Verdict, value_format: Format) -> dict[str, object]:
    """Draw the figures, and return the data that the templates of studies and of leaderboards have in common."""
    notes, figures = page_data.find_notes(study, results, verdict), draw(study, verdict, value_format)
    page_variables = {"study": study, "base": study.baseline, "verdict": verdict, "show": value_format}
    return {**page_variables, "notes": notes, "figures": figures, **TEMPLATE_FILTERS}


def number_names(name: str, tables: Sequence[Table]) -> dict[str, Table]:
    """Return the tables by file name: `name` for a single table, else `name_1`, `name_2` and so on."""
    return {name if len(tables) == 1 else f"{name}_{i}": table for i, table in enumerate(tables, start=1)}


def save(
    study: Study, template: str, data: Mapping[str, object], tables: Mapping[str, Table], csv_by_name: Mapping[str, str]
) -> list[Path]:
    """Write the page and its tables, remove tables that an earlier page had, and return all files, the page first.

    Args:
        study: the study, to whose folder the files are written.
        template: template of the page in Markdown; report.html contains the figures, and README.md names them only.
        data: data of the template.
        tables: the tables by name, written as .csv and .tex.
        csv_by_name: other .csv files, by name.
    """
    folder = study.folder
    (folder / TABLES).mkdir(parents=True, exist_ok=True)
    html, text = (render(template, with_figures=with_figures, **data) for with_figures in (True, False))
    files = {"report.html": document(study.title, html, folder), "README.md": text}
    for name, table in tables.items():
        files |= {f"{TABLES}/{name}.csv": table.csv(), f"{TABLES}/{name}.tex": table.latex()}
    files |= {f"{TABLES}/{name}.csv": content for name, content in csv_by_name.items()}
    for name, content in files.items():
        write_atomically(folder / name, content)
    for path in (folder / TABLES).iterdir():
        is_generated = path.name.startswith(TABLE_PREFIXES) and path.suffix in (".csv", ".tex") and path.is_file()
        if is_generated and f"{TABLES}/{path.name}" not in files:
            path.unlink()
    figures = [name for name in (MAP, RANKS) if (folder / name).exists()]
    return [folder / name for name in dict.fromkeys((*PAGES, *figures, *files))]


def draw(study: Study, verdict: Verdict, value_format: Format) -> list[tuple[str, str]]:
    """Draw the figures that have data, remove those of an earlier report, and return names with captions."""
    captions = {}
    for name in (MAP, RANKS):
        (study.folder / name).unlink(missing_ok=True)
    if names := list(dict.fromkeys(m.method for m in verdict.methods if m.role in (METHOD, ORACLE, REFERENCE))):
        _draw_map(study, verdict, names, value_format)
        captions[MAP] = f"Mean difference to {study.baseline} of each method in each setting, in {value_format.unit}"
    if verdict.ranks is not None:
        note = f"{study.title}; {len(verdict.ranks.by_setting)} settings; a rank does not say how far apart results are"
        by_method = verdict.ranks.by_method
        ranks = {name: (_group_of(study, name), rank.mean, rank.low, rank.high) for name, rank in by_method.items()}
        draw_ranks(ranks, study.baseline, note, study.folder / RANKS)
        captions[RANKS] = "Mean rank of each method over the settings"
    return list(captions.items())


def _group_of(study: Study, method: str) -> str:
    """Return the group of a method in figures: that of its role, or of its name."""
    return {ORACLE: ORACLES, REFERENCE: REFERENCES}.get(study.role_of(method)) or describe_method(method)[1]


def _draw_map(study: Study, verdict: Verdict, names: list[str], show: Format) -> None:
    import pandas as pd

    methods = [[setting.methods.get(name) for name in names] for setting in verdict.settings.values()]
    values = [[method.difference.mean * show.factor if method else math.nan for method in row] for row in methods]
    is_clear = np.array([[method is not None and method.sign != 0 for method in row] for row in methods])
    statistic = "mean of the last evaluations" if study.result == "late" else f"{study.result} evaluation"
    metric = " or ".join(map(label_metric, study.metric.split(" or ")))  # a leaderboard has several
    data = [f"dataset {override.split('=')[1]}" for override in study.common if override.startswith("dataset=")]
    seeds = number_range(method.value.n for method in verdict.methods)
    subtitle = f"{'; '.join([study.title, *data])}; {statistic} of {metric}; {seeds} seeds"
    title = f"Difference to {name_method(study.baseline)}, {show.unit} (bold*: significant)"
    difference = pd.DataFrame(values, [study.settings[name].label for name in verdict.settings], pd.Index(names))
    draw_map(difference, is_clear, [_group_of(study, name) for name in names], title, subtitle, study.folder / MAP)


def numbers_frame(study: Study, verdict: Verdict, metrics: Mapping[str, str] | None = None) -> "pd.DataFrame":
    """Return all numbers in the metric's own unit, one line a setting and method; infinite numbers and NaN are empty.

    metrics: metrics of each setting, where it is not the study's.
    """
    import pandas as pd

    def read(value: object, path: str) -> object:
        for name in path.split("."):
            value = value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
        return None if isinstance(value, float) and not math.isfinite(value) else value

    columns, lines = read_yaml(Path(__file__).with_name("numbers.yaml")), []
    for method in verdict.methods:
        line = {name: read(method, path) for name, path in columns.items()}
        has_target = study.settings[method.setting].target is not None
        line |= {"metric": (metrics or {}).get(method.setting, study.metric)}
        lines.append(line | {"reached": method.reached if has_target else None})
    return pd.DataFrame(lines, dtype=object)
