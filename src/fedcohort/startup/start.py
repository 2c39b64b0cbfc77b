"""What Hydra calls for each job, in whichever process its launcher starts: a run, and what is told of how it ended."""

import logging
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hydra.conf import HydraConf
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from fedcohort.errors import ComponentError, FedcohortError, describe
from fedcohort.host import messages, slurm
from fedcohort.host.interrupt import NOTHING, Stop, interrupts
from fedcohort.host.orphan import end_with_parent
from fedcohort.record.folder import log_of
from fedcohort.startup import cards, check, command_line, compose, objective_metric
from fedcohort.startup.jobs import SweepJob
from fedcohort.startup.run import run
from fedcohort.startup.sweep import SWEEP, searches

log = logging.getLogger("fedcohort")


def start(cfg: DictConfig) -> float | None:
    """Run what `train.py` was asked for, and return its `objective_metric`.

    A user's mistake ends in one line and exit code 2; in a sweep the other jobs go on. A sweeper that searches is told
    of a failure by the error.
    """
    hydra = HydraConfig.get()
    typed: Any = OmegaConf.to_container(hydra.overrides.task, resolve=False)  # seed=${cohort} is for our config
    overrides = tuple(typed)
    messages.to_terminal()
    end_with_parent()
    job = None
    if hydra.mode == RunMode.MULTIRUN:
        job = SweepJob(Path(hydra.sweep.dir).absolute(), hydra.job.num, overrides)
    with _by_itself(), interrupts.on(), _requeue():
        if job is None:
            try:
                return _run_composed(cfg, hydra, overrides, None)
            except FedcohortError as error:
                log.error("%s", error)
                if isinstance(error, ComponentError) and command_line.environment().get(command_line.FULL) == "1":
                    raise
                raise SystemExit(2) from error
        return _in_sweep(cfg, hydra, job)


def _run_composed(cfg: DictConfig, hydra: HydraConf, overrides: tuple[str, ...], job: SweepJob | None) -> float | None:
    """Run, and return the `objective_metric`."""
    composition = compose.compose_config(cfg, hydra.runtime.choices, overrides, compose.find_configs(hydra))
    check.check_options(composition)
    objective_metric.check(composition.config, by_search=job is not None and searches(hydra))
    if job is not None:
        cards.lease(job, hydra, composition)
    folder = run(composition, job)
    return objective_metric.value(folder, composition.config["objective_metric"])


def _in_sweep(cfg: DictConfig, hydra: HydraConf, job: SweepJob) -> float | None:
    """Run the job, and keep a record of what becomes of it."""
    job.note("running")
    if line := SWEEP.opening_line(job.number):
        log.info("%s", line)
    try:
        value = _run_composed(cfg, hydra, job.words, job)
    except (KeyboardInterrupt, SystemExit):  # a signal ends the whole sweep
        job.note("stopped")
        raise
    except Exception as error:
        interrupts.check()  # an import that a signal broke off raises what it likes
        expected = isinstance(error, FedcohortError)
        log.error("%s", error if expected else traceback.format_exc().rstrip())
        job.note("failed", reason=f"{error if expected else describe(error)}{log_of(job.folder)}")
        if searches(hydra) or cfg.get("objective_metric") is not None:
            raise
        return None
    job.note(job.end)
    return value


@contextmanager
def _by_itself() -> Iterator[None]:
    """End a process that a launcher started, where nobody else does, in one line, with the signal's code."""
    ours = interrupts.on_already
    try:
        yield
    except Stop as stop:
        if ours:
            raise
        log.warning("%s", NOTHING)
        raise SystemExit(stop.code) from None


@contextmanager
def _requeue() -> Iterator[None]:
    """Put a job that ends for a signal of SLURM's back into the queue, where that is what SLURM wants."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        if interrupts.code:
            with interrupts.hold():  # the requeue itself sends another signal
                slurm.requeue_if_preempted()
        raise
