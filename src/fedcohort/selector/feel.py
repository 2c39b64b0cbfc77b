"""FEEL scheduling: a draw that trades a client's weight in the gradient against its latency (Ren et al. 2020).

Ren, He, Wen, Yu, Huang, Guo, "Scheduling for Cellular Federated Edge Learning with Importance and Channel Awareness",
IEEE Transactions on Wireless Communications 2020, arXiv 2004.00490.

    minimise:  rho sum q_k T_k + (1 - rho) sum a_k^2 / q_k over sum q_k = 1, with a_k = n_k/n ||g_k||
    solution:  q_k = a_k sqrt((1 - rho) / (rho T_k + lambda)), lambda > -rho min T the only root of sum q_k = 1
    S:  m clients y_1 .. y_m, drawn successively in proportion to q among those that are left

agg=unbiased weighs the updates by Des Raj's ordered estimator, with w_k = n_k/n and q^(j) the probabilities at the j-th
draw:

    t_j:  sum_{i<j} w_{y_i} g_{y_i} + w_{y_j} g_{y_j} / q^(j)_{y_j}
    g:  (1/m) sum_j t_j, which has the mean E g = sum_k w_k g_k

Departures from the paper:
- The formula is derived from the objective above. The paper's draw of several clients and its value of rho were not
  available.
- T is divided by its mean and a by its sum, so that rho has no unit. Both terms are then 1 if q = a and all T are
  equal, for any number of clients. Dividing a^2 by its mean would make the second term the squared number of clients,
  and rho would have no effect.
- With several local steps there is no single gradient. g_k is the full-batch gradient at w_t, queried from all clients.
  importance=update_lag takes the norm of the client's last update without a query, and the mean of these for clients
  without one.
- T_k is the expected duration of a whole job: the actual duration is not known before it.
- agg=fedavg, the default, leaves the weights to the aggregator, like all other selectors. Unbiased weights need not sum
  to 1. Where selected clients fail, those of the arrivals are scaled to the same sum. Where the arrivals have no
  samples, no weights are advised.
- redraw=resolve solves for q again among the clients that are left before each draw.
- Only available clients are drawn. A norm that is zero or not finite counts as 1e-12 of the largest; where all are, all
  count equally.
- A client that failed three times in a row is withheld for some rounds (`round/backoff.py`) and not queried: as nothing
  trains on its data, its gradient stays large.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from fedcohort import ranges
from fedcohort.arrays import Ids, Values
from fedcohort.selector.base import Selector, draw, draw_successively, find_answers
from fedcohort.types import AggregationOverride, Population, Probe, ProbeResult, RoundContext, RoundOutcome, Selection

MIN_IMPORTANCE = 1e-12  # of the largest importance: every client can be drawn


@dataclass(frozen=True)
class State:
    """State of FEEL that is kept between rounds.

    Attributes:
        update_norms: norm of each client's last update, NaN before it, [n_clients].
        weights: weight of each client of the current cohort in Des Raj's estimator, 0 for other clients, [n_clients].
    """

    update_norms: Values
    weights: Values


@dataclass(frozen=True)
class Feel(Selector[State]):
    """FEEL scheduling, a client selector: it draws by gradient norm and latency.

    Attributes:
        rho: weight of the job duration against the importance, in [0, 1).
        importance: "grad" queries the norm of the full-batch gradient, "update_lag" takes that of the last update.
        redraw: probabilities of the other clients after each draw: "renormalise" divides them by their sum, "resolve"
            computes them again from importance and duration.
        agg: weights of the updates: "fedavg" keeps the aggregator's, "unbiased" takes those of Des Raj's estimator.
    """

    rho: float
    importance: str
    redraw: str
    agg: str

    backs_off: ClassVar[bool] = True

    def __post_init__(self) -> None:
        ranges.number("rho", self.rho, "[0, 1)")
        ranges.choice("importance", self.importance, "grad", "update_lag")
        ranges.choice("redraw", self.redraw, "renormalise", "resolve")
        ranges.choice("agg", self.agg, "fedavg", "unbiased")

    @property
    def advises(self) -> bool:
        return self.agg == "unbiased"

    @property
    def absolute(self) -> bool:
        return self.advises

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"n_train", "expected_s", "grad_norm" if self.importance == "grad" else "update_norm"})

    def init(self, population: Population) -> State:
        K = population.n_clients
        return State(np.full(K, np.nan), np.zeros(K))

    def plan(self, state: State, ctx: RoundContext) -> Sequence[Probe]:
        return (Probe("grad_norm", ctx.available),) if self.importance == "grad" else ()

    def select(self, state: State, ctx: RoundContext, probes: Mapping[str, ProbeResult]) -> tuple[Selection, State]:
        available_ids, n_train = ctx.available, ctx.signals["n_train"].astype(float)
        gradient_norm_answers, is_norm_queried = find_answers(probes, "grad_norm"), self.importance == "grad"
        gradient_norms = (
            gradient_norm_answers.dense(ctx.n_clients) if is_norm_queried else impute_update_norms(state.update_norms)
        )
        w = n_train / max(n_train[available_ids].sum(), 1.0)
        a, T, q = (np.full(ctx.n_clients, np.nan) for _ in range(3))
        T[available_ids] = divide_by_mean_duration(ctx.signals["expected_s"][available_ids])
        a[available_ids] = normalise_importance(w[available_ids] * gradient_norms[available_ids])
        q[available_ids] = feel_probabilities(a[available_ids], T[available_ids], self.rho)
        draw_order, draw_probabilities = self._draw_cohort(a, T, q, ctx)
        agg_weights = np.zeros(ctx.n_clients)
        agg_weights[draw_order] = des_raj_coefficients(w[draw_order], draw_probabilities)
        score_terms = {"importance": a, "latency": T}
        return Selection(np.sort(draw_order), q, score_terms, q), replace(state, weights=agg_weights)

    def observe(self, state: State, outcome: RoundOutcome) -> tuple[AggregationOverride | None, State]:
        update_norms = state.update_norms
        if self.importance == "update_lag":
            update_norms = update_norms.copy()
            update_norms[outcome.clients] = outcome.signals["update_norm"]
        state = replace(state, update_norms=update_norms)
        weights = state.weights[outcome.clients]
        if self.agg == "fedavg" or not weights.any():
            return None, state
        return AggregationOverride(weights=weights * (state.weights.sum() / weights.sum()), absolute=True), state

    def _draw_cohort(self, a: Values, T: Values, q: Values, ctx: RoundContext) -> tuple[Ids, Values]:
        """Draw the cohort; return its ids in the order of drawing, and the probability of each at its draw, [m] both.

        `a` is the importance of each client, `T` its relative duration and `q` its probability at the first draw,
        [n_clients].
        """
        m = min(ctx.cohort, len(ctx.available))
        if self.redraw == "renormalise":
            draw_order = draw_successively(q, ctx.available, m, ctx.rng)
            undrawn_probability = float(q[np.setdiff1d(ctx.available, draw_order, assume_unique=True)].sum())
            return draw_order, q[draw_order] / (undrawn_probability + np.cumsum(q[draw_order][::-1])[::-1])
        draw_order, draw_probabilities, undrawn_ids = np.empty(0, np.int64), np.empty(0), ctx.available
        for _ in range(m):
            q = np.zeros(ctx.n_clients)
            undrawn_a, undrawn_T = normalise_importance(a[undrawn_ids]), divide_by_mean_duration(T[undrawn_ids])
            q[undrawn_ids] = feel_probabilities(undrawn_a, undrawn_T, self.rho)
            drawn_id = draw(q, undrawn_ids, 1, ctx.rng)
            draw_order = np.append(draw_order, drawn_id)
            draw_probabilities = np.append(draw_probabilities, q[drawn_id])
            undrawn_ids = undrawn_ids[undrawn_ids != drawn_id]
        return draw_order, draw_probabilities


def impute_update_norms(update_norms: Values) -> Values:
    """Return `update_norms` [n_clients], with the mean of the finite ones for the others; all 1 if none is finite."""
    is_finite_norm = np.isfinite(update_norms)
    largest_norm = update_norms[is_finite_norm].max(initial=0.0)
    if not largest_norm > 0:
        return np.ones(len(update_norms))
    mean_norm = largest_norm * (update_norms[is_finite_norm] / largest_norm).mean()  # a plain sum could overflow
    return np.where(is_finite_norm, update_norms, mean_norm)


def normalise_importance(importances: Values) -> Values:
    """Return `importances` [n] divided by their sum, each at least 1e-12 of the largest, [n].

    All results are equal if no importance is positive and finite.
    """
    is_positive_importance = np.isfinite(importances) & (importances > 0)
    if not is_positive_importance.any():
        return np.full(len(importances), 1 / max(len(importances), 1))
    relative_importances = np.maximum(
        np.where(is_positive_importance, importances, 0.0) / importances[is_positive_importance].max(), MIN_IMPORTANCE
    )
    return np.asarray(relative_importances / relative_importances.sum())


def divide_by_mean_duration(job_seconds: Values) -> Values:
    """Return each duration of `job_seconds` [n] divided by the mean duration, [n]."""
    return job_seconds / max(job_seconds.mean(), 1e-300) if len(job_seconds) else job_seconds


def feel_probabilities(a: Values, T: Values, rho: float) -> Values:
    """Return the probability q with which each client is drawn, [n]; the sum is 1.

    Args:
        a: importance of each client, positive, [n].
        T: duration of each client's job over the mean duration, positive, [n].
        rho: weight of the duration, in [0, 1).
    """
    if not len(a):
        return np.empty(0)
    T = np.where(a > 1e-9 * a.max(), T, T.max())  # speed alone does not count without a valid norm
    q = _unnormalised_probabilities(a, rho * (T - T.min()), rho, _solve_lagrange_multiplier(a, T, rho))
    return np.asarray(q / q.sum())


def _solve_lagrange_multiplier(a: Values, T: Values, rho: float) -> float:
    """Return s = lambda + rho min T with which `feel_probabilities` sum to 1, lambda the Lagrange multiplier.

    lower bound:  (1 - rho) a_j^2 with j the fastest client, whose probability alone would be 1 there
    upper bound:  (1 - rho) (sum a)^2, the value of s where all T are equal

    `a`, `T` and `rho` are those of `feel_probabilities`.
    """
    lower_bound, upper_bound = (1 - rho) * float(a[np.argmin(T)]) ** 2, (1 - rho) * float(a.sum()) ** 2
    latency_costs = rho * (T - T.min())
    for _ in range(200):
        midpoint = (lower_bound + upper_bound) / 2
        probability_sum = float(_unnormalised_probabilities(a, latency_costs, rho, midpoint).sum())
        if abs(probability_sum - 1) < 1e-12:
            break
        lower_bound, upper_bound = (midpoint, upper_bound) if probability_sum > 1 else (lower_bound, midpoint)
    return (lower_bound + upper_bound) / 2


def _unnormalised_probabilities(a: Values, latency_costs: Values, rho: float, s: float) -> Values:
    """Return a sqrt((1 - rho) / (latency_costs + s)), probabilities before normalisation, [n].

    `latency_costs` [n] is rho (T - min T), `a` [n] the importance, and `s` the result of `_solve_lagrange_multiplier`.
    """
    q = latency_costs + s
    np.divide(1 - rho, q, out=q)
    np.sqrt(q, out=q)
    q *= a
    return q


def des_raj_coefficients(w: Values, draw_probabilities: Values) -> Values:
    """Return each gradient's coefficient in Des Raj's estimate, w_i ((m - i) + 1 / q_i) / m with i from 1, [m].

    Args:
        w: data weights of the clients in the order of drawing, [m].
        draw_probabilities: probability q_i of each client at the draw that selected it, [m].
    """
    m = len(w)
    return w * (np.arange(m - 1, -1, -1) + 1.0 / draw_probabilities) / max(m, 1)
