"""Exponential back-off: a client that failed repeatedly is not offered to the selector for a while.

    f_k <- 0 for k that arrived, f_k + 1 for k that failed.
    From f_k = 3 on, k is withheld after a failure for min(2^(f_k - 3), 8) laps of ceil(K / m) rounds.

In a lap every client could be selected once: a client that is withheld for one lap takes no more than its share of the
places. The filter applies to selectors with `backs_off`; it never leaves fewer clients
than a cohort needs, but offers first those whose back-off ends first. An arrival resets a client's count of failures.
"""

from dataclasses import dataclass, replace

import numpy as np

from fedcohort.types import Ids, RoundContext, RoundOutcome

PATIENCE = 3  # failures in a row before a client is withheld: one or two are chance
DOUBLINGS = 3  # of the time that a client is withheld


@dataclass(frozen=True)
class Backoff:
    """Clients that failed since they last arrived.

    Attributes:
        clients: sorted ids.
        failures: failures in a row of each.
        last: round of each one's latest failure.
    """

    clients: Ids
    failures: Ids
    last: Ids


NO_FAILURES = Backoff(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64))


def update(past: Backoff, outcome: RoundOutcome) -> Backoff:
    """Return the failures after a round."""
    kept = ~np.isin(past.clients, outcome.clients)
    if not kept.any() and not len(outcome.failed):
        return NO_FAILURES
    clients = np.union1d(past.clients[kept], outcome.failed)
    failures, last = np.zeros(len(clients), np.int64), np.zeros(len(clients), np.int64)
    before, now = (np.searchsorted(clients, some) for some in (past.clients[kept], outcome.failed))
    failures[before], last[before] = past.failures[kept], past.last[kept]
    failures[now] += 1
    last[now] = outcome.round
    return Backoff(clients, failures, last)


def withhold(past: Backoff, ctx: RoundContext, shortlist: int) -> RoundContext:
    """Return the round with fewer available clients: those that back off move to `ctx.backed_off`.

    Args:
        past: failures before this round.
        ctx: the round, with all clients that are ready.
        shortlist: number of clients that the selector chooses from (`Selector.shortlist`), the least that are left.
    """
    failing = past.failures >= PATIENCE
    least = min(shortlist, len(ctx.available))
    if not failing.any() or not least:
        return ctx
    lap = -(-ctx.n_clients // shortlist)
    laps = 2 ** np.minimum(past.failures[failing] - PATIENCE, DOUBLINGS)
    back = np.full(ctx.n_clients, ctx.round)
    back[past.clients[failing]] = np.maximum(past.last[failing] + 1 + lap * laps, ctx.round)
    back = back[ctx.available]
    soonest = np.partition(back, least - 1)[least - 1]  # equals come back together, so that no id is preferred
    offered = back <= soonest
    return replace(ctx, available=ctx.available[offered], backed_off=ctx.available[~offered])
