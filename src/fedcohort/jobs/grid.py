"""Sweeps over all combinations of several values, typed or from Python, with a check of every job before the first.

Each job is composed, and its components are made and checked against each other, as a run does before it reads data.
Jobs that would be rejected are listed at once, and nothing starts; with `sweep.skip_refused=true` the others start.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from hydra.core.plugins import Plugins
from hydra.plugins.launcher import Launcher
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf

from fedcohort import ranges, units
from fedcohort.errors import IncompatibleConfig, OptionError
from fedcohort.host.lock import try_to_lock
from fedcohort.jobs import gpus, status, sweep
from fedcohort.jobs.job import check_objective
from fedcohort.jobs.launch import LOCAL_LAUNCHER, SLURM_LAUNCHER, LaunchOptions, Local, Slurm
from fedcohort.jobs.sweep import GRID_SWEEPER_TARGET, combine_option_values, split_into_jobs
from fedcohort.record import sweep_folder
from fedcohort.record.sweep_folder import SweepPlan, save_plan
from fedcohort.startup import compat, options
from fedcohort.startup.check import check_before_data
from fedcohort.startup.compose import Composition, find_config_folder, initialise_hydra
from fedcohort.startup.compose_jobs import compose_job
from fedcohort.startup.hydra_errors import explain_error

log = logging.getLogger("fedcohort")


@dataclass(frozen=True)
class Rejection:
    """A job of a sweep that a check before the sweep has found to be invalid.

    Attributes:
        job_number: number of the job in its sweep, from 0 on.
        words: overrides of the job.
        reason: message of the error.
        error_class: name of the error's class, such as "OptionError".
    """

    job_number: int
    words: Sequence[str]
    reason: str
    error_class: str = ""


def list_rejected_jobs(
    jobs: Sequence[Sequence[str]], compose_config: Callable[[tuple[str, ...]], Composition], configs: Path
) -> Iterator[Rejection]:
    """Compose each job, check its components against each other, and yield those that would be rejected.

    Errors that depend on the data are found when the job runs.

    Args:
        jobs: overrides of each job.
        compose_config: function from overrides to a composed config.
        configs: folder of the config groups.

    Raises:
        Exception: any error that `explain_error` does not attribute to the user.
    """
    for job_number, overrides in enumerate(jobs):
        try:
            composition = compose_config(tuple(overrides))
            check_before_data(composition)
            check_objective(composition.config, is_search=False)
        except Exception as error:
            rejection_reason = explain_error(error, overrides, configs)
            if rejection_reason is None:
                raise
            yield Rejection(job_number, overrides, rejection_reason, type(error).__name__)


def plan_sweep(
    rejections: Sequence[Rejection], jobs: Sequence[Sequence[str]], launcher: str, may_skip: bool
) -> SweepPlan:
    """Return the plan of a sweep, which leaves out the rejected jobs, and log these.

    Args:
        rejections: the jobs that would be rejected.
        jobs: overrides of all jobs of the sweep.
        launcher: the class that starts the jobs; for a sweep from Python, the choice of hydra/launcher.
        may_skip: whether rejected jobs are left out; otherwise no job starts if one is rejected (`sweep.skip_refused`).

    Raises:
        IncompatibleConfig: jobs are rejected and `may_skip` is false, or all are rejected; the message lists them.
    """
    rejection_lines = [
        f"  job {r.job_number + 1} ({status.list_varying_overrides(jobs, r.words)}): {r.reason}" for r in rejections
    ]
    if rejections and (not may_skip or len(rejections) == len(jobs)):
        skip_hint = "; the others run with sweep.skip_refused=true" if len(rejections) < len(jobs) else ""
        rejected_text = f"jobs would be rejected, and none was started{skip_hint}:"
        raise IncompatibleConfig("\n".join([f"{len(rejections)} of {len(jobs)} {rejected_text}", *rejection_lines]))
    if rejections:
        log.warning(
            "%s",
            "\n".join([f"{len(rejections)} of {units.format_count(len(jobs), 'job')} left out:", *rejection_lines]),
        )
    rejected_job_numbers = {job.job_number for job in rejections}
    started_jobs = [overrides for job_number, overrides in enumerate(jobs) if job_number not in rejected_job_numbers]
    return SweepPlan(started_jobs, [(job.words, job.reason) for job in rejections], launcher)


class Grid(Sweeper):
    """Hydra's sweeper over all combinations of the typed values (configs/hydra/sweeper/grid.yaml)."""

    def __init__(self, params: DictConfig | None, max_batch_size: int | None) -> None:
        """Store the options of the sweeper.

        Args:
            params: values, separated by commas, of further options by name (`hydra.sweeper.params`).
            max_batch_size: largest number of jobs that the launcher gets at a time; None for all.

        Raises:
            OptionError: `max_batch_size` is out of range.
        """
        ranges.integer("hydra.sweeper.max_batch_size", max_batch_size, "[1, inf)", allow_null=True)
        self.params, self.max_batch_size = params, max_batch_size

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Create the launcher that starts the sweep's jobs; the arguments are those that Hydra passes to sweepers."""
        self.typed = config
        self.on_gpus = False  # whether a job trains on GPUs
        self.launcher: Launcher = Plugins.instance().instantiate_launcher(
            hydra_context=hydra_context, task_function=task_function, config=config
        )

    def sweep(self, arguments: list[str]) -> list[Any]:
        """Launch the jobs that are not rejected, and return their results.

        Args:
            arguments: overrides of the command line, which Hydra passes; they are read from the config instead.

        Raises:
            FedcohortError: the sweep can't start. Errors of the launcher, and those that it returns for failed jobs,
                are raised, too.
        """
        may_skip, wait = self.typed.sweep.skip_refused, self.typed.sweep.wait
        for name, option_value in (("skip_refused", may_skip), ("report", self.typed.sweep.report), ("wait", wait)):
            options.OPTION_CHECKS[f"sweep.{name}"](f"sweep.{name}", option_value)
        if not wait and not isinstance(self.launcher, Slurm):
            raise OptionError("sweep.wait=false needs hydra/launcher=slurm: other launchers end with this process")
        jobs = split_into_jobs(self.typed)
        if not jobs:
            raise OptionError("the sweep has no jobs, as a range such as range(0) is empty: give each option a value")
        rejections, launcher_class = self.list_rejections(jobs), str(self.typed.hydra.launcher._target_)
        sweep_plan = plan_sweep(rejections, jobs, launcher_class, may_skip=may_skip)
        if self.on_gpus:
            gpus.limit_jobs_to_gpus(self.launcher)
        sweep_folder_path = Path(self.typed.hydra.sweep.dir).absolute()
        sweep.CURRENT_SWEEP.begin_sweep(sweep_folder_path, sweep_plan)
        OmegaConf.save(self.typed, sweep_folder_path / "multirun.yaml")  # as Hydra's own sweeper does
        job_results: list[Any] = []
        batch_size = self.max_batch_size or len(sweep_plan.jobs)
        for k in range(0, len(sweep_plan.jobs), batch_size):
            returned_jobs = self.launcher.launch(sweep_plan.jobs[k : k + batch_size], initial_job_idx=k)
            job_results += [job.return_value for job in returned_jobs]  # which raises what the job raised
        return job_results

    def list_rejections(self, jobs: Sequence[Sequence[str]]) -> list[Rejection]:
        """Return those of `jobs`, the overrides of each job, that would be rejected, in their order."""
        configs, hydra_options = find_config_folder(self.typed.hydra), tuple(self.typed.hydra.overrides.hydra)

        def compose_checked_job(overrides: tuple[str, ...]) -> Composition:
            composition = compose_job(overrides, configs, hydra_options)
            self.on_gpus |= composition.config["trainer"]["accelerator"] == "gpu"
            return composition

        return list(list_rejected_jobs(jobs, compose_checked_job, configs))


