"""Hydra's launchers `local` and `slurm`: jobs in worker processes of this machine, or in an array of SLURM's."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from hydra.core.utils import JobReturn, JobStatus
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf

from fedcohort.errors import FedcohortError, OptionError
from fedcohort.host import cores
from fedcohort.jobs import cluster, live_line
from fedcohort.jobs.job import JobContext
from fedcohort.jobs.local import run_local
from fedcohort.jobs.sweep import searches
from fedcohort.record import sweep_folder
from fedcohort.record.sweep_folder import JobRecord
from fedcohort.startup import compat
from fedcohort.startup.compose import find_configs

ALL = -1  # hydra.launcher.n_jobs: as many as there are cores, or GPUs
LOCAL, SLURM = "hydra_plugins.fedcohort.Local", "hydra_plugins.fedcohort.Slurm"


class JobFailed(FedcohortError):
    """A job failed, and its sweeper must see that. The record of the job has the traceback."""


class _Launcher(Launcher):
    """Runs jobs that write records, and prints one live line of the sweep."""

    shares_gpus = False

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Keep the config of the sweep."""
        self.config = config

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> list[JobReturn]:
        """Run the jobs and return their results, in their order."""
        hydra = self.config.hydra
        sweep = Path(hydra.sweep.dir).absolute()
        env = {str(name): str(value) for name, value in hydra.job.env_set.items()}
        typed = tuple(hydra.overrides.hydra)
        context = JobContext(sweep, find_configs(hydra), typed, env, searches(hydra), share_gpus=self.shares_gpus)
        jobs = {initial_job_idx + k: tuple(words) for k, words in enumerate(job_overrides)}
        with live_line.show_live_line(sweep), closing(self._run(context, jobs)) as ended:
            for _ in ended:
                pass
        if not self.config.sweep.wait:
            return [JobReturn(words, status=JobStatus.COMPLETED) for words in job_overrides]
        records = sweep_folder.read(sweep)
        return [self._return_of(records.get(number), words, context.search) for number, words in jobs.items()]

    def _run(self, context: JobContext, jobs: Mapping[int, Sequence[str]]) -> Generator[int, None, None]:
        raise NotImplementedError

    def _return_of(self, record: JobRecord | None, words: Sequence[str], search: bool) -> JobReturn:
        metric = search or any(word.startswith("objective_metric=") for word in words)
        if record is not None and (record.how in ("done", "skipped") or not metric):
            return JobReturn(words, status=JobStatus.COMPLETED, _return_value=record.value)
        reason = record.reason if record is not None else "it was never started"
        return JobReturn(words, status=JobStatus.FAILED, _return_value=JobFailed(reason))


class Local(_Launcher):
    """Jobs in worker processes of this machine (configs/hydra/launcher/local.yaml)."""

    shares_gpus = True

    def __init__(self, n_jobs: int, inner_max_num_threads: int) -> None:
        self.n_jobs, self.threads = n_jobs, inner_max_num_threads

    def _run(self, context: JobContext, jobs: Mapping[int, Sequence[str]]) -> Generator[int, None, None]:
        n_jobs = cores.available_cores() if self.n_jobs == ALL else self.n_jobs
        return run_local(context, jobs, n_jobs, self.threads)


class Slurm(_Launcher):
    """Jobs in an array of SLURM's (configs/hydra/launcher/slurm.yaml)."""

    def __init__(self, **options: Any) -> None:  # noqa: ANN401 - those of the yaml
        self.options = options

    def _run(self, context: JobContext, jobs: Mapping[int, Sequence[str]]) -> Generator[int, None, None]:
        if context.search and not self.config.sweep.wait:
            raise OptionError("sweep.wait=false submits all jobs at once, but a search chooses them one by one")
        options: Any = OmegaConf.to_container(OmegaConf.create(self.options), resolve=True)
        tasks = cluster.submit(context, jobs, options)
        if self.config.sweep.wait:
            yield from cluster.follow(context.folder, tasks)


def register() -> None:
    """Tell Hydra the launchers by the names in configs/hydra/launcher."""
    compat.register(LOCAL, Local)
    compat.register(SLURM, Slurm)
