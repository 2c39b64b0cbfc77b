"""Run the missing runs of a study with a launcher, and store each result at once (`fedcohort study run`)."""

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
from fedcohort.study import progress, tasks
from fedcohort.study.check_conditions import check_conditions
from fedcohort.study.conditions import Condition, Key
from fedcohort.study.config_digests import ConfigDigests
from fedcohort.study.definition import Study
from fedcohort.study.overrides import Overrides, option_of
from fedcohort.study.result_files import DONE, REFUSED, Row
from fedcohort.study.results import Results
from fedcohort.study.tasks import Outcome, Task, run_tasks

PrintLine = Callable[[str], None]
Run = tuple[Condition, int]  # a condition and a seed


@dataclass
class StudyRunner:
    """A study with its results, and how its runs are started.

    Attributes:
        configs: the folder of the groups.
        logs: folder in which run folders are created.
        keep: whether run folders are kept when their results are stored.
        say: prints a line.
        again: `true` repeats the runs of other commits, `changed` those that `compare_code.py` found different.
        launch: how jobs are started.
    """

    study: Study
    results: Results
    configs: Path
    logs: Path
    keep: bool
    say: PrintLine
    again: str = "false"
    launch: Launch = field(default_factory=Launch)
    digests: ConfigDigests = field(init=False)
    _refusals: dict[Overrides, Refusal | None] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.digests = ConfigDigests(self.configs)

    def run(self, conditions: Sequence[Condition], seeds: Sequence[int]) -> None:
        """Do the missing runs, store each result at once, and report refusals and failures.

        Raises `OptionError` before the first run: for unknown options, for jobs of an earlier command that a cluster
        still has, and for `again=true` with uncommitted code, whose runs could not be recognised.
        """
        if self.again == "true" and provenance.current_commit()[1]:
            raise OptionError("again=true compares commits, but this code has uncommitted changes: commit them first")
        if lines := self.collect(conditions, seeds):
            raise OptionError("\n".join([*lines, "wait for these jobs, or cancel them, before more are started"]))
        current = progress.progress_of(conditions, seeds, self.results, self.configs)
        if current.count(progress.CHANGED):
            self.say(progress.COMPOSING)
            current = progress.resolve_changes(current, self.results, self.identity)
            self._update_digests(current)
        to_do = {
            key: (condition, seed)
            for condition, seed in current.runs
            if current.states[key := condition.key(seed)] in progress.TO_DO
            or (current.states[key] == DONE and self._is_outdated(self.results.rows[key]))
        }
        methods = {condition.method for condition, _ in to_do.values()}
        self.check([condition for condition in conditions if condition.method in methods])
        n_done = current.count(DONE) - sum(current.states[key] == DONE for key in to_do)
        n_to_do, time_left = len(to_do), progress.estimate_time(self.results)
        self.say(f"{n_done} of {len(current.runs)} runs are done, {n_to_do} to do")
        with closing(self._outcomes(list(to_do.values()))) as outcomes:  # an error or a signal ends the processes first
            for number, ((condition, seed), outcome) in enumerate(outcomes, 1):
                row = self._store(condition, seed, outcome)
                del to_do[condition.key(seed)]
                if row["status"] == DONE and outcome.run_as is None:
                    time_left.learn((condition.setting, condition.method), row["wall_s"])
                seconds = time_left.seconds([key[:2] for key in to_do]) / self.launch.n_jobs
                time_text = f", {progress.format_seconds(seconds)} left" if seconds else ""
                self.say(f"[{number}/{n_to_do}] {_describe(row, outcome.run_as)}{time_text}")

    def collect(self, conditions: Sequence[Condition], seeds: Sequence[int]) -> list[str]:
        """Store the results of jobs that an earlier command started; return the status of sweeps that still run.

        A sweep whose jobs have all ended, or were killed, is removed: the next command does the missing runs.
        """
        sweeps = [path.parent for path in sorted((self.logs / tasks.SWEEPS).glob(f"*/{sweep_folder.PLAN_FILE}"))]
        runs = (
            {_identify_job(self.task(c, seed).job): (c, seed) for c in conditions for seed in seeds} if sweeps else {}
        )
        lines = []
        for sweep in sweeps:
            for record in sweep_folder.read(sweep).values():
                condition, seed = runs.get(_identify_job(record.words), (None, 0))
                is_new = record.folder is not None and record.folder.exists()
                if condition is not None and is_new and record.how in ("done", "skipped"):
                    outcome = tasks.read_outcome(record, self.task(condition, seed))
                    self.say(_describe(self._store(condition, seed, outcome), None))
                    tasks.discard(outcome, self.task(condition, seed))
            plan = sweep_folder.read_plan(sweep)
            state = status.read_status(sweep, plan) if plan is not None else None
            if state is not None and state.waits:
                cancel = f"fedcohort sweep cancel {sweep.name} logs={self.logs}"
                lines.append(f"{status.describe(sweep.name, state)}\n  {cancel}")
            else:
                shutil.rmtree(sweep, ignore_errors=True)
        return lines

    def check(self, conditions: Sequence[Condition]) -> None:
        """Check conditions before their runs. Raises `OptionError`."""
        check_conditions(self.study, conditions, self._refusal, lambda c: tasks.compose(self.task(c, 0)).config)

    def task(self, condition: Condition, seed: int) -> Task:
        """Return the run of a condition with a seed."""
        resume, metric = self.again == "false", self.study.metric
        return Task(condition.overrides, seed, self.configs, self.logs, metric, self.keep, resume)

    def identity(self, condition: Condition) -> dict[str, str] | None:
        """Return what distinguishes the runs of the condition from others; None for a condition that is refused."""
        try:
            return tasks.identity_of(self.task(condition, 0))
        except FedcohortError:
            return None

    def _update_digests(self, current: progress.Progress) -> None:
        """Store the present config digests of runs that are done, so that the next command need not compose them."""
        is_updated = False
        for condition, seed in current.runs:
            key = condition.key(seed)
            if current.states[key] == DONE:
                digest = self.digests.digest_of(condition.overrides)
                if self.results.rows[key]["stamp"] != digest:
                    self.results.rows[key] |= {"stamp": digest, "words": _spell(condition, seed)}
                    is_updated = True
        if is_updated:
            self.results.save()

    def _is_outdated(self, row: Row) -> bool:
        """Return whether the option `again` repeats the run of this row."""
        if self.again == "changed":
            return bool(row["differs"])
        return self.again == "true" and (row["dirty"] or row["commit"] != provenance.current_commit()[0])

    def _outcomes(self, runs: Sequence[Run]) -> Generator[tuple[Run, Outcome], None, None]:
        """Yield the outcome of each run, those known without training first. Equal runs are one job."""
        jobs, identities = dict[tuple[object, ...], list[Run]](), dict[Overrides, dict[str, str]]()
        for condition, seed in runs:
            if (refusal := self._refusal(condition)) is not None and refusal.kind in tasks.REFUSALS:
                yield (condition, seed), Outcome(REFUSED, refusal.reason)
                continue
            overrides = condition.overrides
            if overrides not in identities:
                identities[overrides] = tasks.identity_of(self.task(condition, seed))
            if (outcome := self._find_equal(condition, seed, identities[overrides])) is not None:
                yield (condition, seed), outcome
            else:
                jobs.setdefault((*identities[overrides].values(), seed), []).append((condition, seed))
        groups = list(jobs.values())
        with closing(run_tasks([self.task(*group[0]) for group in groups], self.launch)) as outcomes:
            for number, outcome in outcomes:
                for condition, seed in groups[number]:  # a bound of one setting can equal the baseline of another
                    equal = self._find_equal(condition, seed, identities[condition.overrides])
                    yield (condition, seed), equal if equal is not None else outcome

    def _refusal(self, condition: Condition) -> Refusal | None:
        """Return why the runs of the condition would be rejected before they read data; None if they are not."""
        if condition.overrides not in self._refusals:
            task = self.task(condition, 0)
            refusals = list_refused([task.overrides], lambda _: tasks.compose(task), self.configs)
            self._refusals[condition.overrides] = next(refusals, None)
        return self._refusals[condition.overrides]

    def _find_equal(self, condition: Condition, seed: int, identity: dict[str, str]) -> Outcome | None:
        """Return the stored outcome of an equal run, of this condition or another; None if there is none."""
        own_key = condition.key(seed)
        for key, row in sorted(self.results.done(), key=lambda item: item[0] != own_key):
            is_equal = key[2] == seed and all(row[name] == value for name, value in identity.items())
            if is_equal and not self._is_outdated(row):
                return Outcome(DONE, "", row, self.results.curves[key], key)
        return None

    def _store(self, condition: Condition, seed: int, outcome: Outcome) -> Row:
        """Store the outcome of a run, and return its row."""
        commit, dirty = provenance.current_commit()
        row: Row = {"commit": commit, "dirty": dirty, **outcome.facts}
        row |= {"cell": condition.setting, "selector": condition.method, "seed": seed, "metric": self.study.metric}
        row |= {
            "status": outcome.status,
            "reason": outcome.reason,
            "stamp": self.digests.digest_of(condition.overrides),
        }
        row["words"] = _spell(condition, seed)
        if outcome.run_as is None and not row["dirty"]:
            row |= {"compared": row["commit"], "differs": ""}
        if outcome.curve is not None:
            row |= tasks.identity_of(self.task(condition, seed))
        self.results.put(row, outcome.curve, is_own=self.study.is_own(condition.method))
        self.results.measure(self.study, condition.setting, condition.key(seed))
        self.results.save()
        return self.results.rows[condition.key(seed)]


def _identify_job(overrides: Sequence[str]) -> Overrides:
    """Return the overrides of a job without those that do not change its results."""
    return tuple(override for override in overrides if option_of(override) not in ("resume", "paths.logs"))


def _spell(condition: Condition, seed: int) -> str:
    return " ".join((*condition.overrides, f"seed={seed}"))


def _describe(row: Row, run_as: Key | None) -> str:
    name = f"{row['cell']} {row['selector']} seed {row['seed']}"
    if run_as:
        return f"{name}: {row['late']:.4f}, the same run as {run_as[0]} {run_as[1]}"
    if row["status"] == DONE:
        return f"{name}: {row['late']:.4f} in {row['wall_s']:.1f} s"
    return f"{name}: {row['status']}: {row['reason']}"
