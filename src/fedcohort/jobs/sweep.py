"""The sweep of this process: how its jobs ended, and the comparison of its runs after the last job.

The process that the user started may run no job itself, so it reads the records in the sweep's folder.
"""

import logging
import shlex
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from hydra.conf import HydraConf
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.experimental.callback import Callback
from omegaconf import DictConfig

from fedcohort.errors import CheckpointError, FedcohortError
from fedcohort.host import memory, messages
from fedcohort.host.commands import fedcohort_command
from fedcohort.host.lock import try_to_lock
from fedcohort.jobs import cluster, local, status
from fedcohort.jobs.status import KILLED_MESSAGE, is_cancelled, log_failed, mark_killed_as_failed
from fedcohort.record import metadata, sweep_folder
from fedcohort.record.sweep_folder import LOCK_FILE, JobRecord, Plan, SweepJob, save_plan
from fedcohort.report.comparison import page
from fedcohort.results.matching.question import Question
from fedcohort.startup import compat
from fedcohort.startup.comparison import publish, read_answer
from fedcohort.tracking import identity, sweeps
from fedcohort.tracking.runs import Query

log = logging.getLogger("fedcohort")
GRID = "hydra_plugins.fedcohort.Grid"  # our sweeper over all combinations
NEVER = "it was never started"
REPORT = "report"  # folder of the comparison, in the sweep's


@dataclass
class Sweep:
    """The sweep of this process, which a user started.

    Attributes:
        folder: folder of the sweep, None if this process has no sweep.
        plan: the jobs of the sweep; no jobs if the sweeper chooses them one by one.
        report: whether its runs are compared at the end (`sweep.report`).
        waits: whether this process waits for the jobs (`sweep.wait`).
    """

    folder: Path | None = None
    plan: Plan = field(default_factory=Plan)
    report: bool = False
    waits: bool = True
    _lock: IO[str] | None = None

    def begin(self, folder: Path, plan: Plan) -> None:
        """Write the plan of the sweep, before its first job starts."""
        self.folder, self.plan = folder, plan
        save_plan(folder, plan)
        self._lock = try_to_lock(folder / LOCK_FILE)

    def results(self) -> list[JobRecord]:
        """Return the records of all jobs. A job whose record does not say how it ended has failed."""
        if self.folder is None:
            return []
        records = {n: JobRecord(tuple(overrides), "failed", None, NEVER) for n, overrides in enumerate(self.plan.jobs)}
        for job_number, record in sweep_folder.read(self.folder).items():
            records[job_number] = mark_killed_as_failed(record) if record.how == "running" else record
        return [record for _, record in sorted(records.items())]

    def exit_code(self) -> int:
        """Print, after the last job, the failures and the counts; return 1 if a job failed or was stopped."""
        if self.folder is None:
            return 0
        if not self.waits:
            arrays = cluster.list_arrays(self.folder)
            status_command = f"{fedcohort_command('sweep')} status {self.folder.name}"
            log.info("SLURM has the jobs (%s); `%s` shows their status", " ".join(arrays), status_command)
            return 0
        if not sweep_folder.read(self.folder):
            return 0
        results = self.results()
        log_failed(results)
        sweeps.send_sweeps([info for info, _ in _list_tracked(r for r in results if r.how == "skipped")])
        log.info("%s", self.overview(results))
        runs = _list_tracked(results)
        if self.report and len(runs) > 1:
            report_sweep(self.folder, runs)
        return 0 if all(record.how in ("done", "skipped") for record in results) else 1

    def overview(self, results: Sequence[JobRecord]) -> str:
        """Return the counts, and the command that compares the runs, where MLflow has any."""
        counts = status.describe_counts(status.SweepStatus(self.plan, dict(enumerate(results)), waits=False))
        name, runs = self.folder.name if self.folder else "", _list_tracked(results)
        command = f" {sweeps.command_of(name, runs)}" if runs else ""
        return f"sweep {name}: {counts}.{command}"

    def has_recorded(self, error: BaseException) -> bool:
        """Return whether the record of a job has `error` already."""
        texts = (f"{type(error).__name__}: {error}", str(error))
        return any(record.how == "failed" and record.reason.startswith(texts) for record in self.results())

    def stop(self, code: int) -> bool:
        """Print the failed jobs after a signal ended this process or a job, and whether other jobs continue.

        code: 128 + the signal's number, 0 if only a job received it.

        Returns:
            Whether all messages have been printed.
        """
        if self.folder is None:
            return False
        log_failed(record for record in self.results() if not record.reason.startswith((KILLED_MESSAGE, NEVER)))
        if self.plan.launcher.endswith("BasicLauncher"):  # the job that received the signal prints how to resume
            return False
        if not is_cancelled(self.folder) and (arrays := cluster.list_queued(self.folder)):
            log.warning("the jobs continue without this process; `scancel %s` ends them", " ".join(arrays))
            return code > 0
        for job_number, record in sweep_folder.read(self.folder).items():  # their processes have ended
            if record.how == "running":
                SweepJob(self.folder, job_number, record.words, record.folder, began=record.began).note("stopped")
        log.warning("stopped; resume with the same sweep and resume=true")
        return code > 0

    def opening_line(self, job_number: int) -> str:
        """Return the line for the job `job_number`, from 0 on, that begins; "" if the number of jobs is not known."""
        return status.describe_next_job(self.folder, self.plan, job_number) if self.folder and self.plan.jobs else ""


