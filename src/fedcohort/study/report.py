"""What `fedcohort study report` writes: README.md, report.html, two figures, and the tables as .csv and .tex."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from fedcohort.host import disk
from fedcohort.record.folder import write_atomically
from fedcohort.report.figure.study_map import RegimeMap, draw_map, draw_ranks
from fedcohort.report.render import document, render
from fedcohort.report.table import Table
from fedcohort.study import overview
from fedcohort.study.correlations import correlation_table
from fedcohort.study.definition import BESIDE, BOUND, METHOD, YARDSTICK, Study
from fedcohort.study.formats import Format, format_of, power_of, relative_costs, span, write_p, write_share
from fedcohort.study.judge import judge
from fedcohort.study.missing import list_changed, list_missing
from fedcohort.study.notes import find_notes
from fedcohort.study.numbers import numbers_frame
from fedcohort.study.outcome import find_outcome
from fedcohort.study.page_tables import difference_tables, overall_table, setting_table, settings_table
from fedcohort.study.results import DONE, Results, Row, list_runs, with_roles
from fedcohort.study.speed import measure_speeds
from fedcohort.study.speed_tables import AXES, speed_tables
from fedcohort.study.verdict import Verdict, over_of

MAP, RANKS, TABLES = "map.png", "ranks.png", "tables"
PAGES = ("report.html", "README.md")
# names of tables that an earlier report may have left; other files in the folder are the user's
OLD: tuple[str, ...] = (
    "setting",
    "differences",
    "speed",
    "overall",
    "others",
    "correlations",
    "cell",
    "regimes",
    "leaderboard",
)
OLD += ("follows", "among", "ranks")
FILTERS = {"p": write_p, "share": write_share, "power": power_of, "costs": relative_costs}


def write(study: Study, results: Results) -> list[Path]:
    """Write all files into the study's folder, and return them, the page first.

    Raises `OptionError` where the folder has a page that was not written here, such as a user's own notes.
    """
    disk.check_outputs(study.folder, (*PAGES, MAP, RANKS), "README.md", "\n## How to read it\n")
    study = with_roles(study, results)
    verdict, show, speeds = judge(study, results), format_of(study, study.metric), measure_speeds(study, results)
    tables = {"settings": settings_table(study, verdict, show)}
    differences = [(title, table) for title, table in difference_tables(study, verdict, show)]
    tables |= number_names("differences", [table for _, table in differences])
    if (overall := overall_table(study, verdict, show)) is not None:
        tables["overall"] = overall
    faster = speed_tables(study, verdict, speeds)
    for axis in AXES:
        tables |= number_names(f"speed_{axis}", [table for of_axis, _, table in faster if of_axis == axis])
    if (correlations := correlation_table(study, results)) is not None:
        tables["correlations"] = correlations
    of_settings = {cell: setting_table(study, verdict.cells[cell], show) for cell in verdict.cells}
    runs = list_runs(row for _, row in results.done())
    data = page_data(study, verdict, show) | {
        "outcome": find_outcome(study, results, verdict, speeds),
        "notes": find_notes(study, results, verdict),
        "figures": draw(study, verdict, show),
        "settings_table": tables["settings"],
        "differences": differences,
        "overall_table": overall,
        "speeds": [(AXES[axis], title, table) for axis, title, table in faster],
        "correlations": correlations,
        "setting_tables": of_settings,
        "missing": [*list_missing(study, verdict), *list_changed(study, results)],
        "rejected": _list_rejected(study, results),
        "origin": {"runs": len(runs), "hours": hours_of(runs), "commits": commits_of(runs)},
    }
    tables |= {f"setting_{cell}": table for cell, table in of_settings.items()}
    csv = {
        "numbers": numbers_frame(study, verdict).to_csv(index=False, lineterminator="\n"),
        "overview": overview.lines_of(study, results, verdict, speeds, show),
    }
    return save(study, "study.md.j2", data, tables, csv)


def page_data(study: Study, verdict: Verdict, show: Format) -> dict[str, object]:
    """Return what the templates of a study and of a leaderboard share."""
    return {"study": study, "base": study.baseline, "verdict": verdict, "show": show, "span": span, **FILTERS}


def number_names(name: str, tables: Sequence[Table]) -> dict[str, Table]:
    """Return the tables by file name: `name` for one, `name_1`, `name_2` and so on for several."""
    return {name: tables[0]} if len(tables) == 1 else {f"{name}_{i}": table for i, table in enumerate(tables, start=1)}


def save(
    study: Study, template: str, data: Mapping[str, object], tables: Mapping[str, Table], csv: Mapping[str, str]
) -> list[Path]:
    """Write the page and its tables, remove tables that an earlier page had, and return all files, the page first.

    Args:
        study: in whose folder the files are.
        template: of the page in Markdown; figures are inside report.html, and README.md names them only.
        data: what the template shows.
        tables: by name, written as .csv and .tex.
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
    for path in (path for name in OLD for path in (folder / TABLES).glob(f"{name}*")):
        if path.suffix in (".csv", ".tex") and f"{TABLES}/{path.name}" not in files and path.is_file():
            path.unlink()
    figures = [name for name in (MAP, RANKS) if (folder / name).exists()]
    return [folder / name for name in (*PAGES, *figures, *(name for name in files if name not in PAGES))]


