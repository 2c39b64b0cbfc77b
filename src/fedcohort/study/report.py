"""What `fedcohort study report` writes: README.md, report.html, two pictures, and the tables as .csv and .tex."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fedcohort.host import disk
from fedcohort.record.folder import write_atomically
from fedcohort.report.figure.study_map import RegimeMap, draw_map, draw_ranks
from fedcohort.report.sheet import Sheet
from fedcohort.results.metric import MetricUnit
from fedcohort.study import answer, cautions, follows, overview, sheets, sooner, web
from fedcohort.study.definition import BESIDE, BOUND, METHOD, YARDSTICK, Study
from fedcohort.study.judge import judge
from fedcohort.study.missing import list_changed, list_missing
from fedcohort.study.results import DONE, Results, Row, list_runs, with_roles
from fedcohort.study.speed import measure_speeds
from fedcohort.study.verdict import Verdict, over_of
from fedcohort.study.wording import points, unit_of_study

MAP, RANKS, TABLES = "map.png", "ranks.png", "tables"
MANY = ("cell", "speed", "among", "ranks", "differences")  # kinds of tables of which a study may have some


@dataclass(frozen=True)
class Page:
    """The page before it is Markdown or HTML. pictures: name of the file, and what it shows."""

    study: Study
    opening: Sequence[str]
    pictures: Sequence[tuple[str, str]]
    overview: Sequence[Sheet]
    cells: Sequence[Sheet]
    cautions: Sequence[str]
    missing: Sequence[str]
    refused: Sequence[str]
    origin: Sequence[str]


def write(study: Study, found: Results) -> list[Path]:
    """Write all files into the study's folder, and return them.

    Raises `OptionError` where the folder has a page that was not written here, such as a user's own notes.
    """
    disk.check_outputs(study.folder, ("README.md", "report.html", MAP, RANKS), "README.md", "\n## How to read it\n")
    study = with_roles(study, found)
    verdict, u = judge(study, found), unit_of_study(study.metric)
    speeds = measure_speeds(study, found)
    page = Page(
        study=study,
        opening=[*answer.answer(study, verdict, u), *sooner.count_sooner(study, speeds)],
        pictures=draw(study, verdict, u),
        overview=[
            sheets.sheet_of_cells(study, verdict, u),
            sheets.sheet_of_differences(study, verdict, u),
            sheets.sheet_of_ranks(study, verdict, u),
            *sooner.list_sheets(study, verdict, speeds),
            *follows.list_sheets(study, found),
        ],
        cells=[sheets.sheet_of_cell(study, cell, u) for cell in verdict.cells.values()],
        cautions=[
            *cautions.cautions(study, verdict, u),
            *sooner.tell_legend(speeds),
            *cautions.tell_early(study, found),
            *cautions.list_other_code(found),
        ],
        missing=[*list_missing(study, verdict), *list_changed(study, found)],
        refused=_list_refused(study, found),
        origin=_origin(study, found),
    )
    lines = overview.csv_of(study, found, verdict, speeds, u)
    return save(page, {"numbers": sheets.numbers_csv(study, verdict), "overview": lines})


def save(page: Page, more: Mapping[str, str]) -> list[Path]:
    """Write the page and its tables, and return all files; tables of an earlier page that has them no more go.

    more: tables that are .csv alone, by name.
    """
    study, tables = page.study, page.study.folder / TABLES
    tables.mkdir(exist_ok=True)
    texts = {"README.md": markdown(page), "report.html": web.render(page, study.folder)}
    texts |= {f"{TABLES}/{name}.csv": text for name, text in more.items()}
    for sheet in (*page.overview, *page.cells):
        texts[f"{TABLES}/{sheet.name}.csv"] = sheet.csv()
        texts[f"{TABLES}/{sheet.name}.tex"] = sheet.latex()
    for name, text in texts.items():
        write_atomically(study.folder / name, text)
    for path in (path for kind in MANY for path in tables.glob(f"{kind}_*")):
        if path.suffix in (".csv", ".tex") and f"{TABLES}/{path.name}" not in texts and not path.is_dir():
            path.unlink()
    return [study.folder / name for name in (*(name for name, _ in page.pictures), *texts)]


def markdown(page: Page) -> str:
    """Return the page as Markdown."""
    study = page.study
    parts = [f"# {study.title}", f"*{study.question}*", *page.opening]
    if page.pictures:  # they are built, not committed: a page does not show what its repository lacks
        named = " and ".join(f"{name} ({what})" for name, what in page.pictures)
        parts.append(f"`fedcohort study report {study.folder.name}` draws {named}.")
    for sheet in page.overview:
        parts += [f"## {sheet.title[0].upper()}{sheet.title[1:]}", sheet.markdown()] if sheet.rows else []
        parts += [sheet.note] if sheet.rows and sheet.note else []
    parts += ["## How to read it", "\n".join(f"- {line}" for line in page.cautions)]
    parts += ["## Regime by regime"] if page.cells else []
    for sheet in page.cells:
        words = " ".join(study.cells[sheet.name.removeprefix("cell_")].words)
        parts += [f"### {sheet.title}", f"`{words}`", sheet.markdown(), *([sheet.note] if sheet.note else [])]
    for title, lines in (("Missing", page.missing), ("Refused", page.refused), ("Where it comes from", page.origin)):
        parts += [f"## {title}", "\n".join(f"- {line}" for line in lines)] if lines else []
    return "\n\n".join(parts) + "\n"


def draw(study: Study, verdict: Verdict, u: MetricUnit) -> list[tuple[str, str]]:
    """Draw what can be drawn, and remove a picture of an earlier report that can't be drawn any more."""
    drawn = []
    picture = _map_of(study, verdict, u)
    if picture.difference.size:
        draw_map(picture, study.folder / MAP)
        drawn.append((MAP, f"difference to {study.baseline} of each selector in each regime"))
    if verdict.ranks is not None:
        note = f"{len(verdict.ranks.cells)} regimes; a rank doesn't say how far apart the results are"
        draw_ranks(verdict.ranks.mean, study.baseline, note, study.folder / RANKS)
        drawn.append((RANKS, "mean ranks of the methods over the regimes"))
    for name in {MAP, RANKS} - {name for name, _ in drawn}:
        (study.folder / name).unlink(missing_ok=True)
    return drawn


