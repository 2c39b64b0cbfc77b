"""One job of a sweep, in whichever process its launcher starts: compose its options, run it, record how it ended."""

import logging
import math
import os
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fedcohort.errors import FedcohortError, OptionError, describe_unexpected_error
from fedcohort.host import slurm
from fedcohort.host.interrupt import STOPPED_BEFORE_TRAINING, StopSignal, interrupts
from fedcohort.jobs import gpus
from fedcohort.record import history
from fedcohort.record.folder import describe_log
from fedcohort.record.sweep_folder import SweepJob
from fedcohort.startup.check import check_options
from fedcohort.startup.compose import Composition
from fedcohort.startup.compose_jobs import compose_job
from fedcohort.startup.run import run

log = logging.getLogger("fedcohort")


@dataclass(frozen=True)
class JobContext:
    """The properties that all jobs of a sweep share, which are sent to the processes that run them.

    Attributes:
        folder: folder of the sweep.
        configs: folder of the config groups.
        hydra_options: options of Hydra that were typed, such as `hydra.searchpath`.
        environment: environment variables of `hydra.job.env_set`.
        is_search: whether the sweeper is search-based, so that a failed job has to raise its error.
        shares_gpus: whether each process takes one GPU of this machine.
        prints_errors: whether the error of a failed job is printed; its record has it in any case.
    """

    folder: Path
    configs: Path
    hydra_options: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    is_search: bool = False
    shares_gpus: bool = False
    prints_errors: bool = True

    def run(self, job_number: int, overrides: Sequence[str]) -> float | None:
        """Run a job of the sweep, and return its objective metric, as `run_job` does.

        Args:
            job_number: number of the job in the sweep, from 0.
            overrides: the job's overrides.
        """
        os.environ.update(self.environment)
        job = SweepJob(self.folder, job_number, tuple(overrides))
        return run_job(job, lambda: compose_job(job.words, self.configs, self.hydra_options), self)


def run_job(job: SweepJob, compose_config: Callable[[], Composition], job_context: JobContext) -> float | None:
    """Run `job`, record how it ended, and return its objective metric.

    Args:
        job: the job, whose record this writes.
        compose_config: function that composes the config. Its errors are failures of the job.
        job_context: folders, environment and options that the jobs of the sweep share.

    Returns:
        The objective metric; None if the job has none, or if it failed and its error is not raised.

    Raises:
        Exception: the error of the failed job, if a search-based sweeper started it or it has an `objective_metric`.
    """
    job.write_record("running")
    objective_metric = None
    try:
        composition = compose_config()
        objective_metric = composition.config["objective_metric"]
        check_options(composition)
        check_objective(composition.config, is_search=job_context.is_search)
        if job_context.shares_gpus:
            gpus.assign_gpu(job, composition)
        folder = run(composition, job)
        objective_value = read_objective(folder, objective_metric)
    except (KeyboardInterrupt, SystemExit):  # a signal ends the whole sweep
        job.write_record("stopped")
        raise
    except Exception as error:
        interrupts.raise_if_interrupted()  # an import that a signal interrupts may raise any error
        is_user_error = isinstance(error, FedcohortError)
        if job_context.prints_errors:
            log.error("%s", error if is_user_error else traceback.format_exc().rstrip())
        failure_reason = f"{error if is_user_error else describe_unexpected_error(error)}{describe_log(job.folder)}"
        job.write_record("failed", reason=failure_reason, error_name=type(error).__name__)
        if job_context.is_search or objective_metric is not None:
            raise
        return None
    job.write_record(job.end_state, value=objective_value)
    return objective_value


def check_and_train(composition: Composition, *, is_last_run: bool = False) -> Path:
    """Check the options of a single run, train, and return the run's folder.

    Args:
        composition: the composed config.
        is_last_run: whether the process ends after this run.
    """
    check_options(composition)
    check_objective(composition.config, is_search=False)
    return run(composition, is_last_run=is_last_run)


def check_objective(config: Mapping[str, Any], *, is_search: bool) -> None:
    """Raise `OptionError` if a run could not return the result that its options or its sweeper require.

    A search-based sweeper (hydra/sweeper=optuna) requires an `objective_metric`, which is read from the journal.

    Args:
        config: config of the run.
        is_search: whether a search-based sweeper started the run.
    """
    metric = config["objective_metric"]
    if is_search and metric is None:
        raise OptionError("hydra/sweeper needs a number from each run: set objective_metric=server_val/acc")
    if metric is not None and not config["callback"].get("journal"):
        raise OptionError(f"objective_metric={metric} is read from the journal: do not remove callback.journal")


def read_objective(folder: Path, metric_name: str | None) -> float | None:
    """Return the last value of `metric_name` in the journal of the run in `folder`; None if `metric_name` is None.

    Raises `FedcohortError`, which makes the job fail, if the metric of no trained model was measured, or the value is
    not finite.
    """
    if metric_name is None:
        return None
    final_value = read_last_metric_value(folder, metric_name)
    if final_value is None:
        raise FedcohortError(f"objective_metric={metric_name} was never measured in {folder}: lower eval.every")
    if not math.isfinite(final_value):
        raise FedcohortError(
            f"objective_metric={metric_name} is {final_value} at the end of {folder}: the job has no result to search "
            "by; narrow the search, or choose another metric"
        )
    return final_value


def read_last_metric_value(folder: Path, metric_name: str) -> float | None:
    """Return the last value of `metric_name` in the journal of the run in `folder`; None if it was never measured.

    The value of the untrained model does not count.
    """
    lines, _ = history.read_journal_lines(folder / history.JOURNAL_FILE)
    metric_values = [line.metrics[metric_name] for line in lines if line.step > 0 and metric_name in line.metrics]
    return metric_values[-1] if metric_values else None


@contextmanager
def handle_job_signals() -> Iterator[None]:
    """Return a context manager in which SIGTERM and Ctrl-C end a job's process in an orderly way.

    A running round is completed first. A SLURM job that was preempted goes back to the queue.
    """
    is_outermost_handler = not interrupts.are_handlers_installed
    try:
        with interrupts.handle_signals():
            try:
                yield
            except (KeyboardInterrupt, SystemExit):
                if interrupts.exit_code:
                    with interrupts.delay_signals():  # the requeue itself sends another signal
                        slurm.requeue_if_preempted()
                raise
    except StopSignal as stop:
        if not is_outermost_handler:
            raise
        log.warning("%s", STOPPED_BEFORE_TRAINING)
        raise SystemExit(stop.code) from None
