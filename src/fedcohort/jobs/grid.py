"""Hydra's sweep over all combinations of the values typed, with a check of every job before the first one starts.

Each job is composed, and its components are made and checked against each other, as a run does before it reads data.
Jobs that would be rejected are listed at once, and nothing starts; with `sweep.skip_refused=true` the others start.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hydra.core.plugins import Plugins
from hydra.plugins.launcher import Launcher
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf

from fedcohort import ranges
from fedcohort.errors import OptionError
from fedcohort.jobs import gpus, launchers, sweep
from fedcohort.jobs.refused import Refusal, leave_out_rejected, list_refused
from fedcohort.jobs.sweep import GRID, split_jobs
from fedcohort.startup import compat, options
from fedcohort.startup.compose import Composed, find_configs
from fedcohort.startup.compose_jobs import JobComposer


class Grid(Sweeper):
    """The sweeper of configs/hydra/sweeper/grid.yaml."""

    def __init__(self, params: DictConfig | None, max_batch_size: int | None) -> None:
        """Take options that all jobs get, for `split_jobs`, and how many jobs the launcher gets at a time."""
        ranges.integer("hydra.sweeper.max_batch_size", max_batch_size, "[1, inf)", optional=True)
        self.params, self.max_batch_size = params, max_batch_size

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Make the launcher."""
        self.hydra_context, self.config, self.typed = hydra_context, config, config
        self.on_gpus = False  # whether a job trains on GPUs
        self._loader = hydra_context.config_loader
        self.launcher: Launcher = Plugins.instance().instantiate_launcher(
            hydra_context=hydra_context, task_function=task_function, config=config
        )

    def sweep(self, arguments: list[str]) -> list[Any]:
        """Launch the jobs that are not rejected, and return their results. Raises `FedcohortError` and jobs' errors."""
        skip, wait = self.typed.sweep.skip_refused, self.typed.sweep.wait
        for name, value in (("skip_refused", skip), ("report", self.typed.sweep.report), ("wait", wait)):
            options.CHECKS[f"sweep.{name}"](f"sweep.{name}", value)
        if not wait and not isinstance(self.launcher, launchers.Slurm):
            raise OptionError("sweep.wait=false needs hydra/launcher=slurm: jobs of others end with this process")
        jobs = split_jobs(self.typed)
        if not jobs:
            raise OptionError("the sweep has no jobs: a range such as range(0) is empty")
        refused = self.list_refused(jobs)
        started = leave_out_rejected(refused, jobs, skip=skip)
        if self.on_gpus:
            gpus.fit_jobs(self.launcher)
        folder = Path(self.typed.hydra.sweep.dir).absolute()
        sweep.SWEEP.begin(folder, started, [(refusal.words, refusal.reason) for refusal in refused])
        OmegaConf.save(self.typed, folder / "multirun.yaml")  # as Hydra's own sweeper does
        results: list[Any] = []
        size = self.max_batch_size or len(started)
        for first in range(0, len(started), size):
            done = self.launcher.launch(started[first : first + size], initial_job_idx=first)
            results += [job.return_value for job in done]  # which raises what the job raised
        return results

    def list_refused(self, jobs: Sequence[Sequence[str]]) -> list[Refusal]:
        """Return the jobs that would be rejected, in their order."""
        configs = find_configs(self.typed.hydra)
        composer = JobComposer(lambda words: self._loader.load_sweep_config(self.typed, list(words)), configs)

        def compose(words: tuple[str, ...]) -> Composed:
            composition = composer.compose(words)
            self.on_gpus |= composition.config["trainer"]["accelerator"] == "gpu"
            return composition

        return list(list_refused(jobs, compose, configs))


def register() -> None:
    """Tell Hydra the sweeper by its name in configs/hydra/sweeper/grid.yaml, and our launchers."""
    compat.register(GRID, Grid)
    launchers.register()