def draw(study: Study, verdict: Verdict, show: Format) -> list[tuple[str, str]]:
    """Draw what can be drawn, remove a figure of an earlier report otherwise, and return names with captions."""
    drawn = []
    shown = _map_of(study, verdict, show)
    if shown.difference.size:
        draw_map(shown, study.folder / MAP)
        drawn.append((MAP, f"Mean difference to {study.baseline} of each method in each setting, in {show.unit}"))
    if verdict.ranks is not None:
        note = f"{len(verdict.ranks.cells)} settings; a rank does not say how far apart the results are"
        draw_ranks(verdict.ranks.mean, study.baseline, note, study.folder / RANKS)
        drawn.append((RANKS, "Mean rank of each method over the settings"))
    for name in {MAP, RANKS} - {name for name, _ in drawn}:
        (study.folder / name).unlink(missing_ok=True)
    return drawn


def _map_of(study: Study, verdict: Verdict, show: Format) -> RegimeMap:
    cells = list(verdict.cells.values())
    names = dict.fromkeys(row for cell in cells for row in cell.rows if row != study.baseline)
    groups = [
        [row for row in names if study.role_of(row) == role and not row.startswith(BOUND)]
        for role in (METHOD, YARDSTICK, BESIDE)
    ]
    rows = [row for group in groups for row in group]
    values, clear = np.full((len(cells), len(rows)), math.nan), np.zeros((len(cells), len(rows)), dtype=bool)
    for i, cell in enumerate(cells):
        for j, row in enumerate(rows):
            if row in cell.rows:
                values[i, j] = over_of(cell.rows[row]).mean * show.factor
                clear[i, j] = cell.rows[row].sign != 0
    ends = (len(groups[0]), len(groups[0]) + len(groups[1]))
    cuts = [end for end in dict.fromkeys(ends) if 0 < end < len(rows)]
    seeds = span(row.value.n for cell in cells for row in cell.rows.values())
    note = f"mean of the last evaluations of {study.metric}, seeds: {seeds}; methods | oracles | for reference"
    labels = [study.cells[cell.cell].label for cell in cells]
    return RegimeMap(labels, rows, values, clear, cuts, show.unit, study.baseline, note)


def _list_rejected(study: Study, results: Results) -> list[tuple[str, list[str]]]:
    """Return the reasons why runs have no result, with the rows and settings of each."""
    places: dict[str, dict[str, None]] = {}
    for (cell, row, _), facts in results.rows.items():
        if facts["status"] != DONE and cell in study.cells:
            reason = f"{facts['status']}: {facts['reason']}"
            places.setdefault(reason, {})[f"{row.removeprefix(BOUND)} in {study.cells[cell].label}"] = None
    return [(reason, list(names)) for reason, names in places.items()]


def hours_of(runs: Iterable[Row]) -> float:
    """Return the sum of the runs' wall time in hours."""
    return float(sum(row["wall_s"] for row in runs)) / 3600


def commits_of(runs: Iterable[Row]) -> dict[str, int]:
    """Return the number of runs of each commit."""
    return Counter(row["commit"][:10] + (" with uncommitted changes" if row["dirty"] else "") for row in runs)
