"""What `fedcohort study run` does: the runs that are missing, one after the other in one process, or in several."""

from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from fedcohort.errors import FedcohortError, OptionError
from fedcohort.record import provenance
from fedcohort.startup.check import check
from fedcohort.study import evaluated
from fedcohort.study.at_work import Workers
from fedcohort.study.checks import named
from fedcohort.study.definition import BOUND, NAME, Study
from fedcohort.study.forecast import Forecast
from fedcohort.study.measure import summarise
from fedcohort.study.places import Place, clock_of
from fedcohort.study.play import Outcome, Task, composed, identity_of, outcome_of, play
from fedcohort.study.progress import CHANGED, COMPOSING, TO_DO, Progress, progress_of, settle, spell_s
from fedcohort.study.results import DONE, REFUSED, Key, Results, Row
from fedcohort.study.stamps import Stamps

Say = Callable[[str], None]
Ended = Generator[tuple[Place, int, Outcome], None, None]
Running = dict[Future[Outcome], tuple[Place, int, Task]]


@dataclass
class Work:
    """A study at work.

    Attributes:
        configs: the folder of the groups.
        logs: where run folders are made.
        keep: whether they stay when their results are written down.
        say: is told a line a run.
        again: "true" runs again what another commit computed, "changed" what `compare_code.py` found different.
    """

    study: Study
    found: Results
    configs: Path
    logs: Path
    keep: bool
    say: Say
    again: str = "false"
    stamps: Stamps = field(init=False)

    def run(self, places: Sequence[Place], seeds: Sequence[int], n_jobs: int) -> None:
        """Do what is missing, write each result down at once, and say what was refused or has failed.

        Raises `OptionError` before the first run: for words that nobody knows, and for `again` with code that no commit
        has, as nothing would tell what is done again.
        """
        if self.again == "true" and provenance.commit()[1]:
            raise OptionError("again=true goes by commits, and the code here has changes that are in none: commit them")
        self.stamps = Stamps(self.configs)
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
        tasks = self._find_new(todo)
        forecast, left = Forecast(self.found), {place.key(seed): place for place, seed in todo}
        with closing(self.play(tasks, n_jobs)) as ended:  # waits for processes before an error or a signal goes further
            for number, (place, seed, outcome) in enumerate(ended, 1):
                row = self._keep(place, seed, outcome)
                del left[place.key(seed)]
                if row["status"] == DONE and outcome.run_as is None:
                    forecast.learn(place, row["wall_s"])
                seconds, said = forecast.seconds(left.values()) / n_jobs, _describe(row, outcome.run_as)
                self.say(f"[{number}/{len(todo)}] {said}{f', {spell_s(seconds)} left' if seconds else ''}")

    def check(self, places: Sequence[Place]) -> None:
        """Make the parts of each regime's baseline and bounds, and of each row in a regime that it goes with.

        A word that nobody knows is found before the first run, and not hours later, and so is a `late` of more rounds
        than are evaluated. Raises `OptionError` that names it.
        """
        study, failed = self.study, dict[str, FedcohortError]()
        sound = set[str]()
        for place in places:
            is_base = place.row == study.baseline or place.row.startswith(BOUND)
            if is_base or place.row not in sound or evaluated.decides(study.words.get(place.row, ())):
                try:
                    found = composed(Task(place.words, 0, self.configs, self.logs, study.metric, self.keep))
                    check(found)
                except FedcohortError as error:
                    if is_base:
                        raise OptionError(f"{study.folder / NAME}: {place.cell}, {place.row}: {error}") from error
                    failed.setdefault(place.row, error)
                else:
                    with named(study.folder / NAME, ()):
                        evaluated.check(study, place, found.config)
                    sound.add(place.row)
        for row, why in failed.items():
            if row not in sound:
                raise OptionError(f"{study.folder / NAME}: {row}: {why}") from why

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

    def identity(self, place: Place) -> dict[str, str] | None:
        """Return what tells the place's runs from others, whatever their seed; None where they would be refused."""
        try:
            return identity_of(Task(place.words, 0, self.configs, self.logs, self.study.metric, self.keep))
        except FedcohortError:
            return None

    def _find_new(self, todo: Sequence[tuple[Place, int]]) -> Iterator[tuple[Place, int, Task | Outcome]]:
        """Yield what is to be done of each run; an outcome where it is known without training."""
        for place, seed in todo:
            task = Task(place.words, seed, self.configs, self.logs, self.study.metric, self.keep, self.again == "false")
            try:
                wanted = identity_of(task)
            except FedcohortError as error:
                yield place, seed, Outcome(REFUSED, str(error))
                continue
            yield place, seed, self._known(place, seed, wanted) or task

    def _known(self, place: Place, seed: int, wanted: dict[str, str]) -> Outcome | None:
        """Return the outcome of the same run, in this place or in another: a bound is often some other cell's."""
        own = place.key(seed)
        for key, row in sorted(self.found.done(), key=lambda each: each[0] != own):
            same = key[2] == seed and all(row[name] == value for name, value in wanted.items())
            if same and not self._is_old(row):
                return Outcome(DONE, "", row, self.found.curves[key], key)
        return None

    def play(self, tasks: Iterator[tuple[Place, int, Task | Outcome]], n_jobs: int) -> Ended:
        """Yield the outcome of each task, in the order in which they end; close it before anything else."""
        return self._in_turn(tasks) if n_jobs == 1 else self._together(tasks, n_jobs)

    def _in_turn(self, tasks: Iterator[tuple[Place, int, Task | Outcome]]) -> Ended:
        for place, seed, task in tasks:
            yield place, seed, play(task) if isinstance(task, Task) else task

    def _together(self, tasks: Iterator[tuple[Place, int, Task | Outcome]], n_jobs: int) -> Ended:
        """Yield outcomes as they come; no more tasks wait than there are processes, so that known ones are found."""
        running: Running = {}
        with Workers(n_jobs) as pool:
            try:
                for place, seed, task in tasks:
                    if isinstance(task, Outcome):
                        yield place, seed, task
                        continue
                    running[pool.submit(play, task)] = (place, seed, task)
                    while len(running) > n_jobs:
                        yield from _collect(running)
                while running:
                    yield from _collect(running)
            except BaseException:
                pool.shutdown(wait=True, cancel_futures=True)
                raise

    def _keep(self, place: Place, seed: int, outcome: Outcome) -> Row:
        """Write the outcome down, and return its row."""
        task = Task(place.words, seed, self.configs, self.logs, self.study.metric, self.keep)
        commit, dirty = provenance.commit()
        cell = self.study.cells[place.cell]
        row: Row = {"commit": commit, "dirty": dirty, **outcome.facts}
        row |= {"cell": place.cell, "selector": place.row, "seed": seed, "metric": self.study.metric}
        row |= {"status": outcome.status, "reason": outcome.reason, "stamp": self.stamps.of(place.words)}
        row["words"] = _spell(place, seed)
        if outcome.run_as is None and not row["dirty"]:
            row |= {"compared": row["commit"], "differs": ""}
        if outcome.curve is not None:
            row |= identity_of(task)
            row |= summarise(outcome.curve, self.study.late, cell.target, clock_of(place.words))
        self.found.put(row, outcome.curve)
        self.found.save()
        return self.found.rows[place.key(seed)]


def _collect(running: Running) -> Iterator[tuple[Place, int, Outcome]]:
    ended, _ = wait(running, return_when=FIRST_COMPLETED)
    for future in ended:
        place, seed, task = running.pop(future)
        yield place, seed, outcome_of(future, task)


def _spell(place: Place, seed: int) -> str:
    """The words that repeat a run."""
    return " ".join((*place.words, f"seed={seed}"))


def _describe(row: Row, run_as: Key | None) -> str:
    name = f"{row['cell']} {row['selector']} seed {row['seed']}"
    if run_as:
        return f"{name}: {row['late']:.4f}, which is {run_as[0]} {run_as[1]}"
    if row["status"] == DONE:
        return f"{name}: {row['late']:.4f} in {row['wall_s']:.1f} s"
    return f"{name}: {row['status']}: {row['reason']}"
