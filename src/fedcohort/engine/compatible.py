"""Combinations that are refused at start-up, with the reason (specs/aggregators.md part H)."""

from fedcohort.engine.parts import Parts
from fedcohort.errors import IncompatibleConfig
from fedcohort.federation import Federation
from fedcohort.signal.base import find

REASONS = {
    "timed_device": "{who} reads how long clients take, but device=instant takes no time: "
    "choose device=shifted_exponential",
    "plain_client": "{who} reads a gradient off the displacement of the model, which only holds for plain SGD: choose "
    "agg.control=mean_gradient, or client=sgd without momentum, weight_decay and clip",
}


def check(parts: Parts, cohort: int, federation: Federation) -> None:
    """Raise `IncompatibleConfig` where the parts can't work together."""
    holds = {"timed_device": parts.device.timed, "plain_client": parts.client.plain}
    readers = {"the selector": parts.selector.needs, "the aggregator": parts.agg.needs}
    wanted: list[tuple[str, str | None]] = [("the aggregator", fact) for fact in sorted(parts.agg.wants)]
    wanted += [(who, find(word).wants) for who, needs in readers.items() for word in sorted(needs)]
    for who, fact in wanted:
        if fact is not None and not holds[fact]:
            raise IncompatibleConfig(REASONS[fact].format(who=who))
    if cohort > federation.n_clients:
        raise IncompatibleConfig(
            f"cohort={cohort} exceeds the {federation.n_clients} clients of dataset={federation.name}"
        )
