"""E3CS: exponential weights for clients that return their updates, with a minimum probability (Huang et al. 2022).

Huang, Lin, Shen, Li, Zomaya, "Stochastic Client Selection for Federated Learning with Volatile Clients", IEEE Internet
of Things Journal 9, 2022, arXiv 2011.08756.

    probability:  p_k = sigma + (m - K sigma) min(w_k, a) / sum_j min(w_j, a), sigma = quota m / K
    S:  m clients, k with probability p_k
    after a round:  w_k <- w_k exp((m - K sigma) eta x_k / (K p_k)) for k in S that are not capped

x_k is 1 if the update of k arrived in time, and 0 otherwise. The cap a is infinite where no p_k exceeds 1. Otherwise it
is the number with which the largest p_k are 1. Weights are 1 at first and are kept as logarithms. A quota of 1 is
selector=random, and learns nothing.

The abstract and one third-party implementation were read, the full text was not. eta is that of the implementation.

Departures from the paper:
- The draw is systematic (draw=exact): clients are laid on a line in random order, each with length p_k, and the points
  u, u + 1, .. select them, with u uniform in (0, 1]. P(k in S) is then p_k exactly. draw=multinomial draws successively
  in proportion to p, which the paper is recalled to do: a client with p_k = 1 may then be left out.
- The implementation cuts p_k at 1 without giving the rest to the others, and updates the weights of all clients.
- K is the number of available clients in rounds with absences.
- The paper's quota that increases after a quarter of the rounds is selector.quota=0 with selector.uniform_from.
- A weight counts as at least 1e-12 of the largest, so that every probability is positive.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool

from fedcohort import ranges
from fedcohort.selector.base import Selector, draw
from fedcohort.types import Ids, Population, ProbeResult, RoundContext, RoundOutcome, Selection, Values

MIN_RELATIVE_WEIGHT = 1e-12  # of the largest weight


@dataclass(frozen=True)
class State:
    """State of E3CS that is kept between rounds.

    Attributes:
        log_weights: logarithm of each client's weight minus the largest logarithm, [n_clients].
        log_weight_gain: increase of a client's log weight if it arrives, as fixed at its latest selection, [n_clients];
            0 where its selection probability was capped at 1.
    """

    log_weights: Values
    log_weight_gain: Values


@dataclass(frozen=True)
class E3cs(Selector[State]):
    """E3CS, a client selector: an exponential-weight bandit that prefers clients whose updates arrive.

    Attributes:
        eta: learning rate of the weights.
        quota: least selection probability of a client in multiples of cohort / available clients.
        uniform_from: round from which the quota is 1, so that draws are uniform; None for never.
        draw: "exact" selects each client with its selection probability; "multinomial" draws successively in
            proportion.
    """

    eta: float
    quota: float
    uniform_from: int | None
    draw: str

    def __post_init__(self) -> None:
        ranges.number("eta", self.eta, "(0, inf)")
        ranges.number("quota", self.quota, "[0, 1]")
        ranges.integer("uniform_from", self.uniform_from, "[0, inf)", allow_null=True)
        ranges.choice("draw", self.draw, "exact", "multinomial")

    def init(self, population: Population) -> State:
        return State(np.zeros(population.n_clients), np.zeros(population.n_clients))

    def select(self, state: State, ctx: RoundContext, probes: Mapping[str, ProbeResult]) -> tuple[Selection, State]:
        available_ids, n_available = ctx.available, len(ctx.available)
        m, p, log_weight_gain_if_arrived = (
            min(ctx.cohort, n_available),
            np.zeros(ctx.n_clients),
            np.zeros(ctx.n_clients),
        )
        quota_of_round = 1.0 if self.uniform_from is not None and ctx.round >= self.uniform_from else self.quota
        random_sort_keys = ctx.rng.random(ctx.n_clients)
        if not n_available:
            return Selection(available_ids, probability=p), state
        log_weights = state.log_weights[available_ids]
        w = np.maximum(np.exp(log_weights - log_weights.max()), MIN_RELATIVE_WEIGHT)
        p[available_ids], is_probability_capped = capped_probabilities(w, m, quota_of_round * m / n_available)
        uncapped_log_weight_gains = m * (1 - quota_of_round) * self.eta / n_available / p[available_ids]
        log_weight_gain_if_arrived[available_ids] = np.where(is_probability_capped, 0.0, uncapped_log_weight_gains)
        if self.draw == "multinomial":
            clients = draw(p, available_ids, m, ctx.rng)
        else:
            shuffled_ids = available_ids[np.argsort(random_sort_keys[available_ids])]
            clients = np.sort(shuffled_ids[draw_systematically(p[shuffled_ids], m, 1.0 - ctx.rng.random())])
        log_weight_gain = state.log_weight_gain.copy()  # an update may arrive later than its round
        log_weight_gain[clients] = log_weight_gain_if_arrived[clients]
        return Selection(clients, state.log_weights, probability=p), replace(state, log_weight_gain=log_weight_gain)

    def observe(self, state: State, outcome: RoundOutcome) -> tuple[None, State]:
        log_weights = state.log_weights.copy()
        log_weights[outcome.clients] += state.log_weight_gain[outcome.clients]
        return None, replace(state, log_weights=log_weights - log_weights.max())


def capped_probabilities(w: Values, m: int, sigma: float) -> tuple[Values, Bool[np.ndarray, "_n"]]:
    """Return the selection probability of each client, which sum to m, and whether it is capped at 1, [n] each.

    The c clients with the largest weights are capped. Each other client has sigma, and a part of the remaining
    m - c - (n - c) sigma in proportion to `w`. c is the smallest number for which no probability exceeds 1.

    Args:
        w: weight of each client, positive, [n].
        m: number of draws, at most n.
        sigma: least probability, at most m / n.
    """
    n = len(w)
    if m == n:
        return np.ones(n), np.ones(n, bool)
    weight_order = np.argsort(-w, kind="stable")
    c, largest_weights = np.arange(m), w[weight_order[:m]]
    weight_sums = np.cumsum(w[weight_order[::-1]])[::-1][:m]  # sum of the weights from the c-th largest on
    probability_to_share = m - c - (n - c) * sigma
    n_capped_clients = int(np.argmax(sigma + probability_to_share * largest_weights / weight_sums <= 1 + 1e-12))
    is_probability_capped = np.zeros(n, bool)
    is_probability_capped[weight_order[:n_capped_clients]] = True
    p = np.where(
        is_probability_capped, 1.0, sigma + probability_to_share[n_capped_clients] * w / weight_sums[n_capped_clients]
    )
    return np.minimum(p, 1.0), is_probability_capped


def draw_systematically(p: Values, m: int, random_start: float) -> Ids:
    """Return the positions of m clients that a systematic draw selects, each with probability p, ascending int64 [m].

    Each client is a segment of length p on a line; the points random_start, random_start + 1, .. select m of them.

    Args:
        p: probability of each client, at most 1, with the sum m, [n].
        m: number of clients to select.
        random_start: random first point on the line, in (0, 1].
    """
    cumulative_probs = np.cumsum(p)
    drawn_positions = np.searchsorted(cumulative_probs * (m / cumulative_probs[-1]), random_start + np.arange(m))
    # rounding may select a client of length 1 twice, or go beyond the end of the line
    drawn_positions = np.maximum.accumulate(drawn_positions - np.arange(m)) + np.arange(m)
    return np.minimum(drawn_positions, len(p) - m + np.arange(m))
