"""One run of a study, in whichever process does it: the way of `train.py`, from composed words to a folder."""

import shutil
import time
from collections.abc import Callable
from concurrent.futures import Future
from copy import deepcopy
from dataclasses import dataclass, field
from functools import lru_cache, reduce
from operator import getitem
from pathlib import Path
from typing import Any

from fedcohort.errors import DataError, FedcohortError, IncompatibleConfig, OptionError, UndeclaredSignal, describe
from fedcohort.record import card
from fedcohort.record.folder import config_hash, list_runs, log_of
from fedcohort.record.history import read, wall_s
from fedcohort.round.budget import Budget
from fedcohort.startup import command_line, hydra_errors, overlay, run
from fedcohort.startup.compose import Composed
from fedcohort.study.at_work import WorkerDied
from fedcohort.study.definition import Words
from fedcohort.study.measure import Trajectory, measure
from fedcohort.study.results import DONE, FAILED, REFUSED, Key

REFUSALS = (OptionError, IncompatibleConfig, UndeclaredSignal)  # by the words; data that are missing may come
ENVIRONMENT = "${oc.env:"


@dataclass(frozen=True)
class Task:
    """A run that is to be done.

    Attributes:
        words: without the seed.
        configs: the folder of the groups.
        logs: where its folder is made.
        keep: whether that stays.
        resume: whether a run that a kill broke off goes on, and one that wasn't written down is not done again.
    """

    words: Words
    seed: int
    configs: Path
    logs: Path
    metric: str
    keep: bool
    resume: bool = True


@dataclass(frozen=True)
class Outcome:
    """What became of a task.

    Attributes:
        reason: of a refusal or a failure.
        facts, curve: of a run that is done.
        run_as: the cell, row and seed as which it was run, where that is another's place.
    """

    status: str
    reason: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    curve: Trajectory | None = None
    run_as: Key | None = None


def composed(task: Task) -> Composed:
    """Compose the config. Raises `FedcohortError`, Hydra's errors among them."""
    try:
        return _family(task.words, task.configs, task.logs, task.resume)(task.seed)
    except FedcohortError:
        raise
    except Exception as error:
        if line := hydra_errors.explain(error, task.words, task.configs):
            raise OptionError(line) from error
        raise


@lru_cache(maxsize=1000)
def _family(words: Words, configs: Path, logs: Path, resume: bool) -> Callable[[int], Composed]:
    command_line.check_words(words, configs)
    return overlay.seeds_of((*words, f"resume={str(resume).lower()}", f"paths.logs={logs}"), configs)


def identity_of(task: Task) -> dict[str, str]:
    """Return what tells a run from others of its seed: its hash, and its budget, which extends a run.

    Of an option that the environment decides (`dataset.path=${oc.env:DATA,null}`) the word counts, not what it is here:
    another machine has the same data elsewhere. Raises `FedcohortError`.
    """
    config = deepcopy(dict(composed(task).config))
    for word in task.words:
        key, _, value = word.lstrip("+").partition("=")
        if value.startswith(ENVIRONMENT):
            *groups, option = key.split(".")
            reduce(getitem, groups, config)[option] = value
    return {"config_hash": config_hash(config), "budget": str(Budget.of(config))}


def _tell_environment(task: Task) -> str:
    """Say where the study's words have their data from, as nobody types these; "" where they name no variable."""
    names = [word.partition(ENVIRONMENT)[2].partition(",")[0].rstrip("}") for word in task.words if ENVIRONMENT in word]
    return f" (here by the environment: {names[0]}=folder fedcohort study run ...)" if names else ""


def play(task: Task) -> Outcome:
    """Do it. An error is an outcome, a signal is not."""
    begun, begun_ms = time.monotonic(), time.time_ns() // 1_000_000
    try:
        folder = run.run(composed(task))
        facts, curve = measure(folder, task.metric)
        before_s = spent_before(folder, begun_ms)
    except REFUSALS as error:
        return Outcome(REFUSED, str(error))
    except FedcohortError as error:
        hint = _tell_environment(task) if isinstance(error, DataError) else ""
        return Outcome(FAILED, f"{error}{hint}{_name_log(task)}")
    except Exception as error:
        return Outcome(FAILED, f"{describe(error)}{_name_log(task)}")
    if not task.keep:
        shutil.rmtree(folder, ignore_errors=True)
    wall = before_s + time.monotonic() - begun
    return Outcome(DONE, "", {**facts, "wall_s": wall, "when": time.strftime("%Y-%m-%dT%H:%M:%S%z")}, curve)


def outcome_of(future: Future[Outcome], task: Task) -> Outcome:
    """Return the outcome of `task`, which a worker process plays: a process that dies has failed this run alone."""
    try:
        return future.result()
    except WorkerDied as death:
        return Outcome(FAILED, f"{death}; the same command resumes the run{_name_log(task)}")


def _name_log(task: Task) -> str:
    """Return "; log: <run folder>/run.log", with the newest folder of the task's run; "" where it has none."""
    try:
        folders = list_runs(task.logs / "runs", config_hash(composed(task).config), task.seed)
    except FedcohortError:
        return ""
    return log_of(max(folders, key=lambda folder: folder.stat().st_mtime)) if folders else ""


def spent_before(folder: Path, now_ms: int) -> float:
    """Return the seconds that processes before this one have trained the run in `folder`; 0 where it is the first.

    now_ms: when this one began with it, milliseconds since 1970.
    """
    starts = [start for start in card.starts_ms(folder) if start < now_ms]
    return wall_s(starts, [each for each in read(folder).times if each < now_ms]) if starts else 0.0
