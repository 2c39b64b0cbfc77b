"""`studies/README.md`: the regimes of all studies on one page, those first in which a method wins most.

Each report of a study leaves a line for each of its regimes in `tables/overview.csv`, and the page is made of those of
all studies, so that it is written without judging any of them again.
"""

import csv
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mode

from fedcohort.errors import OptionError
from fedcohort.observe.comparison.sheet import NONE, Sheet, write_csv
from fedcohort.observe.comparison.shown import MetricUnit
from fedcohort.record.folder import write_atomically
from fedcohort.startup.compose import file_of
from fedcohort.study import leaderboard
from fedcohort.study.answer import KINDS, NOTHING, OPEN, UNUSED, WON, kind_of
from fedcohort.study.definition import METHOD, NAME, Study
from fedcohort.study.results import Results, federations
from fedcohort.study.sooner import spell_sooner
from fedcohort.study.speed import Speeds
from fedcohort.study.verdict import CellVerdict, RowVerdict, Verdict, over_of
from fedcohort.study.wording import count, spell_gap, spell_win

TABLE, PAGE = "tables/overview.csv", "README.md"
SHOWN_FACTS = ("metric", "seeds", "to win", "won by", "worse", "sooner")
FACTS = ("kind", "most", "regime", *SHOWN_FACTS, "federation")
HEAD = ("regime", "study", "metric", "seeds", "to win", "won by", "worse", "sooner at the target")
SHOWN = 4  # methods that a line names
LEGEND = (
    "Differences are to random selection (to FedAvg, of aggregators) on the same seeds, of late means; of shares they "
    "are in points, and a study's page has their intervals. *To win*: what the best yardstick wins, which reads what "
    "no server can know, with its 95 % interval. A method is named where its p is below the study's level after Holm "
    "over its regimes there, in bold face where it is after Holm over all of the study's tests, too. Who isn't named "
    "may still win or lose: the seeds don't show it. *Sooner at the target*: how many times as fast as random "
    "selection a method first meets the value that its study asks for, by virtual time, bytes and rounds, each by "
    "itself; whoever is named only there isn't shown to be better in the end."
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
        rows.append({**_line(study, cell, u), "sooner": sooner, "federation": federation})
    return write_csv([FACTS, *([line[name] for name in FACTS] for line in rows)])


def _line(study: Study, cell: CellVerdict, u: MetricUnit) -> Line:
    won = cell.winners()
    most = over_of(won[0]).mean if won else cell.gap.over.mean if cell.gap else math.nan
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
    sure = [f"**{spell_win(row, u)}**" if row.p_all < alpha else spell_win(row, u) for row in rows[:SHOWN]]
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
    parts += [_count(of), LEGEND]
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


def _count(of: Mapping[str, Sequence[tuple[str, Line]]]) -> str:
    """Count the regimes of each kind; a federation that several studies have counts once, as the best said of it."""
    kinds: dict[str, list[str]] = {}
    for kind, found in of.items():  # the best first
        for _, line in found:
            kinds.setdefault(line.get("federation", line["regime"]), []).append(kind)
    n = Counter(said[0] for said in kinds.values())
    studies = {name for found in of.values() for name, _ in found}
    many = [said for said in kinds.values() if len(said) > 1]
    differ = sum(len(set(said)) > 1 for said in many)
    several = f"{len(many)} {'is' if len(many) == 1 else 'are'} in two studies or more, which don't say the same"
    once = f"{several} of {differ}: each counts once, as the best that is said of it"
    twice = f", {len(kinds)} different ones ({once})" if many else ""
    return (
        f"Of {count(sum(map(len, of.values())), 'regime')}{twice}, **a method is shown to win in {n[WON]}**; in "
        f"{n[UNUSED]} a yardstick wins and no method is shown to, in {n[OPEN]} the seeds don't settle it, and in "
        f"{n[NOTHING]} the yardsticks that were run there win nothing, or less than a difference is worth. "
        f"Pages: {', '.join(f'[{name}]({name}/{PAGE})' for name in sorted(studies))}."
    )


def _number(text: str) -> float:
    """Return a number to sort by; what isn't known comes last."""
    value = float(text)
    return value if math.isfinite(value) else -math.inf
