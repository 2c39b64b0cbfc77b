"""What `fedcohort study run` does: hand the runs that are missing to a launcher, and write each result at once."""

import shutil
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from fedcohort.errors import FedcohortError, OptionError
from fedcohort.jobs import status
from fedcohort.jobs.launch import Launch
from fedcohort.jobs.refused import Refusal, list_refused
from fedcohort.record import provenance, sweep_folder
from fedcohort.study import evaluated
from fedcohort.study.checks import key_of, named
from fedcohort.study.definition import BOUND, NAME, Study, Words
from fedcohort.study.measure import summarise
from fedcohort.study.own_rows import is_own
from fedcohort.study.places import Place, clock_of
from fedcohort.study.progress import CHANGED, COMPOSING, TO_DO, Progress, forecast_of, progress_of, settle, spell_s
from fedcohort.study.results import DONE, REFUSED, Key, Results, Row
from fedcohort.study.stamps import Stamps
from fedcohort.study.tasks import (
    REFUSALS,
    SWEEPS,
    Outcome,
    Task,
    composed,
    discard,
    identity_of,
    read_outcome,
    run_tasks,
)

Say = Callable[[str], None]
Run = tuple[Place, int]  # a condition and a seed


@dataclass
class Work:
    """A study at work.

    Attributes:
        configs: the folder of the groups.
        logs: where run folders are made.
        keep: whether they stay when their results are written down.
        say: prints a line.
        again: "true" runs again what another commit computed, "changed" what `compare_code.py` found different.
        launch: how jobs are started.
    """

    study: Study
    found: Results
    configs: Path
    logs: Path
    keep: bool
    say: Say
    again: str = "false"
    launch: Launch = field(default_factory=Launch)
    stamps: Stamps = field(init=False)
    _refusals: dict[Words, Refusal | None] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.stamps = Stamps(self.configs)

    def run(self, places: Sequence[Place], seeds: Sequence[int]) -> None:
        """Do what is missing, write each result at once, and say what was refused or has failed.

        Raises `OptionError` before the first run: for unknown options, for jobs of an earlier command that a cluster
        still has, and for `again` with uncommitted code, as nothing would tell what is done again.
        """
        if self.again == "true" and provenance.commit()[1]:
            raise OptionError("again=true goes by commits, and the code here has changes that are in none: commit them")
        if lines := self.collect(places, seeds):
            raise OptionError("\n".join([*lines, "wait for these jobs, or cancel them, before more are started"]))
        at = progress_of(places, seeds, self.found, self.configs)
        if at.count(CHANGED):
            self.say(COMPOSING)
            at = settle(at, self.found, self.identity)
            self._stamp(at)
        todo = [(place, seed) for place, seed in at.runs if self._is_to_do(at.how[place.key(seed)], place.key(seed))]
        rows = {place.row for place, _ in todo}
        self.check([place for place in places if place.row in rows])
        done = at.count(DONE) - sum(at.how[place.key(seed)] == DONE for place, seed in todo)
        self.say(f"{done} of {len(at.runs)} runs are done, {len(todo)} to do")
        forecast, missing = forecast_of(self.found), {place.key(seed): place for place, seed in todo}
        with closing(self._outcomes(todo)) as outcomes:  # an error or a signal ends the processes first
            for number, ((place, seed), outcome) in enumerate(outcomes, 1):
                row = self._keep(place, seed, outcome)
                del missing[place.key(seed)]
                if row["status"] == DONE and outcome.run_as is None:
                    forecast.learn((place.cell, place.row), row["wall_s"])
                pairs = [(each.cell, each.row) for each in missing.values()]
                seconds, line = forecast.seconds(pairs) / self.launch.n_jobs, _describe(row, outcome.run_as)
                self.say(f"[{number}/{len(todo)}] {line}{f', {spell_s(seconds)} left' if seconds else ''}")

    def collect(self, places: Sequence[Place], seeds: Sequence[int]) -> list[str]:
        """Write down the results of jobs that an earlier command started; return the status of sweeps that still run.

        A sweep whose jobs have all ended, or were killed, is removed: the next command does what is missing.
        """
        sweeps = sorted((self.logs / SWEEPS).glob(f"*/{sweep_folder.PLAN}"))
        if not sweeps:
            return []
        runs = {_condition(self.task(place, seed).overrides): (place, seed) for place in places for seed in seeds}
        lines = []
        for sweep in (path.parent for path in sweeps):
            for record in sweep_folder.read(sweep).values():
                place, seed = runs.get(_condition(record.words), (None, 0))
                is_new = record.folder is not None and record.folder.exists()
                if place is not None and is_new and record.how in ("done", "skipped"):
                    outcome = read_outcome(record, self.task(place, seed))
                    self.say(_describe(self._keep(place, seed, outcome), None))
                    discard(outcome, self.task(place, seed))
            plan = sweep_folder.read_plan(sweep)
            found = status.look(sweep, plan) if plan is not None else None
            if found is not None and found.waits:
                lines.append(
                    f"{status.describe(sweep.name, found)}\n  fedcohort sweep cancel {sweep.name} logs={self.logs}"
                )
            else:
                shutil.rmtree(sweep, ignore_errors=True)
        return lines

    def check(self, places: Sequence[Place]) -> None:
        """Make the components of each regime's baseline and bounds, and of each row in a regime that it goes with.

        Raises `OptionError` that names an unknown option, or a `late` of more rounds than are evaluated.
        """
        path, failed, sound = self.study.folder / NAME, dict[str, str](), set[str]()
        for place in places:
            is_base = place.row == self.study.baseline or place.row.startswith(BOUND)
            if not is_base and place.row in sound and not evaluated.decides(self.study.words.get(place.row, ())):
                continue
            if (refusal := self._refusal(place)) is None:
                with named(path, ()):
                    evaluated.check(self.study, place, composed(self.task(place, 0)).config)
                sound.add(place.row)
            elif is_base:
                raise OptionError(f"{path}: {place.cell}, {place.row}: {refusal.reason}")
            else:
                failed.setdefault(place.row, refusal.reason)
        for row, reason in failed.items():
            if row not in sound:
                raise OptionError(f"{path}: {row}: {reason}")

    def task(self, place: Place, seed: int) -> Task:
        """Return the run of a condition with a seed."""
        return Task(
            place.words, seed, self.configs, self.logs, self.study.metric, self.keep, resume=self.again == "false"
        )

    def identity(self, place: Place) -> dict[str, str] | None:
        """Return what distinguishes the condition's runs from others, whatever their seed; None for a refused one."""
        try:
            return identity_of(self.task(place, 0))
        except FedcohortError:
            return None

    def _stamp(self, at: Progress) -> None:
        """Write down that what is done is of today's words and configs, so that it needs no composing again."""
        fresh = {place.key(seed): place for place, seed in at.runs if at.how[place.key(seed)] == DONE}
        stamps = {key: self.stamps.of(place.words) for key, place in fresh.items()}
        old = [key for key, stamp in stamps.items() if self.found.rows[key]["stamp"] != stamp]
        for key in old:
            self.found.rows[key] |= {"stamp": stamps[key], "words": _spell(fresh[key], key[2])}
        if old:
            self.found.save()

    def _is_to_do(self, how: str, key: Key) -> bool:
        return how in TO_DO or (how == DONE and self._is_old(self.found.rows[key]))

    def _is_old(self, row: Row) -> bool:
        """Return whether `again` asks for the run of this row once more."""
        if self.again == "changed":
            return bool(row["differs"])
        return self.again == "true" and (row["dirty"] or row["commit"] != provenance.commit()[0])

    def _outcomes(self, todo: Sequence[Run]) -> Generator[tuple[Run, Outcome], None, None]:
        """Yield the outcome of each run; those known without training first. Equal runs are one job."""
        jobs, identities = dict[tuple[object, ...], list[Run]](), dict[Words, dict[str, str]]()
        for place, seed in todo:
            if (refusal := self._refusal(place)) is not None and refusal.kind in REFUSALS:
                yield (place, seed), Outcome(REFUSED, refusal.reason)
                continue
            if place.words not in identities:
                identities[place.words] = identity_of(self.task(place, seed))
            wanted = identities[place.words]
            if (outcome := self._known(place, seed, wanted)) is not None:
                yield (place, seed), outcome
            else:
                jobs.setdefault((seed, *wanted.values()), []).append((place, seed))
        groups = list(jobs.values())
        with closing(run_tasks([self.task(*runs[0]) for runs in groups], self.launch)) as outcomes:
            for number, outcome in outcomes:
                for place, seed in groups[number]:  # a bound is often another regime's baseline
                    known = self._known(place, seed, identities[place.words])
                    yield (place, seed), known if known is not None else outcome

    def _refusal(self, place: Place) -> Refusal | None:
        """Return why the condition's runs would be rejected before they read data; None where they would not."""
        if place.words not in self._refusals:
            task = self.task(place, 0)
            refusals = list_refused([task.words], lambda words: composed(task), self.configs)
            self._refusals[place.words] = next(refusals, None)
        return self._refusals[place.words]

    def _known(self, place: Place, seed: int, wanted: dict[str, str]) -> Outcome | None:
        """Return the outcome of the same run, in this condition or in another."""
        own = place.key(seed)
        for key, row in sorted(self.found.done(), key=lambda each: each[0] != own):
            same = key[2] == seed and all(row[name] == value for name, value in wanted.items())
            if same and not self._is_old(row):
                return Outcome(DONE, "", row, self.found.curves[key], key)
        return None

    def _keep(self, place: Place, seed: int, outcome: Outcome) -> Row:
        """Write the outcome down, and return its row."""
        commit, dirty = provenance.commit()
        cell = self.study.cells[place.cell]
        row: Row = {"commit": commit, "dirty": dirty, **outcome.facts}
        row |= {"cell": place.cell, "selector": place.row, "seed": seed, "metric": self.study.metric}
        row |= {"status": outcome.status, "reason": outcome.reason, "stamp": self.stamps.of(place.words)}
        row["words"] = _spell(place, seed)
        if outcome.run_as is None and not row["dirty"]:
            row |= {"compared": row["commit"], "differs": ""}
        if outcome.curve is not None:
            row |= identity_of(self.task(place, seed))
            row |= summarise(outcome.curve, self.study.late, cell.target, clock_of(place.words))
        self.found.put(row, outcome.curve, own=is_own(self.study, place.row))
        self.found.save()
        return self.found.rows[place.key(seed)]


def _condition(overrides: Sequence[str]) -> Words:
    """Return the overrides of a job without those that do not change its results."""
    return tuple(word for word in overrides if key_of(word) not in ("resume", "paths.logs"))


def _spell(place: Place, seed: int) -> str:
    return " ".join((*place.words, f"seed={seed}"))


def _describe(row: Row, run_as: Key | None) -> str:
    name = f"{row['cell']} {row['selector']} seed {row['seed']}"
    if run_as:
        return f"{name}: {row['late']:.4f}, which is {run_as[0]} {run_as[1]}"
    if row["status"] == DONE:
        return f"{name}: {row['late']:.4f} in {row['wall_s']:.1f} s"
    return f"{name}: {row['status']}: {row['reason']}"
