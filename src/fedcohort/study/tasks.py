"""Runs of a study as jobs of a sweep: their overrides, and what became of each."""

import shutil
import time
from collections.abc import Generator, Sequence
from contextlib import closing
from copy import deepcopy
from dataclasses import dataclass, field
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

from fedcohort.errors import FedcohortError, OptionError
from fedcohort.jobs.launch import Launch
from fedcohort.jobs.local import DIED
from fedcohort.record import card, sweep_folder
from fedcohort.record.folder import config_hash
from fedcohort.record.history import read, wall_s
from fedcohort.record.sweep_folder import JobRecord, Plan
from fedcohort.round.budget import Budget
from fedcohort.startup import command_line, hydra_errors, overlay
from fedcohort.startup.compose import Composed
from fedcohort.study.definition import Words
from fedcohort.study.measure import Trajectory, measure
from fedcohort.study.results import DONE, FAILED, REFUSED, Key

REFUSALS = ("OptionError", "IncompatibleConfig", "UndeclaredSignal")  # by the options; missing data may be added
ENVIRONMENT = "${oc.env:"
SWEEPS = "sweeps"  # in the folder of the study's logs


@dataclass(frozen=True)
class Task:
    """A run that is to be done.

    Attributes:
        words: its overrides, without the seed.
        configs: the folder of the groups.
        logs: where its folder is made.
        keep: whether that stays.
        resume: whether an interrupted run continues, and one that was not written down is not done again.
    """

    words: Words
    seed: int
    configs: Path
    logs: Path
    metric: str
    keep: bool
    resume: bool = True

    @property
    def overrides(self) -> Words:
        """The overrides of its job."""
        return (*self.words, f"resume={str(self.resume).lower()}", f"paths.logs={self.logs}", f"seed={self.seed}")


@dataclass(frozen=True)
class Outcome:
    """What became of a task.

    Attributes:
        reason: of a refusal or a failure.
        facts, curve: of a run that is done.
        run_as: the cell, row and seed as which it was run, where that is another condition.
        folder: of the run that is done.
    """

    status: str
    reason: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    curve: Trajectory | None = None
    run_as: Key | None = None
    folder: Path | None = None


def composed(task: Task) -> Composed:
    """Compose the config. Raises `FedcohortError`, for Hydra's errors too."""
    try:
        command_line.check_words(task.words, task.configs)
        return overlay.job_of(task.overrides, task.configs)
    except FedcohortError:
        raise
    except Exception as error:
        if line := hydra_errors.explain(error, task.words, task.configs):
            raise OptionError(line) from error
        raise


def identity_of(task: Task) -> dict[str, str]:
    """Return what distinguishes a run from others of its seed: its hash, and its budget, which extends a run.

    Of an option that the environment decides (`dataset.path=${oc.env:DATA,null}`) the override counts, not its value
    here: another machine has the same data elsewhere. Raises `FedcohortError`.
    """
    config = deepcopy(dict(composed(task).config))
    for word in task.words:
        key, _, value = word.lstrip("+").partition("=")
        if value.startswith(ENVIRONMENT):
            *groups, option = key.split(".")
            reduce(getitem, groups, config)[option] = value
    return {"config_hash": config_hash(config), "budget": str(Budget.from_config(config))}


def run_tasks(tasks: Sequence[Task], launch: Launch) -> Generator[tuple[int, Outcome], None, None]:
    """Run tasks as the jobs of a sweep; yield the position and the outcome of each as it ends.

    A run's folder is removed once the caller has asked for the next outcome, unless `keep` is set. The sweep's folder
    is removed when all jobs have ended; of a sweep that is not waited for, nothing is yielded.
    """
    if not tasks:
        return
    sweep, n_ended = new_sweep(tasks[0].logs), 0
    jobs = [task.overrides for task in tasks]
    sweep_folder.save_plan(sweep, Plan(jobs, launcher=launch.launcher))
    with closing(launch.run(sweep, dict(enumerate(jobs)), tasks[0].configs)) as ended:
        for number in ended:
            record = sweep_folder.read_record(sweep, number)
            outcome = read_outcome(record, tasks[number])
            yield number, outcome
            discard(outcome, tasks[number])
            n_ended += 1
    if n_ended == len(tasks):
        shutil.rmtree(sweep, ignore_errors=True)


def new_sweep(logs: Path) -> Path:
    """Return the folder of a new sweep in the folder of a study's logs."""
    return logs / SWEEPS / f"{time.strftime('%Y-%m-%d_%H-%M-%S')}_{time.time_ns() % 1_000_000_000 // 1000:06d}"


def discard(outcome: Outcome, task: Task) -> None:
    """Remove the run's folder, whose results were written down, unless it is to stay."""
    if outcome.folder is not None and not task.keep:
        shutil.rmtree(outcome.folder, ignore_errors=True)


def read_outcome(record: JobRecord | None, task: Task) -> Outcome:
    """Return what became of `task`, from the record of its job and the run's folder."""
    if record is None:
        return Outcome(FAILED, "its job never began")
    if record.how in ("done", "skipped") and record.folder is not None:
        try:
            facts, curve = measure(record.folder, task.metric)
        except FedcohortError as error:
            return Outcome(REFUSED if type(error).__name__ in REFUSALS else FAILED, str(error))
        began, ended = record.began or 0.0, record.ended or 0.0
        wall = spent_before(record.folder, int(1000 * began)) + ended - began
        when = time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(ended))
        return Outcome(DONE, "", {**facts, "wall_s": wall, "when": when}, curve, folder=record.folder)
    if record.how == "failed" and record.kind in REFUSALS:
        return Outcome(REFUSED, record.reason.partition("; log: ")[0])
    reason, separator, log = record.reason.partition("; log: ")
    if record.how == "stopped":
        reason = "its process was ended by a signal"
    if record.how == "stopped" or record.kind == DIED:
        reason += "; the same command resumes the run"
    if record.kind == "DataError":
        reason += _describe_environment(task)
    return Outcome(FAILED, f"{reason}{separator}{log}")


def _describe_environment(task: Task) -> str:
    """Say which variable names the data's folder, as nobody types these; "" where the study names no variable."""
    names = [word.partition(ENVIRONMENT)[2].partition(",")[0].rstrip("}") for word in task.words if ENVIRONMENT in word]
    return f" (here by the environment: {names[0]}=folder fedcohort study run ...)" if names else ""


def spent_before(folder: Path, now_ms: int) -> float:
    """Return the seconds that earlier processes trained the run in `folder`; 0 where this process is the first.

    now_ms: when this process began with it, milliseconds since 1970.
    """
    starts = [start for start in card.starts_ms(folder) if start < now_ms]
    return wall_s(starts, [each for each in read(folder).times if each < now_ms]) if starts else 0.0


def play(task: Task) -> Outcome:
    """Run one task in this process."""
    ((_, outcome),) = run_tasks([task], Launch())
    return outcome