def register_plugins() -> None:
    """Register the sweeper and the launchers with Hydra, by their names in configs/hydra."""
    for name, plugin_class in ((GRID_SWEEPER_TARGET, Grid), (LOCAL_LAUNCHER, Local), (SLURM_LAUNCHER, Slurm)):
        compat.register_plugin(name, plugin_class)


def prepare_grid_sweep(overrides: Sequence[str], configs: Path, launcher: str) -> Path:
    """Check all jobs of a sweep, write its plan, and return its new folder.

    Args:
        overrides: overrides of the sweep, with several values separated by commas.
        configs: folder of the config groups.
        launcher: the choice of hydra/launcher that starts the jobs.

    Raises:
        IncompatibleConfig: jobs would be rejected and `sweep.skip_refused` is false, or all would be rejected.
        OptionError: `sweep.wait` is false, or the first job can't be composed.
    """
    with initialise_hydra(configs):
        jobs = combine_option_values(overrides)
    config = compose_job(tuple(jobs[0]), configs).config
    if not config["sweep"]["wait"]:
        raise OptionError("sweep.wait=false is for `python train.py -m`: a sweep from Python waits for its jobs")
    rejections = list(list_rejected_jobs(jobs, lambda job: compose_job(job, configs), configs))
    sweep_plan = plan_sweep(rejections, jobs, launcher, may_skip=config["sweep"]["skip_refused"])
    folder = Path(config["paths"]["logs"]).absolute() / "sweeps" / f"{datetime.now():%Y-%m-%d_%H-%M-%S_%f}"
    save_plan(folder, sweep_plan)
    return folder


def run_grid_sweep(folder: Path, configs: Path, launch_options: LaunchOptions) -> None:
    """Run the jobs of a planned sweep. A job that fails does not end the others.

    Args:
        folder: folder of the sweep, which holds the plan.
        configs: folder of the config groups.
        launch_options: how jobs are started.

    Raises:
        FileNotFoundError: the folder holds no plan that can be read.
    """
    sweep_plan = sweep_folder.read_plan(folder)
    if sweep_plan is None:
        raise FileNotFoundError(f"{folder} is no folder of a sweep: it holds no {sweep_folder.SWEEP_PLAN_FILE}")
    is_in_process = launch_options.launcher == "local" and launch_options.n_jobs == 1
    sweep_lock = try_to_lock(folder / sweep_folder.SWEEP_LOCK_FILE)

    def announce_job(job_number: int) -> None:
        if is_in_process and job_number < len(sweep_plan.jobs):
            job_line = status.describe_next_job(folder, sweep_plan, job_number)
            log.info("%s: %s", job_line, status.list_varying_overrides(sweep_plan.jobs, sweep_plan.jobs[job_number]))

    try:
        announce_job(0)
        live_line = nullcontext() if is_in_process else status.show_live_line(folder)
        with live_line, closing(launch_options.run(folder, dict(enumerate(sweep_plan.jobs)), configs)) as ended_jobs:
            for job_number in ended_jobs:
                announce_job(job_number + 1)
    finally:
        if sweep_lock is not None:
            sweep_lock.close()
        status.log_failed_jobs(sweep_folder.read_job_records(folder).values())
