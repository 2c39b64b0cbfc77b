"""Combinations that are refused at start-up, with the reason (specs/aggregators.md part H)."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fedcohort.engine.parts import Parts, Populations
from fedcohort.errors import IncompatibleConfig, OptionError
from fedcohort.signal.base import find

if TYPE_CHECKING:
    from fedcohort.federation import Federation

REASONS = {
    "timed_device": "{who} reads how long clients take, but device=instant takes no time: "
    "choose device=shifted_exponential",
    "plain_client": "{who} reads a gradient off the displacement of the model, which only holds for plain SGD: choose "
    "agg.control=mean_gradient, or client=sgd without momentum, weight_decay and clip",
    "attributes": "{who} reads how many samples of each class and attribute clients have, but dataset={dataset} knows "
    "no attributes: choose dataset=cmnist, or selector.source=estimated for selector=feddiverse",
}


def check(parts: Parts) -> None:
    """Raise `IncompatibleConfig` where the parts can't work together, whatever the data."""
    _refuse(parts, {"timed_device": parts.device.timed, "plain_client": parts.client.plain})


def _refuse(parts: Parts, holds: Mapping[str, bool], **names: str) -> None:
    """Raise `IncompatibleConfig` at the first fact in `holds` that a part wants and that isn't so."""
    readers = {"the selector": parts.selector.needs, "the aggregator": parts.agg.needs}
    wanted: list[tuple[str, str | None]] = [("the aggregator", fact) for fact in sorted(parts.agg.wants)]
    wanted += [(who, find(word).wants) for who, needs in readers.items() for word in sorted(needs)]
    for who, fact in wanted:
        if fact is not None and not holds.get(fact, True):
            raise IncompatibleConfig(REASONS[fact].format(who=who, **names))


def check_population(parts: Parts, cohort: int, federation: "Federation") -> None:
    """Raise `IncompatibleConfig` or `OptionError` where cohort or selector ask for more clients than there are."""
    if cohort > federation.n_clients:
        raise IncompatibleConfig(
            f"cohort={cohort} exceeds the {federation.n_clients} clients of dataset={federation.name}"
        )
    _refuse(parts, {"attributes": federation.group_counts is not None}, dataset=federation.name)
    try:
        parts.selector.init(Populations.over(federation, cohort).of(parts.selector.needs, "the selector"))
    except OptionError as error:
        raise OptionError(f"selector.{error}") from error


def remarks(parts: Parts, choices: Mapping[str, str], requires: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """What is legal and without effect, said once at the start. requires: what aliases stand for, by group."""
    if parts.deadline.bounded or not parts.deadline.partial_work:
        return []
    line = f"deadline.partial_work=true has no effect with deadline={choices['deadline']}, where everybody finishes"
    meant = [f"{group}={choices[group]}" for group, wanted in requires.items() if "deadline.partial_work" in wanted]
    return [line + "".join(f"; {word} is meant with a deadline (deadline=fixed)" for word in meant)]
