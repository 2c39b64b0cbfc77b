"""Hand a list of jobs to a launcher: this machine's processes, SLURM, or any launcher that Hydra knows.

`LaunchOptions` is the launcher of studies and of Python. `Local` and `Slurm` are the plugins that Hydra starts for
`python train.py -m hydra/launcher=local` and `=slurm`.
"""

import threading
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hydra.core.global_hydra import GlobalHydra
from hydra.core.plugins import Plugins
from hydra.core.utils import JobReturn, JobStatus
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf

from fedcohort import ranges
from fedcohort.errors import FedcohortError, OptionError
from fedcohort.host import cores
from fedcohort.jobs import cluster, status
from fedcohort.jobs.gpus import ALL_DEVICES
from fedcohort.jobs.job import JobContext
from fedcohort.jobs.local import run_local
from fedcohort.jobs.start import start
from fedcohort.jobs.sweep import is_search
from fedcohort.record import sweep_folder
from fedcohort.startup import command_line, compat
from fedcohort.startup.compose import compose_with_hydra, find_config_folder, initialise_hydra

POLL_INTERVAL_S = 1.0  # seconds between two looks at the records of another launcher's jobs
# the option that `n_jobs` stands for
JOB_LIMIT_OPTIONS = {"slurm": "array_parallelism", "submitit_slurm": "array_parallelism"}
LOCAL_LAUNCHER, SLURM_LAUNCHER = "hydra_plugins.fedcohort.Local", "hydra_plugins.fedcohort.Slurm"


@dataclass(frozen=True)
class LaunchOptions:
    """The way in which the jobs of a sweep are started.

    Attributes:
        launcher: a choice of hydra/launcher.
        n_jobs: largest number of jobs at the same time.
        wait: whether to wait for the jobs; may be false only with SLURM, which runs them without this process.
        options: overrides of `hydra.launcher`; jobs of the launcher "local" ignore them.

    Raises:
        OptionError: `n_jobs` is no integer of 1 or more, `wait` is false for another launcher than SLURM, or the
            launcher is not installed.
    """

    launcher: str = "local"
    n_jobs: int = 1
    wait: bool = True
    options: Sequence[str] = field(default_factory=tuple)

    def __post_init__(self) -> None:
        ranges.integer("n_jobs", self.n_jobs, "[1, inf)")
        ranges.text("launcher", self.launcher)
        if not self.wait and self.launcher != "slurm":
            raise OptionError(
                f"wait=false needs launcher=slurm: jobs of launcher={self.launcher} end with this process"
            )
        command_line.check_sweep_arguments(["-m", f"hydra/launcher={self.launcher}"])

    def run(self, sweep: Path, jobs: Mapping[int, Sequence[str]], configs: Path) -> Generator[int, None, None]:
        """Run jobs, and yield the number of each when it ends. With `wait=false` the jobs are submitted only.

        Args:
            sweep: folder of the sweep.
            jobs: overrides of each job, by number.
            configs: folder of the config groups.
        """
        is_local = self.launcher == "local"
        uses_workers = self.n_jobs > 1 or not is_local
        context = JobContext(sweep, configs, shares_gpus=is_local and uses_workers, prints_errors=uses_workers)
        if is_local:
            yield from run_local(context, jobs, self.n_jobs, in_process=True)
            return
        job_limit_override = f"hydra.launcher.{JOB_LIMIT_OPTIONS.get(self.launcher, 'n_jobs')}={self.n_jobs}"
        hydra_args = [f"hydra/launcher={self.launcher}", f"hydra.sweep.dir={sweep}", "hydra.mode=MULTIRUN"]
        config = compose_with_hydra([*hydra_args, job_limit_override, *self.options], configs)
        if self.launcher == "slurm":
            launcher_options: Any = OmegaConf.to_container(config.hydra.launcher, resolve=True)
            yield from cluster.run_jobs(context, jobs, launcher_options, waits_for_jobs=self.wait)
        else:
            yield from _run_by_hydra(config, sweep, jobs)


