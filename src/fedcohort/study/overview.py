"""`studies/README.md`: the regimes of all studies on one page, those first in which a method wins most.

Each report of a study leaves a line for each of its regimes in `tables/overview.csv`, and the page is made of those of
all studies, so that it is written without judging any of them again.
"""

import csv
import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from statistics import mode

from fedcohort.errors import OptionError
from fedcohort.record.folder import write_atomically
from fedcohort.report.sheet import NONE, Sheet, write_csv
from fedcohort.results.correction import adjust
from fedcohort.results.metric import MetricUnit
from fedcohort.startup.compose import file_of
from fedcohort.study import leaderboard
from fedcohort.study.answer import KINDS, NOTHING, OPEN, UNUSED, WON, kind_of
from fedcohort.study.definition import METHOD, NAME, Study
from fedcohort.study.results import Results, federations
from fedcohort.study.sooner import spell_sooner
from fedcohort.study.speed import Speeds
from fedcohort.study.verdict import CellVerdict, RowVerdict, Verdict, over_of
from fedcohort.study.wording import count, spell_gap, spell_win

TABLE, NUMBERS, PAGE = "tables/overview.csv", "tables/numbers.csv", "README.md"
LEVEL = 0.05  # of the one correction over all studies
Place = tuple[str, str]  # study, cell
SHOWN_FACTS = ("metric", "seeds", "to win", "won by", "worse", "sooner")
FACTS = ("kind", "most", "regime", *SHOWN_FACTS, "federation", "cell", "headroom")
HEAD = ("regime", "study", "metric", "seeds", "to win", "won by", "worse", "sooner at the target")
SHOWN = 4  # methods that a line names
LEGEND = (
    "Differences are to random selection (to FedAvg, of aggregators) on the same seeds, of late means; of shares they "
    "are in points, and a study's page has their intervals. *To win*: what the best yardstick wins, which reads what "
    "no server can know, with its 95 % interval. A method is named where its p is below the study's level after Holm "
    "over the methods of the regime, in bold face where it is after Holm over all of the study's tests, too. A method "
    "that isn't named may still win or lose: the seeds don't show it. *Sooner at the target*: how many times as fast "
    "as random selection a method meets the target of its study, by virtual time, bytes and rounds, each by "
    "itself, and in brackets the client FLOPs and the bytes of its whole runs over those of random selection; a method "
    "that is named only there isn't shown to be better in the end."
)
HEADINGS = {
    WON: "A method is shown to win",
    UNUSED: "A yardstick wins, and no method is shown to",
    OPEN: "Not settled by the seeds so far",
    NOTHING: "Nothing that the yardsticks run there could win, or less than a difference is worth",
}
Line = Mapping[str, str]


def csv_of(study: Study, found: Results, verdict: Verdict, speeds: Speeds, u: MetricUnit) -> str:
    """Return the lines of a study's regimes."""
    known = federations(study, found)
    rows = []
    for cell in verdict.cells.values():
        federation = known.get(cell.cell, f"{study.name} {cell.cell}")
        sooner = spell_sooner(study, cell.cell, speeds)
        facts = {
            "sooner": sooner,
            "federation": federation,
            "cell": cell.cell,
            "headroom": "yes" if cell.headroom.pays else "no",
        }
        rows.append({**_line(study, cell, u), **facts})
    return write_csv([FACTS, *([line[name] for name in FACTS] for line in rows)])


def _line(study: Study, cell: CellVerdict, u: MetricUnit) -> Line:
    won = cell.winners()
    most = over_of(won[0]).mean if won else cell.headroom.difference.mean if cell.headroom.difference else math.nan
    return {
        "kind": kind_of(study, cell),
        "most": repr(most * u.factor),
        "regime": study.cells[cell.cell].label,
        "metric": study.metric,
        "seeds": _seeds(cell),
        "to win": spell_gap(cell, u),
        "won by": _spell(won, u, study.alpha),
        "worse": _spell(cell.losers(), u, study.alpha),
    }


def _seeds(cell: CellVerdict) -> str:
    """How many seeds most methods have; of their differences none has more."""
    counts = [over_of(row).n for row in cell.rows.values() if row.role == METHOD]
    return str(mode(counts)) if counts else NONE


def _spell(rows: Sequence[RowVerdict], u: MetricUnit, alpha: float) -> str:
    """`**oort +2.4**, powd +1.1 and 3 more`: in bold face what is left after a correction over the whole study."""
    sure = [f"**{spell_win(row, u)}**" if row.ps.anywhere < alpha else spell_win(row, u) for row in rows[:SHOWN]]
    more = f" and {len(rows) - SHOWN} more" if len(rows) > SHOWN else ""
    return ", ".join(sure) + more if rows else NONE


def write(studies: Path) -> Path:
    """Write the page over the studies in this folder, and return it."""
    write_atomically(studies / PAGE, page_of(studies))
    return studies / PAGE


