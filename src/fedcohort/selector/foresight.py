"""What the yardsticks that know the future share: everybody trains from w_t, in secret, before a cohort is chosen."""

from collections.abc import Mapping, Sequence

import numpy as np

from fedcohort import ranges
from fedcohort.selector.base import answers, top
from fedcohort.types import Population, Probe, ProbeResult, RoundContext, Selection


def check(limit: int, population: Population) -> None:
    """Raises `OptionError` where there are more clients than `limit`: all of them train in every round."""
    if population.n_clients > limit:
        allowed = f"an integer of at least {population.n_clients}, the clients there are: all of them train every round"
        raise ranges.refuse("limit", allowed, limit)


def asked(direction: str, ctx: RoundContext) -> Sequence[Probe]:
    """Nothing where everybody who is available is needed anyway. direction: "down" or "up", as in `greedy_gain`."""
    if len(ctx.available) <= ctx.cohort:
        return ()
    return (Probe("greedy_gain", ctx.available, {"cohort": ctx.cohort, "direction": direction}),)


def first(probes: Mapping[str, ProbeResult], ctx: RoundContext) -> Selection:
    """Those who were picked first."""
    scores = answers(probes, "greedy_gain").dense(ctx.n_clients)
    scores[ctx.available] = np.where(np.isfinite(scores[ctx.available]), scores[ctx.available], -np.inf)
    return Selection(top(scores, ctx.available, ctx.cohort, ctx.rng), scores)
