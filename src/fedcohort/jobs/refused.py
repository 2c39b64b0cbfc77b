"""The jobs of a sweep or a study that would be rejected, found before the first one starts."""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fedcohort.errors import IncompatibleConfig
from fedcohort.jobs.job import check_objective
from fedcohort.jobs.status import varying_overrides
from fedcohort.startup.check import check_before_data
from fedcohort.startup.compose import Composed
from fedcohort.startup.hydra_errors import explain

log = logging.getLogger("fedcohort")


@dataclass(frozen=True)
class Refusal:
    """A job that would be rejected: its number, from 0 on, overrides, reason and class of error."""

    number: int
    words: Sequence[str]
    reason: str
    kind: str = ""


def list_refused(
    jobs: Sequence[Sequence[str]], compose: Callable[[tuple[str, ...]], Composed], configs: Path
) -> Iterator[Refusal]:
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
            yield Refusal(number, words, reason, type(error).__name__)


def leave_out_rejected(refused: Sequence[Refusal], jobs: Sequence[Sequence[str]], *, skip: bool) -> list[Sequence[str]]:
    """Return the jobs that would not be rejected, and print those that would.

    Args:
        refused: the jobs that would be rejected.
        jobs: all jobs of the sweep.
        skip: whether the others start without them (`sweep.skip_refused`).

    Raises:
        IncompatibleConfig: with the rejected jobs, where nothing starts because of them.
    """
    if refused and (not skip or len(refused) == len(jobs)):
        hint = "; the others run with sweep.skip_refused=true" if len(refused) < len(jobs) else ""
        raise IncompatibleConfig(_describe(refused, jobs, f"would be rejected, and none was started{hint}"))
    if refused:
        log.warning("%s", _describe(refused, jobs, "left out"))
    numbers = {refusal.number for refusal in refused}
    return [words for number, words in enumerate(jobs) if number not in numbers]


def _describe(refused: Sequence[Refusal], jobs: Sequence[Sequence[str]], how: str) -> str:
    """Return a line for each job that would be rejected, with the overrides that not all jobs have."""
    lines = [
        f"  job {refusal.number + 1} ({varying_overrides(jobs, refusal.words)}): {refusal.reason}"
        for refusal in refused
    ]
    return "\n".join([f"{len(refused)} of {len(jobs)} jobs {how}:", *lines])
