"""One job of a sweep, in whichever process its launcher starts: compose its options, run it, record how it ended."""

import logging
import os
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from fedcohort.errors import FedcohortError, describe
from fedcohort.host import slurm
from fedcohort.host.interrupt import STOPPED_BEFORE_TRAINING, Stop, interrupts
from fedcohort.jobs import gpus, objective_metric
from fedcohort.record.folder import describe_log
from fedcohort.record.sweep_folder import SweepJob
from fedcohort.startup.check import check_options
from fedcohort.startup.compose import Composed
from fedcohort.startup.compose_jobs import compose_job
from fedcohort.startup.run import run

log = logging.getLogger("fedcohort")


@dataclass(frozen=True)
class JobContext:
    """What all jobs of a sweep share; it is sent to the processes that run them.

    Attributes:
        folder: folder of the sweep.
        configs: folder of the config groups.
        hydra: options of Hydra that were typed, such as `hydra.searchpath`.
        env: environment variables of `hydra.job.env_set`.
        search: whether a sweeper searches, so that a failed job must raise its error.
        share_gpus: whether each process takes one GPU of this machine.
        prints_errors: whether the error of a failed job is printed; its record has it in any case.
    """

    folder: Path
    configs: Path
    hydra: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    search: bool = False
    share_gpus: bool = False
    prints_errors: bool = True

    def run(self, number: int, words: Sequence[str]) -> float | None:
        """Run the job with this number and these overrides; return its objective metric."""
        os.environ.update(self.env)
        job = SweepJob(self.folder, number, tuple(words))
        composition = lambda: compose_job(tuple(words), self.configs, self.hydra)  # noqa: E731
        return run_job(job, composition, self)


def run_job(job: SweepJob, composition_of: Callable[[], Composed], context: JobContext) -> float | None:
    """Run `job`, record how it ended, and return its objective metric.

    Args:
        job: the job, whose record this writes.
        composition_of: composes the config. Its errors are failures of the job.
        context: what the jobs of the sweep share.
    """
    job.note("running")
    metric = None
    try:
        composition = composition_of()
        metric = composition.config["objective_metric"]
        folder = run_checked(composition, job, search=context.search, share_gpus=context.share_gpus)
        value = objective_metric.read_objective(folder, metric)
    except (KeyboardInterrupt, SystemExit):  # a signal ends the whole sweep
        job.note("stopped")
        raise
    except Exception as error:
        interrupts.check()  # an import that a signal interrupts may raise any error
        expected = isinstance(error, FedcohortError)
        if context.prints_errors:
            log.error("%s", error if expected else traceback.format_exc().rstrip())
        reason = f"{error if expected else describe(error)}{describe_log(job.folder)}"
        job.note("failed", reason=reason, kind=type(error).__name__)
        if context.search or metric is not None:
            raise
        return None
    job.note(job.end, value=value)
    return value


def run_checked(
    composition: Composed,
    job: SweepJob | None,
    *,
    search: bool = False,
    share_gpus: bool = False,
    last: bool = False,
) -> Path:
    """Check the options, run, and return the run's folder.

    Args:
        composition: the composed config.
        job: the job of the sweep that the run belongs to; None outside of a sweep.
        search: whether a sweeper searches, which needs an objective metric.
        share_gpus: whether the process takes one GPU of this machine.
        last: whether the process ends after this run.
    """
    check_options(composition)
    objective_metric.check_objective(composition.config, by_search=search)
    if job is not None and share_gpus:
        gpus.lease(job, composition)
    return run(composition, job, last=last)


@contextmanager
def own_process() -> Iterator[None]:
    """Answer signals in a process that a launcher started, and return a preempted SLURM job to the queue."""
    outermost = not interrupts.is_installed
    try:
        with interrupts.handle_signals():
            try:
                yield
            except (KeyboardInterrupt, SystemExit):
                if interrupts.code:
                    with interrupts.delay_signals():  # the requeue itself sends another signal
                        slurm.requeue_if_preempted()
                raise
    except Stop as stop:
        if not outermost:
            raise
        log.warning("%s", STOPPED_BEFORE_TRAINING)
        raise SystemExit(stop.code) from None
