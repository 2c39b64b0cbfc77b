"""Hand a list of jobs to a launcher: this machine's processes, SLURM, or any launcher that Hydra knows."""

import threading
import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hydra import compose
from hydra.core.global_hydra import GlobalHydra
from hydra.core.plugins import Plugins
from hydra.types import HydraContext
from omegaconf import DictConfig, OmegaConf

from fedcohort.errors import OptionError
from fedcohort.jobs import cluster
from fedcohort.jobs.job import JobContext
from fedcohort.jobs.local import run_local
from fedcohort.jobs.start import start
from fedcohort.record import sweep_folder
from fedcohort.startup import command_line, compat
from fedcohort.startup.compose import find_configs, initialised_hydra

POLL_S = 1.0  # seconds between two looks at the records of another launcher's jobs
LIMITS = {"slurm": "array_parallelism", "submitit_slurm": "array_parallelism"}  # the option that `n_jobs` stands for


@dataclass(frozen=True)
class Launch:
    """How jobs are started.

    Attributes:
        launcher: a choice of hydra/launcher.
        n_jobs: jobs at the same time.
        wait: whether to wait for the jobs; only SLURM runs them without this process.
        options: overrides of `hydra.launcher`.
    """

    launcher: str = "local"
    n_jobs: int = 1
    wait: bool = True
    options: Sequence[str] = field(default_factory=tuple)

    def __post_init__(self) -> None:
        if not self.wait and self.launcher != "slurm":
            raise OptionError(
                f"wait=false needs launcher=slurm: jobs of launcher={self.launcher} end with this process"
            )
        command_line.check_sweep(["-m", f"hydra/launcher={self.launcher}"])

    def run(self, sweep: Path, jobs: Mapping[int, Sequence[str]], configs: Path) -> Generator[int, None, None]:
        """Run `jobs`, overrides by number, in the folder `sweep`; yield the number of each as it ends.

        With `wait=false` the jobs are submitted and nothing is yielded.
        """
        local = self.launcher == "local"
        several = self.n_jobs > 1 or not local
        context = JobContext(sweep, configs, share_gpus=local and several, prints_errors=several)
        if local:
            yield from run_local(context, jobs, self.n_jobs, in_process=True)
            return
        config = self._compose(sweep, configs)
        if self.launcher == "slurm":
            options: Any = OmegaConf.to_container(config.hydra.launcher, resolve=True)
            tasks = cluster.submit(context, jobs, options)
            if self.wait:
                yield from cluster.follow(sweep, tasks)
            return
        yield from _run_by_hydra(config, sweep, jobs)

    def _compose(self, sweep: Path, configs: Path) -> DictConfig:
        limit = f"hydra.launcher.{LIMITS.get(self.launcher, 'n_jobs')}={self.n_jobs}"
        words = [f"hydra/launcher={self.launcher}", f"hydra.sweep.dir={sweep}", "hydra.mode=MULTIRUN", *self.options]
        with initialised_hydra(configs):
            return compose("train", overrides=[*words[:3], limit, *words[3:]], return_hydra_config=True)


def _run_by_hydra(config: DictConfig, sweep: Path, jobs: Mapping[int, Sequence[str]]) -> Generator[int, None, None]:
    """Run jobs by a plugin of Hydra's, in a thread; yield their numbers as their records say that they ended."""
    with initialised_hydra(find_configs(config.hydra)):
        context = HydraContext(config_loader=GlobalHydra.instance().config_loader(), callbacks=compat.no_callbacks())
        launcher = Plugins.instance().instantiate_launcher(hydra_context=context, task_function=start, config=config)
        errors = list[BaseException]()

        def launch() -> None:
            try:
                launcher.launch([list(words) for words in jobs.values()], initial_job_idx=min(jobs))
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=launch, name="launcher", daemon=True)
        thread.start()
        waiting = set(jobs)
        while waiting:
            alive = thread.is_alive()
            records = sweep_folder.read(sweep)
            for number in sorted(waiting):
                if not alive or (number in records and records[number].how != "running"):
                    waiting.discard(number)
                    yield number
            time.sleep(POLL_S if waiting else 0)
        thread.join()
        if errors and not sweep_folder.read(sweep):
            raise errors[0]