def _map_of(study: Study, verdict: Verdict, u: MetricUnit) -> RegimeMap:
    there = list(dict.fromkeys(row for cell in verdict.cells.values() for row in cell.rows if row != study.baseline))
    groups = [
        [row for row in there if study.role_of(row) == role and not row.startswith(BOUND)]
        for role in (METHOD, YARDSTICK, BESIDE)
    ]
    rows = [row for group in groups for row in group]
    cells = list(verdict.cells.values())
    values, clear = np.full((len(cells), len(rows)), math.nan), np.zeros((len(cells), len(rows)), dtype=bool)
    for i, cell in enumerate(cells):
        for j, row in enumerate(rows):
            if row in cell.rows:
                values[i, j] = over_of(cell.rows[row]).mean * u.factor
                clear[i, j] = cell.rows[row].sign != 0
    cuts = [len(groups[0]), len(groups[0]) + len(groups[1])]
    counts = sorted({each.value.n for cell in cells for each in cell.rows.values()})
    seeds = (
        f"{counts[0]} to {counts[-1]} seeds"
        if len(counts) > 1
        else f"{counts[0]} seed{'s' * (counts[0] > 1)}"
        if counts
        else ""
    )
    note = f"late means of {study.metric}, {seeds}; methods | yardsticks | beside"
    labels = [study.cells[cell.cell].label for cell in cells]
    shown = [cut for cut in dict.fromkeys(cuts) if 0 < cut < len(rows)]
    return RegimeMap(labels, rows, values, clear, shown, points(u), study.baseline, note)


def _list_refused(study: Study, found: Results) -> list[str]:
    """List what has no result, and why."""
    places: dict[str, dict[str, None]] = {}
    for (cell, row, _), facts in found.rows.items():
        if facts["status"] != DONE and cell in study.cells:
            why = f"{facts['status']}: {facts['reason']}"
            places.setdefault(why, {})[f"{row.removeprefix(BOUND)} in {study.cells[cell].label}"] = None
    return [f"{', '.join(where)}: {why}" for why, where in places.items()]


def _origin(study: Study, found: Results) -> list[str]:
    """Say which code and how many runs the page rests on, and how to get them again."""
    runs = list_runs(row for _, row in found.done())
    if not runs:
        return []
    return [
        f"{len(runs)} runs, {hours_of(runs):.1f} hours of one process; of commit {commits_of(runs)}.",
        "`results.parquet` has a line for each regime, row and seed, with the words that repeat its run, its config "
        "hash and its fingerprint; a bound that is another regime's run has a line of its own, and is no other run.",
        f"`fedcohort study run {study.name}` does what is missing, `selectors=mine` adds your own word of "
        f"configs/selector, `fedcohort study report {study.name}` writes this page.",
    ]


def hours_of(runs: Iterable[Row]) -> float:
    """Return how long the runs took, one after the other, in hours."""
    return float(sum(row["wall_s"] for row in runs)) / 3600


def commits_of(runs: Iterable[Row]) -> str:
    """Name the commits of the runs, and how many each has."""
    commits = Counter(row["commit"][:10] + (" with uncommitted changes" if row["dirty"] else "") for row in runs)
    return ", ".join(f"{name} ({n})" for name, n in commits.items())
