"""The function that Hydra calls with a composed config: it runs a single run, or one job of a sweep."""

import logging
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from fedcohort.errors import ComponentError, FedcohortError
from fedcohort.host import messages
from fedcohort.host.orphan import end_when_parent_ends
from fedcohort.jobs.job import JobContext, check_and_train, handle_job_signals, read_objective, run_job
from fedcohort.jobs.sweep import CURRENT_SWEEP, is_search
from fedcohort.record.sweep_folder import SweepJob
from fedcohort.startup import command_line, compose

log = logging.getLogger("fedcohort")


def start(cfg: DictConfig) -> float | None:
    """Run the config `cfg` that `train.py` was given, and return its objective metric.

    An error of the user ends a single run in one line and exit code 2. A failed job of a sweep returns None, so that
    the other jobs continue. If a search-based sweeper started it or `objective_metric` is set, its error is raised.
    """
    hydra_config = HydraConfig.get()
    # seed=${cohort} is for our config
    task_overrides: Any = OmegaConf.to_container(hydra_config.overrides.task, resolve=False)
    overrides = tuple(task_overrides)
    messages.log_to_terminal()
    end_when_parent_ends()

    def compose_run() -> compose.Composition:
        return compose.compose_config(cfg, hydra_config.runtime.choices, overrides)

    with handle_job_signals():
        if hydra_config.mode == RunMode.MULTIRUN:
            sweep = Path(hydra_config.sweep.dir).absolute()
            shares_gpus = str(hydra_config.launcher._target_).endswith("JoblibLauncher")
            configs = compose.find_config_folder(hydra_config)
            job_context = JobContext(sweep, configs, is_search=is_search(hydra_config), shares_gpus=shares_gpus)
            job = SweepJob(sweep, hydra_config.job.num, overrides)
            if opening_line := CURRENT_SWEEP.describe_opening(job.job_number):
                log.info("%s", opening_line)
            return run_job(job, compose_run, job_context)
        try:
            composition = compose_run()
            folder = check_and_train(composition, is_last_run=True)
            return read_objective(folder, composition.config["objective_metric"])
        except FedcohortError as error:
            log.error("%s", error)
            if isinstance(error, ComponentError) and command_line.is_traceback_requested():
                raise
            raise SystemExit(2) from error
