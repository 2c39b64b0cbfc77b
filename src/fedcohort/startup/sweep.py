"""What a sweep has come to, said after its last job: how its jobs ended, and the command that compares them.

The process that was started by hand may run no job itself: what it knows of them is in the sweep's folder (`jobs`).
"""

import logging
import os
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from hydra.conf import HydraConf
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.experimental.callback import Callback
from omegaconf import DictConfig

from fedcohort.errors import CheckpointError
from fedcohort.host import messages, slurm
from fedcohort.host.lock import hold
from fedcohort.record import card
from fedcohort.record.observer import RunInfo
from fedcohort.startup import answer, compat, jobs, nursery, outlook
from fedcohort.startup.jobs import LOCK, JobRecord, Plan, SweepJob, save_plan
from fedcohort.startup.outlook import KILLED, fail_killed, is_cancelled
from fedcohort.tracking import comparison, identity, membership

log = logging.getLogger("fedcohort")
POLL_S = 10.0  # seconds between two looks at SLURM's queue
GRID = "hydra_plugins.fedcohort.Grid"  # our sweeper over all combinations
NEVER = "it was never started"


@dataclass
class Sweep:
    """A sweep as the process sees it that was started by hand.

    Attributes:
        folder: its own, None where there is no sweep.
        launcher: the class of Hydra's that starts the jobs.
        expected: what each job is given; none where the sweeper makes that up as it goes.
        refused: words and reason of each job that was left out.
        report: whether its runs are compared at the end (`sweep.report`).
    """

    folder: Path | None = None
    launcher: str = ""
    expected: Sequence[Sequence[str]] = field(default_factory=list)
    refused: Sequence[tuple[Sequence[str], str]] = field(default_factory=list)
    report: bool = False
    _lock: IO[str] | None = None

    def begin(
        self, folder: Path, jobs: Sequence[Sequence[str]], refused: Sequence[tuple[Sequence[str], str]] = ()
    ) -> None:
        """Write down what is to be done, before the first job starts."""
        self.folder, self.expected, self.refused = folder, jobs, refused
        save_plan(folder, Plan(jobs, refused, self.launcher))
        self._lock = hold(folder / LOCK)

    def results(self) -> list[JobRecord]:
        """Return what became of all jobs: one that never said how it ended has failed."""
        if self.folder is None:
            return []
        found = jobs.read(self.folder)
        missing = {n: JobRecord(tuple(words), "failed", None, NEVER) for n, words in enumerate(self.expected)}
        ended = {number: fail_killed(each) if each.how == "running" else each for number, each in found.items()}
        return [record for _, record in sorted({**missing, **ended}.items())]

    def exit_code(self) -> int:
        """Say, after the last job, what failed, then the overview; return 1 where one has failed or was stopped."""
        if self.folder is None or not jobs.read(self.folder):
            return 0
        results = self.results()
        _name_failed(results)
        membership.send([info for record in results if record.how == "skipped" and (info := _find_tracked(record))])
        log.info("%s", self.overview(results))
        runs = _list_tracked(results)
        if self.report and runs:
            answer.tell(self.folder, runs)
        return 0 if all(record.how in ("done", "skipped") for record in results) else 1

    def overview(self, results: Sequence[JobRecord]) -> str:
        """Return the counts, and the command that compares the runs, where MLflow has any."""
        hows = {"done": "done", "skipped": "skipped (finished before)", "failed": "failed", "stopped": "stopped"}
        counts = {text: sum(record.how == how for record in results) for how, text in hows.items()}
        (how, first), *others = [(how, n) for how, n in counts.items() if n]
        phrases = [f"{first} job{'s' if first > 1 else ''} {how}", *(f"{n} {how}" for how, n in others)]
        phrases += [f"{len(self.refused)} left out (refused)"] if self.refused else []
        name = self.folder.name if self.folder else ""
        runs = _list_tracked(results)
        return " ".join(
            [f"sweep {name}: {', '.join(phrases)}.", *([comparison.command_of(name, runs)] if runs else [])]
        )

    def knows(self, error: BaseException) -> bool:
        """Whether a job has reported `error` already."""
        text = f"{type(error).__name__}: {error}"
        return any(record.reason.startswith(text) for record in self.results())

    def settle(self) -> None:
        """Wait for the jobs that SLURM still has: submitit's launcher leaves as soon as one of them is lost."""
        while self.launcher.endswith("SlurmLauncher") and self._list_queued():
            time.sleep(POLL_S)

    def _list_queued(self) -> list[str]:
        return slurm.list_queued(list_submitted(self.folder))

    def stop(self, code: int) -> bool:
        """A signal ends this process, or one of a job's. Say what failed so far, and what becomes of the rest.

        code: 128 + the signal's number, 0 where it came to a job alone. Returns whether all has been said.
        """
        if self.folder is None:
            return False
        _name_failed([record for record in self.results() if not record.reason.startswith((KILLED, NEVER))])
        if self.launcher.endswith("BasicLauncher"):  # the job that it came to says how to go on
            return False
        cancelled = is_cancelled(self.folder)
        if self.launcher.endswith("SlurmLauncher") and not cancelled and (left := self._list_queued()):
            log.warning("the jobs go on without this process; `scancel %s` ends them", " ".join(left))
            return code > 0
        if self.launcher.endswith("LocalLauncher"):
            _end([int(job) for job in list_submitted(self.folder)])
        for number, record in jobs.read(self.folder).items():  # joblib has ended its processes
            if record.how == "running" and self.launcher.endswith("JoblibLauncher"):
                SweepJob(self.folder, number, record.words, record.folder, began=record.began).note("stopped")
        log.warning("stopped; go on with: the same sweep and resume=true")
        return code > 0

    def opening_line(self, number: int) -> str:
        """Return the line for the job that begins: how many there are and about how long they take, "" for no sweep.

        It is of this process's own jobs, one after the other; number: from 0 on.
        """
        if self.folder is None or not self.expected:
            return ""
        standing = outlook.Outlook(Plan(self.expected), jobs.read(self.folder), alive=True)
        return outlook.line(number, len(self.expected), standing.seconds_left(time.time()))


