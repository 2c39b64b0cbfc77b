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
from fedcohort.host.commands import format_fedcohort_command
from fedcohort.host.lock import try_to_lock
from fedcohort.jobs import cluster, local, status
from fedcohort.jobs.status import KILLED_MESSAGE, is_cancelled, log_failed_jobs, mark_killed_job_as_failed
from fedcohort.record import metadata, sweep_folder
from fedcohort.record.sweep_folder import SWEEP_LOCK_FILE, JobRecord, SweepJob, SweepPlan, save_plan
from fedcohort.report.comparison import page
from fedcohort.results.matching.question import ComparisonQuestion
from fedcohort.startup import compat
from fedcohort.startup.comparison import compare_tracked_runs, publish_comparison
from fedcohort.tracking import identity, sweeps
from fedcohort.tracking.runs import RunQuery

log = logging.getLogger("fedcohort")
GRID_SWEEPER_TARGET = "hydra_plugins.fedcohort.Grid"  # our sweeper over all combinations
NOT_STARTED_MESSAGE = "it was never started"
REPORT_FOLDER = "report"  # folder of the comparison, in the sweep's


@dataclass
class Sweep:
    """The sweep of this process, which a user started.

    Attributes:
        folder: folder of the sweep, None if this process has no sweep.
        plan: the jobs of the sweep; no jobs if the sweeper chooses them one by one.
        makes_report: whether its runs are compared at the end (`sweep.report`).
        waits_for_jobs: whether this process waits for the jobs (`sweep.wait`).
    """

    folder: Path | None = None
    plan: SweepPlan = field(default_factory=SweepPlan)
    makes_report: bool = False
    waits_for_jobs: bool = True
    _lock: IO[str] | None = None

    def begin_sweep(self, folder: Path, plan: SweepPlan) -> None:
        """Write the plan of the sweep to the folder `folder`, before its first job starts."""
        self.folder, self.plan = folder, plan
        save_plan(folder, plan)
        self._lock = try_to_lock(folder / SWEEP_LOCK_FILE)

    def read_records(self) -> list[JobRecord]:
        """Return the records of all jobs. A job whose record does not say how it ended has failed."""
        if self.folder is None:
            return []
        job_records = {
            n: JobRecord(tuple(job), "failed", None, NOT_STARTED_MESSAGE) for n, job in enumerate(self.plan.jobs)
        }
        for job_number, record in sweep_folder.read_job_records(self.folder).items():
            job_records[job_number] = mark_killed_job_as_failed(record) if record.how == "running" else record
        return [record for _, record in sorted(job_records.items())]

    def finish_sweep(self) -> int:
        """Log the failures and the counts of jobs after the last job; return 1 if a job failed or was stopped, else 0.

        Runs that were finished before the sweep, and were skipped, get the sweep's tag in MLflow. If `makes_report` is
        true, the runs are compared. If `waits_for_jobs` is false, SLURM still runs the jobs, and the result is 0.
        """
        if self.folder is None:
            return 0
        if not self.waits_for_jobs:
            array_ids = cluster.list_array_ids(self.folder)
            status_command = f"{format_fedcohort_command('sweep')} status {self.folder.name}"
            log.info("submitted the jobs to SLURM (%s); `%s` shows their status", " ".join(array_ids), status_command)
            return 0
        if not sweep_folder.read_job_records(self.folder):
            return 0
        job_records = self.read_records()
        log_failed_jobs(job_records)
        sweeps.send_sweep_tags([info for info, _ in _list_tracked_runs(r for r in job_records if r.how == "skipped")])
        log.info("%s", self.describe_results(job_records))
        tracked_runs = _list_tracked_runs(job_records)
        if self.makes_report and len(tracked_runs) > 1:
            write_sweep_report(self.folder, tracked_runs)
        return 0 if all(record.how in ("done", "skipped") for record in job_records) else 1

    def describe_results(self, job_records: Sequence[JobRecord]) -> str:
        """Return the numbers of jobs by state, and the command that compares the runs, if MLflow has any.

        Args:
            job_records: records of all jobs.
        """
        counts_text = status.describe_counts(status.SweepStatus(self.plan, dict(enumerate(job_records)), is_live=False))
        sweep_name, tracked_runs = self.folder.name if self.folder else "", _list_tracked_runs(job_records)
        compare_command = f" {sweeps.format_compare_command(sweep_name, tracked_runs)}" if tracked_runs else ""
        return f"sweep {sweep_name}: {counts_text}.{compare_command}"

    def has_recorded_error(self, error: BaseException) -> bool:
        """Return whether the record of a job already gives `error` as the reason of its failure."""
        error_texts = (f"{type(error).__name__}: {error}", str(error))
        return any(record.how == "failed" and record.reason.startswith(error_texts) for record in self.read_records())

    def stop_sweep(self, exit_code: int) -> bool:
        """Log which jobs failed and whether others continue, after a signal ended this process or a job.

        If no job continues in SLURM's queue, each job with the state running is recorded as stopped.

        Args:
            exit_code: 128 + the signal's number; 0 if only a job received the signal.

        Returns:
            True if this process received the signal, so that the caller need not print a message.
        """
        if self.folder is None:
            return False
        log_failed_jobs(
            r for r in self.read_records() if not r.reason.startswith((KILLED_MESSAGE, NOT_STARTED_MESSAGE))
        )
        if self.plan.launcher.endswith("BasicLauncher"):  # the job that received the signal prints how to resume
            return False
        if not is_cancelled(self.folder) and (array_ids := cluster.list_queued_array_ids(self.folder)):
            log.warning("the jobs continue without this process; `scancel %s` ends them", " ".join(array_ids))
            return exit_code > 0
        for job_number, job_record in sweep_folder.read_job_records(self.folder).items():  # their processes have ended
            if job_record.how == "running":
                job = SweepJob(self.folder, job_number, job_record.words, job_record.folder, began=job_record.began)
                job.write_record("stopped")
        log.warning("stopped; resume with the same sweep and resume=true")
        return exit_code > 0

    def describe_opening(self, job_number: int) -> str:
        """Return the line to log when the job `job_number` begins; "" if the number of jobs is unknown."""
        return status.describe_next_job(self.folder, self.plan, job_number) if self.folder and self.plan.jobs else ""


