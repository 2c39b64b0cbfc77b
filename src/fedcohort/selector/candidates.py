"""Power of choice: what pow-d, cpow-d and rpow-d share. d candidates are drawn, the m of largest loss are chosen."""

import numpy as np

from fedcohort import ranges
from fedcohort.selector.base import draw, top
from fedcohort.types import Ids, Population, ProbeResult, RoundContext, Selection, Values


def check(candidates: int | None, population: Population) -> None:
    """Raises `OptionError` where d is less than m, or more than K."""
    m, K = population.cohort, population.n_clients
    if candidates is not None and not m <= candidates <= K:
        allowed = f"an integer in [{m}, {K}], from the cohort to all clients, or null"
        raise ranges.refuse("candidates", allowed, candidates)


def sizes(rule: str, ctx: RoundContext) -> Values:
    """Weights of the draw, [n_clients]: numbers of training samples by "size", ones by "uniform"."""
    return ctx.signals["n_train"].astype(float) if rule == "size" else np.ones(ctx.n_clients)


def draw_candidates(candidates: int | None, rule: str, ctx: RoundContext) -> Ids:
    """d available clients, one after the other by `sizes`; null is twice the cohort. All of them where d are not there.

    rule: "size" or "uniform".
    """
    d = max(ctx.cohort, 2 * ctx.cohort if candidates is None else candidates)
    return draw(sizes(rule, ctx), ctx.available, d, ctx.rng)


def largest(polled: ProbeResult, ctx: RoundContext) -> Selection:
    """The m largest finite losses among those polled, and others at random where too few answered."""
    loss = polled.dense(ctx.n_clients)
    scores = np.where(np.isfinite(loss), loss, -np.inf)
    clients = top(scores, polled.clients, ctx.cohort, ctx.rng)
    others = np.setdiff1d(ctx.available, clients, assume_unique=True)
    filling = draw(np.ones(ctx.n_clients), others, ctx.cohort - len(clients), ctx.rng)
    unasked = np.ones(ctx.n_clients, bool)
    unasked[polled.clients] = False
    scores[unasked] = np.nan
    return Selection(np.sort(np.concatenate([clients, filling])), scores)