SWEEP = Sweep()


class Announcement(Callback):
    """What Hydra calls when a sweep begins, before any job, in the process that was started by hand."""

    def on_multirun_start(self, config: DictConfig, **kwargs: object) -> None:
        messages.to_terminal()
        SWEEP.launcher = str(config.hydra.launcher._target_)
        if SWEEP.launcher.endswith("JoblibLauncher"):
            nursery.begin(config.hydra.launcher.get("inner_max_num_threads") or 1)
        if SWEEP.launcher.endswith("SlurmLauncher"):
            slurm.tell_of_accounts()
        SWEEP.report = config.sweep.report is True
        if config.hydra.sweeper._target_ != GRID:  # which begins when it has looked at the jobs
            SWEEP.begin(Path(config.hydra.sweep.dir).absolute(), split_jobs(config))


def list_submitted(folder: Path | None) -> list[str]:
    """Return the ids of submitit's jobs, of arrays without the task: SLURM's, or of local processes."""
    return sorted({path.name.partition("_")[0] for path in (folder or Path()).glob(".submitit/[0-9]*")})


def searches(config: DictConfig | HydraConf) -> bool:
    """Whether Hydra's sweeper makes up its jobs from what earlier ones returned. config: the node `hydra`."""
    return not str(config.sweeper._target_).endswith((GRID, "BasicSweeper"))


def split_jobs(config: DictConfig) -> list[list[str]]:
    """The words of each job of a sweep over all combinations; [] where the sweeper searches."""
    if searches(config.hydra):
        return []
    params = [f"{key}={value}" for key, value in (config.hydra.sweeper.params or {}).items()]
    parser = OverridesParser.create(config_loader=GlobalHydra.instance().config_loader())
    return compat.combinations(parser.parse_overrides([*params, *config.hydra.overrides.task]))


def _name_failed(results: Sequence[JobRecord]) -> None:
    """Name the failed jobs once more: their own lines have long gone by, or another process wrote them."""
    for record in results:
        if record.how == "failed":
            log.error("failed: %s: %s", " ".join(record.words), record.reason)


def _list_tracked(results: Sequence[JobRecord]) -> list[comparison.Run]:
    return [(info, record.words) for record in results if (info := _find_tracked(record)) is not None]


def _find_tracked(record: JobRecord) -> RunInfo | None:
    """The run of a job that is done, where MLflow knows it."""
    if record.how not in ("done", "skipped") or record.folder is None:
        return None
    try:
        return card.load(record.folder) if identity.load(record.folder) is not None else None
    except CheckpointError:  # it kept no journal
        return None


def _end(children: Sequence[int]) -> None:
    """End processes that this one has started, and wait until they have saved their round; others are left alone."""
    for act in (lambda child: os.kill(child, signal.SIGTERM), lambda child: os.waitpid(child, 0)):
        for child in children:
            with suppress(ChildProcessError, ProcessLookupError):
                if os.waitpid(child, os.WNOHANG) == (0, 0):
                    act(child)
