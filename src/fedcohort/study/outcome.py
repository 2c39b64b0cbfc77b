"""What a study's page says first: the kind of each setting, counts of settings, and the methods that are better."""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fedcohort import units
from fedcohort.results.correction import ANYWHERE, adjust_for_claim
from fedcohort.results.difference import Difference
from fedcohort.results.speed_up import judge_speed
from fedcohort.results.verdict import sign_of
from fedcohort.study.definition import BESIDE, LIMIT, METHOD, YARDSTICK, Study
from fedcohort.study.formats import span
from fedcohort.study.places import clock_of
from fedcohort.study.ranking import Ranks
from fedcohort.study.results import Results
from fedcohort.study.speed import Speeds
from fedcohort.study.verdict import CellVerdict, RowVerdict, Verdict, over_of

# kinds of settings: a method is better; an oracle is, and no method; no oracle gains; none of these
WON, UNUSED, NOTHING, OPEN = KINDS = ("won", "unused", "nothing", "open")


@dataclass(frozen=True)
class Setting:
    """A setting on the page.

    Attributes:
        label: name of the setting.
        kind: of `KINDS`.
        cell: its verdict.
        diverged: methods that diverged on more seeds than the baseline.
        above: rows that are no methods, and whose interval reaches above what a difference is worth, largest first.
    """

    label: str
    kind: str
    cell: CellVerdict
    diverged: Sequence[RowVerdict]
    above: Sequence[RowVerdict]


@dataclass(frozen=True)
class Overall:
    """The claims over all settings (C4), each list with the largest mean difference first.

    Attributes:
        settings: number of settings.
        seeds: number of common seeds.
        methods: number of methods that are tested.
        families: number of families of settings; 0 where they are too few for a test.
        better: methods that are significantly better over these settings, with the difference.
        worse: methods that are significantly worse, likewise.
        general: methods that are significantly better over families of settings.
        largest: the method with the largest mean difference, with the difference and p.
    """

    settings: int
    seeds: int
    methods: int
    families: int
    better: Sequence[tuple[str, Difference]]
    worse: Sequence[tuple[str, Difference]]
    general: Sequence[tuple[str, Difference]]
    largest: tuple[str, Difference]


@dataclass(frozen=True)
class Outcome:
    """What the first paragraphs of a page say.

    Attributes:
        settings: those with results, by kind.
        counts: settings of each kind.
        tests: tests of methods over all settings.
        anywhere: settings where a method is better after one correction over all tests (C3).
        horizons: where runs end, as "60 rounds".
        has_clock: whether a clock ends runs.
        seeds: of the study, as "10" or "5 to 10".
        so_far: seeds of what was run as far as these are fewer; "" where nothing is missing.
        overall: over all settings; None where methods can't be compared over them.
        faster: settings where a method is faster to the target, by axis (C3); None without a target.
    """

    settings: Sequence[Setting]
    counts: Mapping[str, int]
    tests: int
    anywhere: int
    horizons: Sequence[str]
    has_clock: bool
    seeds: str
    so_far: str
    overall: Overall | None
    faster: Mapping[str, int] | None


def find_outcome(study: Study, results: Results, verdict: Verdict, speeds: Speeds) -> Outcome:
    """Return what the first paragraphs of a page say."""
    settings = [_setting(study, cell) for cell in verdict.cells.values()]
    counts = Counter(setting.kind for setting in settings)
    baseline_runs = [row for (_, name, _), row in results.done() if name == study.baseline]
    return Outcome(
        settings=sorted(settings, key=lambda setting: (WON, UNUSED, OPEN, NOTHING).index(setting.kind)),
        counts={kind: counts[kind] for kind in KINDS},
        tests=verdict.tests,
        anywhere=sum(cell.wins_after_all(study.alpha) for cell in verdict.cells.values()),
        horizons=list(dict.fromkeys(_write_horizon(row["budget"]) for row in baseline_runs if row["budget"])),
        has_clock=any(clock_of((*study.common, *cell.words)) for cell in study.cells.values()),
        seeds=span(
            over_of(row).n for cell in verdict.cells.values() for row in cell.rows.values() if row.role == METHOD
        ),
        so_far=_count_seeds_so_far(study, list(verdict.cells.values())),
        overall=compare_overall(study, verdict.ranks),
        faster=_count_faster(study, speeds),
    )