CURRENT_SWEEP = Sweep()


class SweepCallback(Callback):
    """A callback of Hydra that stores the sweep's options and plan at its start, in the process that the user started.

    It also starts the process from which local workers are forked.
    """

    def on_multirun_start(self, config: DictConfig, **kwargs: object) -> None:
        messages.log_to_terminal()
        memory.enable_garbage_collection()
        launcher = config.hydra.launcher
        if str(launcher._target_).endswith(".Local"):
            local.start_fork_server(launcher.inner_max_num_threads)
        CURRENT_SWEEP.makes_report = config.sweep.report is True
        CURRENT_SWEEP.waits_for_jobs = config.sweep.wait is not False
        if config.hydra.sweeper._target_ != GRID_SWEEPER_TARGET:  # which begins once it has checked the jobs
            sweep_plan = SweepPlan(split_into_jobs(config), launcher=str(launcher._target_))
            CURRENT_SWEEP.begin_sweep(Path(config.hydra.sweep.dir).absolute(), sweep_plan)


def is_search(config: DictConfig | HydraConf) -> bool:
    """Return whether the sweeper in `config`, the node `hydra`, chooses jobs by the results of earlier ones."""
    return not str(config.sweeper._target_).endswith((GRID_SWEEPER_TARGET, "BasicSweeper"))


def split_into_jobs(config: DictConfig) -> list[list[str]]:
    """Return the overrides of each job of a sweep with the config `config`; [] if the sweeper searches."""
    param_overrides = [f"{option}={value}" for option, value in (config.hydra.sweeper.params or {}).items()]
    return [] if is_search(config.hydra) else combine_option_values([*param_overrides, *config.hydra.overrides.task])


def combine_option_values(overrides: Sequence[str]) -> list[list[str]]:
    """Return the overrides of each job: all combinations of the values, separated by commas, in `overrides`."""
    override_parser = OverridesParser.create(config_loader=GlobalHydra.instance().config_loader())
    return compat.list_job_overrides(override_parser.parse_overrides(list(overrides)))


def write_sweep_report(sweep: Path, swept_runs: Sequence[sweeps.SweptRun]) -> None:
    """Compare the runs of a sweep: print the verdict, and write a report to its folder and to MLflow.

    A failure is a warning with the command that makes the report.

    Args:
        sweep: folder of the sweep.
        swept_runs: two or more runs of the sweep that MLflow has.
    """
    options = sweeps.list_compare_options(sweep.name, swept_runs)
    try:
        tracked_run = identity.load_tracked_run(swept_runs[0][0].folder)
        if tracked_run is None:
            return
        run_query = RunQuery(tracked_run.tracking_uri, tracked_run.experiment, sweep.name, options.get("filter"))
        rows_parameter, cols_parameter, baseline = (
            options.get("rows", "selector"),
            options.get("cols"),
            options.get("baseline"),
        )
        comparison = compare_tracked_runs(
            run_query, ComparisonQuestion(rows_parameter, cols_parameter, baseline=baseline)
        )
        _, report_files = page.write_comparison_files(comparison, sweep / REPORT_FOLDER)
        log.info("report: %s", sweep / REPORT_FOLDER / page.PAGE_FILE)
        for verdict_line in page.list_verdicts(comparison):
            log.info("%s", verdict_line)
        publish_comparison(comparison, run_query, report_files)
    except Exception as error:  # whatever a server answers, or a figure: the runs are done
        failure_reason = str(error) if isinstance(error, FedcohortError) else f"{type(error).__name__}: {error}"
        report_command = shlex.join([*(f"{name}={value}" for name, value in options.items()), "report=true"])
        compare_command = f"{format_fedcohort_command('compare')} {report_command}"
        log.warning("the sweep has no report in MLflow (%s); `%s` creates it", failure_reason, compare_command)


def _list_tracked_runs(job_records: Iterable[JobRecord]) -> list[sweeps.SweptRun]:
    """Return the runs of those jobs in `job_records` that are done and in MLflow, with the overrides of the job."""
    tracked_runs = list[sweeps.SweptRun]()
    for job_record in job_records:
        if job_record.how in ("done", "skipped") and job_record.folder is not None:
            with suppress(CheckpointError):  # a run without a journal
                if identity.load_tracked_run(job_record.folder) is not None:
                    tracked_runs.append((metadata.load_info(job_record.folder), job_record.words))
    return tracked_runs
