"""The jobs of a sweep or a study that would be rejected, found before the first one starts."""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fedcohort.errors import IncompatibleConfig
from fedcohort.jobs.job import check_objective
from fedcohort.jobs.status import varying_overrides
from fedcohort.record.sweep_folder import Plan
from fedcohort.startup.check import check_before_data
from fedcohort.startup.compose import Composed
from fedcohort.startup.hydra_errors import explain

log = logging.getLogger("fedcohort")


@dataclass(frozen=True)
class Rejection:
    """A job that would be rejected: its number, from 0 on, overrides, reason and class of error."""

    number: int
    words: Sequence[str]
    reason: str
    kind: str = ""


def list_rejected(
    jobs: Sequence[Sequence[str]], compose: Callable[[tuple[str, ...]], Composed], configs: Path
) -> Iterator[Rejection]:
    """Compose each job, check its components against each other, and yield those that would be rejected.

    Errors that depend on the data are found when the job runs.
    """
    for number, words in enumerate(jobs):
        try:
            composition = compose(tuple(words))
            check_before_data(composition)
            check_objective(composition.config, by_search=False)
        except Exception as error:
            reason = explain(error, words, configs)
            if reason is None:
                raise
            yield Rejection(number, words, reason, type(error).__name__)


def plan_sweep(rejected: Sequence[Rejection], jobs: Sequence[Sequence[str]], launcher: str, *, skip: bool) -> Plan:
    """Return the plan of a sweep without the jobs that would be rejected, and print these.

    Args:
        rejected: the jobs that would be rejected.
        jobs: all jobs of the sweep.
        launcher: the class that starts the jobs.
        skip: whether the others start without them (`sweep.skip_refused`).

    Raises:
        IncompatibleConfig: with the rejected jobs, where nothing starts because of them.
    """
    lines = [f"  job {job.number + 1} ({varying_overrides(jobs, job.words)}): {job.reason}" for job in rejected]
    if rejected and (not skip or len(rejected) == len(jobs)):
        hint = "; the others run with sweep.skip_refused=true" if len(rejected) < len(jobs) else ""
        how = f"jobs would be rejected, and none was started{hint}:"
        raise IncompatibleConfig("\n".join([f"{len(rejected)} of {len(jobs)} {how}", *lines]))
    if rejected:
        log.warning("%s", "\n".join([f"{len(rejected)} of {len(jobs)} jobs left out:", *lines]))
    numbers = {job.number for job in rejected}
    started = [words for number, words in enumerate(jobs) if number not in numbers]
    return Plan(started, [(job.words, job.reason) for job in rejected], launcher)