def _run_by_hydra(config: DictConfig, sweep: Path, jobs: Mapping[int, Sequence[str]]) -> Generator[int, None, None]:
    """Run jobs by another launcher of Hydra in a thread. Yield each job's number when its record says that it ended.

    Jobs without such a record are yielded when the launcher ends. Its error is raised if no job has a record.

    Args:
        config: config of the sweep.
        sweep: folder of the sweep.
        jobs: overrides of each job, by number.
    """
    with initialise_hydra(find_config_folder(config.hydra)):
        config_loader, callbacks = GlobalHydra.instance().config_loader(), compat.make_empty_callbacks()
        context = HydraContext(config_loader=config_loader, callbacks=callbacks)
        launcher = Plugins.instance().instantiate_launcher(hydra_context=context, task_function=start, config=config)
        launch_errors = list[BaseException]()

        def launch_jobs() -> None:
            try:
                launcher.launch([list(overrides) for overrides in jobs.values()], initial_job_idx=min(jobs))
            except BaseException as error:
                launch_errors.append(error)

        launcher_thread = threading.Thread(target=launch_jobs, name="launcher", daemon=True)
        launcher_thread.start()
        unfinished_jobs = set(jobs)
        while unfinished_jobs:
            is_launching = launcher_thread.is_alive()
            job_records = sweep_folder.read_job_records(sweep)
            for job_number in sorted(unfinished_jobs):
                if not is_launching or (job_number in job_records and job_records[job_number].how != "running"):
                    unfinished_jobs.discard(job_number)
                    yield job_number
            time.sleep(POLL_INTERVAL_S if unfinished_jobs else 0)
        launcher_thread.join()
        if launch_errors and not sweep_folder.read_job_records(sweep):
            raise launch_errors[0]


class _SweepLauncher(Launcher):
    """A base of fedcohort's launchers, which run the jobs of a sweep and show their progress in one updated line."""

    shares_gpus = False

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Store the config of the sweep for `launch`; the other arguments are those that Hydra passes to launchers."""
        self.config = config

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> list[JobReturn]:
        """Run jobs, and return their results in their order.

        A failed job counts as completed, without a value, unless a search-based sweeper started it or its overrides set
        `objective_metric`. With `sweep.wait=false` all jobs count as completed once they are submitted.

        Args:
            job_overrides: overrides of each job.
            initial_job_idx: number of the first job.
        """
        hydra_config = self.config.hydra
        sweep = Path(hydra_config.sweep.dir).absolute()
        environment = {str(name): str(value) for name, value in hydra_config.job.env_set.items()}
        configs, hydra_options = find_config_folder(hydra_config), tuple(hydra_config.overrides.hydra)
        context = JobContext(sweep, configs, hydra_options, environment, is_search(hydra_config), self.shares_gpus)
        jobs = {initial_job_idx + k: tuple(overrides) for k, overrides in enumerate(job_overrides)}
        with status.show_live_line(sweep), closing(self._run(context, jobs)) as ended_jobs:
            for _ in ended_jobs:
                pass
        if not self.config.sweep.wait:
            return [JobReturn(overrides, status=JobStatus.COMPLETED) for overrides in job_overrides]
        record_by_number, job_returns = sweep_folder.read_job_records(sweep), []
        for job_number, overrides in jobs.items():
            job_record = record_by_number.get(job_number)
            raises_job_errors = context.is_search or any(w.startswith("objective_metric=") for w in overrides)
            if job_record is not None and (job_record.how in ("done", "skipped") or not raises_job_errors):
                job_returns.append(JobReturn(overrides, status=JobStatus.COMPLETED, _return_value=job_record.value))
            else:
                job_error = FedcohortError(job_record.reason if job_record is not None else "it was never started")
                job_returns.append(JobReturn(overrides, status=JobStatus.FAILED, _return_value=job_error))
        return job_returns

    def _run(self, context: JobContext, jobs: Mapping[int, Sequence[str]]) -> Generator[int, None, None]:
        raise NotImplementedError


class Local(_SweepLauncher):
    """A launcher that runs at most `n_jobs` jobs at a time in worker processes of this machine.

    `n_jobs` is -1 for one per core; each job's libraries use `inner_max_num_threads` threads. The options are those of
    configs/hydra/launcher/local.yaml.
    """

    shares_gpus = True

    def __init__(self, n_jobs: int, inner_max_num_threads: int) -> None:
        self.n_jobs, self.threads = n_jobs, inner_max_num_threads

    def _run(self, context: JobContext, jobs: Mapping[int, Sequence[str]]) -> Generator[int, None, None]:
        n_jobs = cores.count_available_cores() if self.n_jobs == ALL_DEVICES else self.n_jobs
        return run_local(context, jobs, n_jobs, self.threads)


class Slurm(_SweepLauncher):
    """A launcher that runs jobs in arrays of SLURM (configs/hydra/launcher/slurm.yaml)."""

    def __init__(self, **options: Any) -> None:  # noqa: ANN401 - those of the yaml
        self.options = options

    def _run(self, context: JobContext, jobs: Mapping[int, Sequence[str]]) -> Generator[int, None, None]:
        if context.is_search and not self.config.sweep.wait:
            raise OptionError("sweep.wait must be true for a search, which chooses its jobs one by one")
        launcher_options: Any = OmegaConf.to_container(OmegaConf.create(self.options), resolve=True)
        yield from cluster.run_jobs(context, jobs, launcher_options, waits_for_jobs=self.config.sweep.wait)
