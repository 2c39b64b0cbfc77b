"""How far a study is: which runs are done, refused, failed or missing, and how long the rest may take."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fedcohort.jobs.time_left import TimeLeft
from fedcohort.record import provenance
from fedcohort.study.definition import BOUND, Study
from fedcohort.study.places import Place, list_places, with_own
from fedcohort.study.results import DONE, FAILED, REFUSED, Key, Results, Row
from fedcohort.study.stamps import Stamps

MISSING, CHANGED = "missing", "changed"
NAMED = 8  # rows that lack runs
TO_DO = (MISSING, CHANGED, FAILED)
COMPOSING = "yaml files of some runs have changed: composing tells which are still its own, some 10 places a second"
Identify = Callable[[Place], Mapping[str, str] | None]


@dataclass(frozen=True)
class Progress:
    """The runs that a study asks for, by how they are.

    Attributes:
        runs: in the order in which they are done, seed by seed, so that a study that was stopped is one of fewer seeds.
        how: of each: done, refused, failed, missing, or changed, where its words or the configs are others than those
            of its row, and only composing tells whether the run is.
    """

    runs: Sequence[tuple[Place, int]]
    how: Mapping[Key, str]

    def count(self, *hows: str) -> int:
        return sum(each in hows for each in self.how.values())


def progress_of(places: Sequence[Place], seeds: Sequence[int], found: Results, configs: Path) -> Progress:
    """Compare what is asked for with what is there."""
    of = Stamps(configs).of
    commit, dirty = provenance.commit()
    stamps = {(place.cell, place.row): of(place.words) for place in places}
    runs = [(place, seed) for seed in seeds for place in places if place.seeds is None or seed in place.seeds]
    how = {}
    for place, seed in runs:
        row = found.rows.get(place.key(seed))
        how[place.key(seed)] = _how(row, stamps[place.cell, place.row], commit, dirty)
    return Progress(runs, how)


def settle(at: Progress, found: Results, identity: Identify) -> Progress:
    """Tell apart, of what may have changed, the runs that are the same: they are done.

    identity: of a place's runs, whatever their seed (`tasks.identity_of`); None where they would be refused. It is
        asked once for each place.
    """
    how, known = dict(at.how), dict[tuple[str, str], Mapping[str, str] | None]()
    for place, seed in at.runs:
        own, key = (place.cell, place.row), place.key(seed)
        if how[key] == CHANGED:
            known[own] = known[own] if own in known else identity(place)
            wanted = known[own]
            same = wanted is not None and all(found.rows[key][name] == value for name, value in wanted.items())
            how[key] = DONE if same else CHANGED
    return Progress(at.runs, how)


def set_apart(study: Study, found: Results, configs: Path, identity: Identify, say: Callable[[str], None]) -> Results:
    """Return the results with those done runs marked whose config is another one now, or refused; a page has none.

    Of a row that neither `study.yaml` nor `configs` has any more nobody can tell: it stays.
    """
    rows = {row for (_, row, _), _ in found.done() if row not in study.words and not row.startswith(BOUND)}
    own = [row for row in sorted(rows) if (configs / "selector" / f"{row}.yaml").is_file()]
    seeds = sorted({seed for (_, _, seed), _ in found.done()})
    every = with_own(study, own, configs)
    named = list_places(every, rows=list(every.words))  # what was run on more seeds or in more cells counts as well
    at = progress_of(named, seeds, found, configs)
    if at.count(CHANGED):
        say(COMPOSING)
        at = settle(at, found, identity)
    return replace(found, changed=frozenset(key for key, how in at.how.items() if how == CHANGED))


def _how(row: Row | None, stamp: str, commit: str, dirty: bool) -> str:
    if row is None:
        return MISSING
    if row["status"] == DONE:
        return DONE if row["stamp"] == stamp else CHANGED
    if row["status"] == REFUSED:  # the same code refuses the same words again
        return REFUSED if row["stamp"] == stamp and row["commit"] == commit and row["dirty"] == dirty else MISSING
    return FAILED


def describe(study: Study, at: Progress, found: Results) -> str:
    """Say how far the study is, a line a fact."""
    lines = [f"{study.name}: {study.title}", f"done     {at.count(DONE)} of {len(at.runs)} runs"]
    lines.append(f"missing  {at.count(MISSING)}{_left(at, found, MISSING)}")
    if rows := list(dict.fromkeys(key[1].replace(BOUND, "bound ") for key, how in at.how.items() if how == MISSING)):
        more = f" and {len(rows) - NAMED} more rows" if len(rows) > NAMED else ""
        lines.append(f"  {', '.join(rows[:NAMED])}{more}")
    if changed := at.count(CHANGED):
        left = _left(at, found, CHANGED)
        lines.append(
            f"changed  {changed}{left}: words or configs are others now; `run` does again those whose config is"
        )
    lines += describe_code(study.name, [found.rows[key] for key, how in at.how.items() if how == DONE])
    for how in (REFUSED, FAILED):
        keys = [key for key, each in at.how.items() if each == how]
        lines.append(f"{how:8} {len(keys)}{_left(at, found, how) if how in TO_DO else ''}")
        for reason, where in _by_reason(keys, found).items():
            lines.append(f"  {where}: {reason}")
    return "\n".join(lines)


def describe_code(name: str, rows: Sequence[Row]) -> list[str]:
    """Describe which of these rows were computed by code that behaves differently, or were not compared with today's.

    Args:
        name: of the study.
        rows: of runs that are done.
    """
    lines, commit = [], provenance.commit()[0]
    if differ := [row for row in rows if row["differs"]]:
        lines.append(
            f"differs  {len(differ)}: computed by code that behaves differently; "
            f"`fedcohort study run {name} again=changed` runs them again"
        )
        lines += [f"  {where}" for where in dict.fromkeys(f"{row['selector']} in {row['cell']}" for row in differ)]
    if other := sum(row["compared"] != commit for row in rows):
        lines.append(f"code     {other} not compared with commit {commit[:10]}: fedcohort study check {name}")
    return lines


def forecast_of(found: Results) -> TimeLeft[tuple[str, str]]:
    """Return the estimate of how long runs take, by their cell and row, from those that are done."""
    forecast = TimeLeft[tuple[str, str]](lambda pair: (pair, pair[1], None))
    for (cell, row, _), facts in found.done():
        forecast.add((cell, row), facts["wall_s"])
    return forecast


def _left(at: Progress, found: Results, how: str) -> str:
    """Say how long the runs that are so may take; "" where nothing tells."""
    runs = [(place.cell, place.row) for place, seed in at.runs if at.how[place.key(seed)] == how]
    seconds = forecast_of(found).seconds(runs)
    return f", about {spell_s(seconds)} in one process" if seconds else ""


def _by_reason(keys: Sequence[Key], found: Results) -> dict[str, str]:
    """Return the places of each reason, without the seeds."""
    places: dict[str, dict[str, None]] = {}
    for key in keys:
        places.setdefault(str(found.rows[key]["reason"]), {})[f"{key[1]} in {key[0]}"] = None
    return {reason: ", ".join(where) for reason, where in places.items()}


def spell_s(seconds: float) -> str:
    """`40 s`, `12 min` or `3.5 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