def page_of(studies: Path) -> str:
    """Return the page as Markdown."""
    lines: list[tuple[str, Line]] = []
    bare = []
    for folder in sorted(path.parent for path in studies.glob(f"*/{NAME}")):
        if (folder / TABLE).exists():
            with (folder / TABLE).open(newline="") as file:
                lines += [(folder.name, line) for line in csv.DictReader(file)]
        elif title := _title_of(folder):
            bare.append(f"- [{folder.name}]({folder.name}/{NAME}): {title}")
    of = {kind: [each for each in lines if each[1]["kind"] == kind] for kind in KINDS}
    parts = ["# Where selection pays", "*All regimes of all studies, by what there is to win and who wins it.*"]
    parts += [_count(lines, _find_strict(studies, {name for name, _ in lines})), LEGEND]
    for kind, heading in HEADINGS.items():
        found = sorted(of[kind], key=lambda each: -_number(each[1]["most"]))
        rows = [
            (line["regime"], f"[{name}]({name}/{PAGE})", *(line.get(key, NONE) for key in SHOWN_FACTS))
            for name, line in found
        ]
        parts += [f"## {heading}", Sheet(kind, heading, HEAD, rows).markdown()] if rows else []
    parts += ["## Without a page", "\n".join(bare)] if bare else []
    return "\n\n".join([*parts, "`fedcohort study report NAME` writes this page anew, with that of the study."]) + "\n"


def _title_of(folder: Path) -> str:
    """Return the title of a study without a page; "" of a leaderboard. What can't be read costs no other its page."""
    try:
        return "" if leaderboard.is_one(folder) else str(file_of(folder / NAME)["title"])
    except (OptionError, OSError, KeyError, TypeError, ValueError):  # it is being written
        return f"its {NAME} can't be read"


def _find_strict(studies: Path, names: Collection[str]) -> tuple[Counter[Place], set[Place]]:
    """Correct the p-values of all methods in all regimes of these studies by one Holm.

    Returns how many tests each regime has, and the regimes where a method is still better.
    """
    tests: list[tuple[float, bool, Place]] = []
    for name in sorted(names):
        with (studies / name / NUMBERS).open(newline="") as file:
            rows = [row for row in csv.DictReader(file) if row["role"] == METHOD and row["diff_p"]]
        tests += [(float(row["diff_p"]), row["sign"] == "1", (name, row["cell"])) for row in rows]
    tests = [each for each in tests if math.isfinite(each[0])]
    ps = adjust([p for p, _, _ in tests])
    won = {place for p, (_, wins, place) in zip(ps, tests, strict=True) if wins and p < LEVEL}
    return Counter(place for _, _, place in tests), won


def _count(lines: Sequence[tuple[str, Line]], strict: tuple[Counter[Place], Collection[Place]]) -> str:
    """Count the regimes of each kind; of several studies of one regime the largest counts, whatever it says."""
    tests, won = strict
    regimes: dict[str, list[tuple[str, Line]]] = {}
    for name, line in lines:
        regimes.setdefault(line.get("federation") or f"{name} {line['regime']}", []).append((name, line))
    counted = [max(same, key=lambda each: _size(each, tests)) for same in regimes.values()]
    n = Counter(line["kind"] for _, line in counted)
    sure = sum((name, line.get("cell", "")) in won for name, line in counted)
    beyond = sum(line["kind"] == WON and line.get("headroom") == "no" for _, line in counted)
    many = [same for same in regimes.values() if len(same) > 1]
    differ = sum(len({line["kind"] for _, line in same}) > 1 for same in many)
    rule = (
        f"{len(many)} {'is' if len(many) == 1 else 'are'} in two studies or more, of which the one with the most seeds "
        f"counts, of equals the one with the most methods; in {differ} another study says something else"
    )
    once = f", {len(regimes)} different ones ({rule})" if many else ""
    return (
        f"Of {count(len(lines), 'regime')}{once}, **a method is significantly better in {sure}** after one Holm "
        f"correction over all {tests.total()} tests of methods on this page. The correction within each regime, "
        f"over its methods, leaves {n[WON]}; in {beyond} of these no yardstick is significantly better, so that the "
        f"win is no share of a headroom. In {n[UNUSED]} a yardstick is better and no method is, in {n[OPEN]} the seeds "
        f"don't settle it, and in {n[NOTHING]} the yardsticks that were run there win nothing, or less than a "
        "difference is worth. "
        f"Pages: {', '.join(f'[{name}]({name}/{PAGE})' for name in sorted({name for name, _ in lines}))}."
    )


def _size(each: tuple[str, Line], tests: Counter[Place]) -> tuple[int, int, int]:
    """Return what decides which study of a regime counts: seeds, methods, and, of equals, what says the least."""
    name, line = each
    seeds = int(line["seeds"]) if line["seeds"].isdigit() else 0
    return seeds, tests[name, line.get("cell", "")], KINDS.index(line["kind"])


def _number(text: str) -> float:
    """Return a number to sort by; what isn't known comes last."""
    value = float(text)
    return value if math.isfinite(value) else -math.inf
