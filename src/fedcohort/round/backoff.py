"""Exponential back-off: a client that failed repeatedly is not offered to the selector for a while.

    f_k <- 0 for k that arrived, f_k + 1 for k that failed.
    From f_k = 3 on, k is withheld after a failure for min(2^(f_k - 3), 8) laps of ceil(K / m) rounds.

K is the number of all clients, and m that of the clients from which the selector chooses (`Selector.shortlist`).

In a lap every client could be selected once, so that a client that is withheld for one lap is selected at most as often
as any other. The filter applies to selectors with `backs_off`. It always leaves as many clients as the selector chooses
from; if necessary, it readmits the clients whose back-off ends first. An arrival resets a client's count of failures.
"""

from dataclasses import dataclass, replace

import numpy as np

from fedcohort.types import Ids, RoundContext, RoundOutcome

MAX_FAILURES = 3  # consecutive failures before a client is withheld; one or two may be random
MAX_BACKOFF_DOUBLINGS = 3  # largest number of doublings of the time that a client is withheld


@dataclass(frozen=True)
class Backoff:
    """The clients that failed since their last update arrived, with their numbers of failures.

    Attributes:
        clients: sorted ids, [f].
        failures: number of consecutive failures of each client, [f].
        last: round of the latest failure of each client, [f].
    """

    clients: Ids
    failures: Ids
    last: Ids


NO_CLIENT_FAILURES = Backoff(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64))


def update_backoff(backoff: Backoff, round_outcome: RoundOutcome) -> Backoff:
    """Return the clients' consecutive failures after a round: an arrival resets them, a failure adds one.

    Args:
        backoff: failures before the round.
        round_outcome: the clients that arrived and that failed in the round.
    """
    has_not_arrived = ~np.isin(backoff.clients, round_outcome.clients)
    if not has_not_arrived.any() and not len(round_outcome.failed):
        return NO_CLIENT_FAILURES
    clients = np.union1d(backoff.clients[has_not_arrived], round_outcome.failed)
    failures, last_failure_round = np.zeros(len(clients), np.int64), np.zeros(len(clients), np.int64)
    earlier_failure_positions = np.searchsorted(clients, backoff.clients[has_not_arrived])
    failures[earlier_failure_positions] = backoff.failures[has_not_arrived]
    last_failure_round[earlier_failure_positions] = backoff.last[has_not_arrived]
    new_failure_positions = np.searchsorted(clients, round_outcome.failed)
    failures[new_failure_positions] += 1
    last_failure_round[new_failure_positions] = round_outcome.round
    return Backoff(clients, failures, last_failure_round)


def omit_failed_clients(backoff: Backoff, ctx: RoundContext, shortlist_size: int) -> RoundContext:
    """Return the round's context without clients that failed repeatedly: they move from `available` to `backed_off`.

    Args:
        backoff: failures before this round.
        ctx: context of the round, with all clients that are ready.
        shortlist_size: number of clients that the selector chooses from (`Selector.shortlist`); at least so many stay
            available, if so many are ready.
    """
    is_client_failing = backoff.failures >= MAX_FAILURES
    min_available_clients = min(shortlist_size, len(ctx.available))
    if not is_client_failing.any() or not min_available_clients:
        return ctx
    rounds_to_select_all = -(-ctx.n_clients // shortlist_size)
    backoff_factor = 2 ** np.minimum(backoff.failures[is_client_failing] - MAX_FAILURES, MAX_BACKOFF_DOUBLINGS)
    readmission_round = np.full(ctx.n_clients, ctx.round)
    readmission_round[backoff.clients[is_client_failing]] = np.maximum(
        backoff.last[is_client_failing] + 1 + rounds_to_select_all * backoff_factor, ctx.round
    )
    readmission_round = readmission_round[ctx.available]
    # clients that return in the same round are readmitted together, so that no id is preferred
    last_readmission_round = np.partition(readmission_round, min_available_clients - 1)[min_available_clients - 1]
    is_client_available = readmission_round <= last_readmission_round
    return replace(ctx, available=ctx.available[is_client_available], backed_off=ctx.available[~is_client_available])
