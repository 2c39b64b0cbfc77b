"""The jobs of a sweep or a study that would be rejected, found before the first one starts."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fedcohort.jobs import objective_metric
from fedcohort.startup.check import check
from fedcohort.startup.compose import Composed
from fedcohort.startup.hydra_errors import explain


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

    What only the data can tell is found when the job runs.
    """
    for number, words in enumerate(jobs):
        try:
            composition = compose(tuple(words))
            check(composition)
            objective_metric.check(composition.config, by_search=False)
        except Exception as error:
            reason = explain(error, words, configs)
            if reason is None:
                raise
            yield Refusal(number, words, reason, type(error).__name__)
