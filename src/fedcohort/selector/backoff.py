"""Exponential backoff, for selectors whose own rule would go on asking clients that never arrive.

    f_k <- 0 for k that arrived, f_k + 1 for k that failed
    from f_k = 3 on, k rests after a failure for min(2^(f_k - 3), 8) laps, of ceil(K / m) rounds each

A lap is what it takes to ask everybody once, so that who rests for one takes no more places than its share. To the
method, who rests is as a client that is away. Nobody rests where fewer than a cohort would be left: then those come
back whose rest ends first. A client that arrives has a clean slate; one that comes back after any time is asked again
within eight laps. Where nobody fails three times in a row, nothing changes.
"""

from dataclasses import dataclass, replace

import numpy as np

from fedcohort.types import Ids, RoundContext, RoundOutcome

PATIENCE = 3  # failures in a row that a method sees through: one or two are chance
DOUBLINGS = 3  # of a rest


@dataclass(frozen=True)
class Backoff:
    """Clients that failed, and how long they rest.

    Attributes:
        clients: sorted ids of those that failed since they last arrived.
        failures: how often.
        last: the latest round.
    """

    clients: Ids
    failures: Ids
    last: Ids


NOBODY = Backoff(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64))  # has failed: the first round


def after(past: Backoff, outcome: RoundOutcome) -> Backoff:
    """Move on by one round."""
    kept = ~np.isin(past.clients, outcome.clients)
    if not kept.any() and not len(outcome.failed):
        return NOBODY
    clients = np.union1d(past.clients[kept], outcome.failed)
    failures, last = np.zeros(len(clients), np.int64), np.zeros(len(clients), np.int64)
    before, now = (np.searchsorted(clients, some) for some in (past.clients[kept], outcome.failed))
    failures[before], last[before] = past.failures[kept], past.last[kept]
    failures[now] += 1
    last[now] = outcome.round
    return Backoff(clients, failures, last)


def ready(past: Backoff, ctx: RoundContext) -> RoundContext:
    """The round as the method sees it: available are those that don't rest, and never fewer than a cohort needs."""
    tired = past.failures >= PATIENCE
    least = min(ctx.cohort, len(ctx.available))
    if not tired.any() or not least:
        return ctx
    lap = -(-ctx.n_clients // ctx.cohort)
    laps = 2 ** np.minimum(past.failures[tired] - PATIENCE, DOUBLINGS)
    back = np.full(ctx.n_clients, ctx.round)
    back[past.clients[tired]] = np.maximum(past.last[tired] + 1 + lap * laps, ctx.round)
    back = back[ctx.available]
    soonest = np.partition(back, least - 1)[least - 1]  # equals come back together, so that no id is preferred
    return replace(ctx, available=ctx.available[back <= soonest])
