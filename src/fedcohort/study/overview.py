"""`studies/README.md`: the settings of all studies on one page, those first in which a method gains most.

Each report of a study leaves one line for each of its settings in `tables/overview.csv`. The page is made of those of
all studies, so that no study is judged again.
"""

import csv
import io
import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from statistics import mode

from fedcohort.errors import OptionError
from fedcohort.record.folder import write_atomically
from fedcohort.report.render import render
from fedcohort.results.correction import adjust
from fedcohort.startup.compose import file_of
from fedcohort.study import leaderboard
from fedcohort.study.definition import METHOD, NAME, Study
from fedcohort.study.formats import EMPTY, Format
from fedcohort.study.outcome import KINDS, NOTHING, OPEN, UNUSED, WON, kind_of
from fedcohort.study.results import Results, federations
from fedcohort.study.speed import Speeds
from fedcohort.study.speed_tables import name_faster
from fedcohort.study.verdict import RowVerdict, Verdict, over_of

TABLE, NUMBERS, PAGE = "tables/overview.csv", "tables/numbers.csv", "README.md"
LEVEL = 0.05  # of the one correction over all studies
SHOWN = {  # columns of the page
    "setting": "setting",
    "metric": "metric",
    "seeds": "seeds",
    "headroom": "headroom (oracle)",
    "better": "better",
    "worse": "worse",
    "faster": "faster to the target",
}
COLUMNS = ("cell", "kind", "largest", *SHOWN, "pays", "federation")
NAMED = 4  # methods that a cell names
Line = Mapping[str, str]
Place = tuple[str, str]  # study, cell


def lines_of(study: Study, results: Results, verdict: Verdict, speeds: Speeds, show: Format) -> str:
    """Return the lines of a study's settings as CSV."""
    known = federations(study, results)
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for cell in verdict.cells.values():
        better, gain = cell.winners(), cell.headroom.difference
        largest = over_of(better[0]).mean if better else gain.mean if gain else math.nan
        seeds = [over_of(row).n for row in cell.rows.values() if row.role == METHOD]
        writer.writerow(
            {
                "cell": cell.cell,
                "kind": kind_of(study, cell),
                "largest": repr(largest * show.factor),
                "setting": study.cells[cell.cell].label,
                "metric": study.metric,
                "seeds": mode(seeds) if seeds else "",
                "headroom": f"{show.difference(gain)} ({cell.headroom.oracle})" if gain else EMPTY,
                "better": _name(better, show, study.alpha),
                "worse": _name(cell.losers(), show, study.alpha),
                "faster": name_faster(study, cell.cell, speeds) or EMPTY,
                "pays": "yes" if cell.headroom.pays else "no",
                "federation": known.get(cell.cell, f"{study.name} {cell.cell}"),
            }
        )
    return out.getvalue()


def _name(rows: Sequence[RowVerdict], show: Format, alpha: float) -> str:
    """Return `**oort +2.4**, powd +1.1 and 3 more`, in bold face what stays after Holm over the whole study."""
    texts = [f"{row.row} {show.signed(over_of(row).mean)}" for row in rows[:NAMED]]
    bold = [f"**{text}**" if row.ps.anywhere < alpha else text for row, text in zip(rows, texts, strict=False)]
    more = f" and {len(rows) - NAMED} more" if len(rows) > NAMED else ""
    return ", ".join(bold) + more if rows else EMPTY


def write(studies: Path) -> Path:
    """Write the page over the studies in this folder, and return it."""
    write_atomically(studies / PAGE, page_of(studies))
    return studies / PAGE


def page_of(studies: Path) -> str:
    """Return the page as Markdown."""
    lines: list[tuple[str, Line]] = []
    without_page: dict[str, str] = {}
    for folder in sorted(path.parent for path in studies.glob(f"*/{NAME}")):
        of_study = _read(folder / TABLE)
        lines += [(folder.name, line) for line in of_study]
        if not of_study and (title := _title_of(folder)):
            without_page[folder.name] = title
    tests, better = _correct_over_all(studies, {name for name, _ in lines})
    by_kind = {
        kind: sorted((each for each in lines if each[1]["kind"] == kind), key=lambda each: -_number(each[1]["largest"]))
        for kind in (WON, UNUSED, OPEN, NOTHING)
    }
    return render(
        "studies.md.j2",
        by_kind=by_kind,
        columns=SHOWN,
        counts=_count(lines, tests, better),
        tests=tests.total(),
        settings=len(lines),
        names=sorted({name for name, _ in lines}),
        without_page=without_page,
    )


def _read(path: Path) -> list[Line]:
    """Return the lines of a study; none of a file that is missing or that an earlier version wrote."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        reader = csv.DictReader(file)
        return list(reader) if set(COLUMNS) <= set(reader.fieldnames or ()) else []


def _title_of(folder: Path) -> str:
    """Return the title of a study without a page; "" of a leaderboard. An unreadable file costs no other its page."""
    try:
        return "" if leaderboard.is_one(folder) else str(file_of(folder / NAME)["title"])
    except (OptionError, OSError, KeyError, TypeError, ValueError):  # it is being written
        return f"its {NAME} can't be read"


def _correct_over_all(studies: Path, names: Collection[str]) -> tuple[Counter[Place], set[Place]]:
    """Correct the p-values of all methods in all settings of these studies by one Holm.

    Returns the number of tests of each setting, and the settings where a method is still better.
    """
    tests: list[tuple[float, bool, Place]] = []
    for name in sorted(names):
        with (studies / name / NUMBERS).open(newline="") as file:
            rows = [row for row in csv.DictReader(file) if row["role"] == METHOD and row["diff_p"]]
        tests += [(float(row["diff_p"]), row["sign"] == "1", (name, row["cell"])) for row in rows]
    ps = adjust([p for p, _, _ in tests])
    better = {place for p, (_, is_better, place) in zip(ps, tests, strict=True) if is_better and p < LEVEL}
    return Counter(place for _, _, place in tests), better


def _count(lines: Sequence[tuple[str, Line]], tests: Counter[Place], better: Collection[Place]) -> dict[str, int]:
    """Count the settings of each kind; of several studies of one federation the largest counts, whatever it says."""
    federations: dict[str, list[tuple[str, Line]]] = {}
    for name, line in lines:
        federations.setdefault(line["federation"], []).append((name, line))

    def size(each: tuple[str, Line]) -> tuple[int, int, int]:
        """Return what decides: seeds, methods, and, of equals, the kind that claims least."""
        name, line = each
        return int(line["seeds"] or 0), tests[name, line["cell"]], KINDS.index(line["kind"])

    counted = [max(same, key=size) for same in federations.values()]
    repeated = [same for same in federations.values() if len(same) > 1]
    kinds = Counter(line["kind"] for _, line in counted)
    return {
        **{kind: kinds[kind] for kind in KINDS},
        "different": len(federations),
        "repeated": len(repeated),
        "disagree": sum(len({line["kind"] for _, line in same}) > 1 for same in repeated),
        "sure": sum((name, line["cell"]) in better for name, line in counted),
        "beyond": sum(line["kind"] == WON and line["pays"] == "no" for _, line in counted),
    }


def _number(text: str) -> float:
    """Return a number to sort by; an unknown one comes last."""
    value = float(text)
    return value if math.isfinite(value) else -math.inf
