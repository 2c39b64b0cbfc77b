"""Pisces: clients with high losses whose updates arrive with little staleness (Jiang et al. 2022).

Jiang, Wang, Li, Li, "Pisces: Efficient Federated Learning via Guided Asynchronous Training", SoCC 2022, arXiv
2206.09264.

    utility:  U_k = |B_k| sqrt(1/|B_k| sum over B_k of loss^2) (1 + mean of k's last W stalenesses)^-beta
    n places:  Binomial(n, eps) clients that never trained, uniformly, and the others with the largest U_k
    after a selection:  eps <- max(decay eps, eps_min)

B_k are the samples of k's first local epoch when it last trained. It selects whenever a place is free, which
deadline=buffered provides; agg=fedbuff agg.weighting=samples is close to its aggregation. The rule rests on the
abstract and on the authors' code in Plato; the full text was not read.

Departures from the paper:
- A client without a past staleness has 0.
- The server steps after `deadline.buffer` arrivals; Pisces also steps before the staleness of a client that works would
  exceed a bound. With deadline.max_staleness such an update is dropped.
- Clients that report false losses are not sought by clustering. The code has this option, which is off by default.
- The code takes a moving average of batch losses instead of the mean square of the samples' losses.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from jaxtyping import Float64

from fedcohort import ranges
from fedcohort.component import CLEAN_LABELS, LATE_UPDATES, Requirement
from fedcohort.selector.base import Selector, draw, top
from fedcohort.selector.ranking_terms import client_utilities
from fedcohort.types import Population, ProbeResult, RoundContext, RoundOutcome, Selection, Values


@dataclass(frozen=True)
class State:
    """State of Pisces that is kept between rounds.

    Attributes:
        utility: utility of each client, from the losses of its last job, before the staleness factor, [n_clients]; NaN
            before its first job, or if its report is invalid.
        staleness: staleness in server steps of each client's last updates, the latest last, [n_clients, window]; NaN
            for missing ones.
        n_trained: number of updates of each client, [n_clients].
        eps: current share of places for clients that never trained.
    """

    utility: Values
    staleness: Float64[np.ndarray, "_k _w"]
    n_trained: Values
    eps: float


@dataclass(frozen=True)
class Pisces(Selector[State]):
    """Pisces, a client selector for asynchronous training: it ranks clients by loss and staleness.

    Attributes:
        beta: exponent of the staleness discount (1 + mean staleness)^-beta.
        window: number of past updates whose staleness counts.
        eps: share of places for clients that never trained, at the first selection.
        eps_decay: factor of `eps` per selection.
        eps_min: lower bound of `eps`.
    """

    beta: float
    window: int
    eps: float
    eps_decay: float
    eps_min: float

    backs_off: ClassVar[bool] = True
    needs: ClassVar[frozenset[str]] = frozenset({"loss_count", "loss_squares"})
    recommendations: ClassVar[frozenset[Requirement]] = frozenset({CLEAN_LABELS, LATE_UPDATES})

    def __post_init__(self) -> None:
        ranges.number("beta", self.beta, "[0, inf)")
        ranges.integer("window", self.window, "[1, 1000]")
        ranges.number("eps", self.eps, "[0, 1]")
        ranges.number("eps_decay", self.eps_decay, "(0, 1]")
        ranges.number("eps_min", self.eps_min, "[0, 1]")

    def init(self, population: Population) -> State:
        K = population.n_clients
        return State(np.full(K, np.nan), np.full((K, self.window), np.nan), np.zeros(K), self.eps)

    def select(self, state: State, ctx: RoundContext, probes: Mapping[str, ProbeResult]) -> tuple[Selection, State]:
        stale_discounts = self.staleness_discounts(state)
        scores, available_ids = state.utility * stale_discounts, ctx.available
        has_trained = state.n_trained[available_ids] > 0
        n_chosen = min(ctx.cohort, len(available_ids))
        n_explored = min(int(ctx.rng.binomial(n_chosen, state.eps)), int((~has_trained).sum()))
        n_explored = max(n_explored, n_chosen - int(has_trained.sum()))
        explored_ids = draw(np.ones(ctx.n_clients), available_ids[~has_trained], n_explored, ctx.rng)
        n_exploited = n_chosen - n_explored
        trained_ids = available_ids[has_trained]
        exploited_ids = top(scores, trained_ids, n_exploited, ctx.rng) if n_exploited else trained_ids[:0]
        clients = np.sort(np.concatenate([explored_ids, exploited_ids]))
        next_state = replace(state, eps=max(self.eps_decay * state.eps, self.eps_min))
        return Selection(clients, scores, {"utility": state.utility, "staleness": stale_discounts}), next_state

    def staleness_discounts(self, state: State) -> Values:
        """Return (1 + mean staleness)^-beta of each client in `state`, [n_clients]."""
        n_known_updates = np.maximum((~np.isnan(state.staleness)).sum(1), 1)
        return np.asarray((1.0 + np.nansum(state.staleness, axis=1) / n_known_updates) ** -self.beta, np.float64)

    def observe(self, state: State, outcome: RoundOutcome) -> tuple[None, State]:
        clients, signals = outcome.clients, outcome.signals
        utility, staleness, n_trained = (v.copy() for v in (state.utility, state.staleness, state.n_trained))
        utility[clients] = client_utilities(signals["loss_count"], signals["loss_squares"])
        staleness[clients] = np.roll(staleness[clients], -1, axis=1)
        staleness[clients, -1] = outcome.staleness
        n_trained[clients] += 1
        return None, State(utility, staleness, n_trained, state.eps)