def kind_of(study: Study, cell: CellVerdict) -> str:
    """Return the kind of a setting; NOTHING: no interval of an oracle reaches above what a difference is worth."""
    if cell.winners():
        return WON
    if cell.headroom.pays:
        return UNUSED
    oracles = [over_of(cell.rows[row]) for row in cell.headroom.oracles]
    # an oracle that equals the baseline on every seed has no interval
    ends = [over.high if math.isfinite(over.half) else over.mean for over in oracles]
    return NOTHING if oracles and all(end <= study.worth for end in ends) else OPEN


def _setting(study: Study, cell: CellVerdict) -> Setting:
    others = [
        row
        for row in cell.rows.values()
        if row.role in (LIMIT, BESIDE) or (row.role == YARDSTICK and row.row not in cell.headroom.oracles)
    ]
    above = [row for row in others if over_of(row).n >= study.enough and over_of(row).high > study.worth]
    above.sort(key=lambda row: -over_of(row).mean)
    kind = kind_of(study, cell)
    return Setting(study.cells[cell.cell].label, kind, cell, cell.lost(study.baseline), above)


def _write_horizon(budget: str) -> str:
    """Return `60 rounds`, or `5 h or 300 rounds`, of a budget in words."""
    limits = dict(re.findall(r"(\w+)=([\d.]+)", budget))
    parts = [f"{units.seconds(float(limits['virtual_s']))} of virtual time"] if "virtual_s" in limits else []
    parts += [f"{units.bytes_(float(limits['bytes']))}"] if "bytes" in limits else []
    return " or ".join([*parts, *([f"{limits['rounds']} rounds"] if "rounds" in limits else [])]) or budget


def _count_seeds_so_far(study: Study, cells: Sequence[CellVerdict]) -> str:
    """Return the numbers of seeds that were run, where these are fewer than the study asks for."""
    rows = [row for cell in cells for row in cell.rows.values() if study.asks(cell.cell, row.row)]
    if all(row.value.n >= len(study.seeds_of(row.row)) for row in rows):
        return ""
    return span(row.value.n for row in rows if row.row not in study.few or row.value.n < study.few[row.row])


def compare_overall(study: Study, ranks: Ranks | None) -> Overall | None:
    """Return the claims over all settings; None where methods are not compared over them."""
    if ranks is None or not ranks.contests:
        return None
    contests = ranks.contests
    order = sorted(contests, key=lambda row: -_sort_value(contests[row].seeds))
    families = [each.families for each in contests.values() if each.families]
    signs = {row: contests[row].sign(study) for row in order}
    return Overall(
        settings=len(ranks.cells),
        seeds=next(iter(contests.values())).seeds.n,
        methods=len(contests),
        families=families[0].n if families else 0,
        better=[(row, contests[row].seeds) for row in order if signs[row] > 0],
        worse=[(row, contests[row].seeds) for row in reversed(order) if signs[row] < 0],
        general=[
            (row, general)
            for row in order
            if (general := contests[row].families) and contests[row].sign_elsewhere(study) > 0
        ],
        largest=(order[0], contests[order[0]].seeds),
    )


def _sort_value(difference: Difference) -> float:
    return difference.mean if math.isfinite(difference.mean) else -math.inf


def _count_faster(study: Study, speeds: Speeds) -> dict[str, int] | None:
    """Return the settings where a method is faster after one correction over all methods and settings of the axis."""
    if not any(speeds.values()):
        return None
    counts = {"settings": len({cell for by_place in speeds.values() for cell, _ in by_place})}
    for axis, by_place in speeds.items():
        of_methods = {place: speed for place, speed in by_place.items() if study.role_of(place[1]) == METHOD}
        ps = adjust_for_claim({place: speed.up.p for place, speed in of_methods.items()}, ANYWHERE)
        faster = {
            place[0]
            for place, speed in of_methods.items()
            if sign_of(judge_speed(speed.up, ps[place], study.rules)) > 0
        }
        counts[axis] = len(faster)
    return counts