SWEEP = Sweep()


class SweepCallback(Callback):
    """Hydra's callback at the begin of a sweep, before any job, in the process that the user started."""

    def on_multirun_start(self, config: DictConfig, **kwargs: object) -> None:
        messages.log_to_terminal()
        memory.end_imports()
        launcher = config.hydra.launcher
        if str(launcher._target_).endswith(".Local"):
            local.start_fork_server(launcher.inner_max_num_threads)
        SWEEP.report = config.sweep.report is True
        SWEEP.waits = config.sweep.wait is not False
        if config.hydra.sweeper._target_ != GRID:  # which begins once it has checked the jobs
            plan = Plan(split_jobs(config), launcher=str(launcher._target_))
            SWEEP.begin(Path(config.hydra.sweep.dir).absolute(), plan)


def is_search(config: DictConfig | HydraConf) -> bool:
    """Return whether Hydra's sweeper chooses its jobs by what earlier ones returned. config: the node `hydra`."""
    return not str(config.sweeper._target_).endswith((GRID, "BasicSweeper"))


def split_jobs(config: DictConfig) -> list[list[str]]:
    """Return the overrides of each job of a sweep over all combinations; [] if the sweeper searches."""
    params = [f"{key}={value}" for key, value in (config.hydra.sweeper.params or {}).items()]
    return [] if is_search(config.hydra) else combine([*params, *config.hydra.overrides.task])


def combine(overrides: Sequence[str]) -> list[list[str]]:
    """Return all combinations of the values that overrides hold, separated by commas: the overrides of each job."""
    parser = OverridesParser.create(config_loader=GlobalHydra.instance().config_loader())
    return compat.list_combinations(parser.parse_overrides(list(overrides)))


def report_sweep(sweep: Path, runs: Sequence[sweeps.SweptRun]) -> None:
    """Compare the runs of a sweep: print the verdict, and write a report to its folder and to MLflow.

    A failure is a warning with the command that makes the report.

    Args:
        sweep: folder of the sweep.
        runs: two or more runs of the sweep that MLflow has.
    """
    options = sweeps.options_of(sweep.name, runs)
    try:
        tracked_run = identity.load(runs[0][0].folder)
        if tracked_run is None:
            return
        query = Query(tracked_run.tracking_uri, tracked_run.experiment, sweep.name, options.get("filter"))
        rows, columns, baseline = options.get("rows", "selector"), options.get("cols"), options.get("baseline")
        comparison = read_answer(query, Question(rows, columns, baseline=baseline))
        _, paths = page.write(comparison, sweep / REPORT)
        log.info("report: %s", sweep / REPORT / page.PAGE)
        for line in page.list_verdicts(comparison):
            log.info("%s", line)
        publish(comparison, query, paths)
    except Exception as error:  # whatever a server answers, or a figure: the runs are done
        reason = str(error) if isinstance(error, FedcohortError) else f"{type(error).__name__}: {error}"
        report_command = shlex.join([*(f"{name}={value}" for name, value in options.items()), "report=true"])
        command = f"{fedcohort_command('compare')} {report_command}"
        log.warning("the sweep has no report in MLflow (%s); `%s` creates it", reason, command)


def _list_tracked(records: Iterable[JobRecord]) -> list[sweeps.SweptRun]:
    """Return the runs of jobs that are done, with the overrides of the job, if MLflow has them."""
    runs = list[sweeps.SweptRun]()
    for record in records:
        if record.how in ("done", "skipped") and record.folder is not None:
            with suppress(CheckpointError):  # a run without a journal
                if identity.load(record.folder) is not None:
                    runs.append((metadata.load_info(record.folder), record.words))
    return runs
