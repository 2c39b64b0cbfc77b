"""OCS: all clients train, and clients with larger update norms are more likely to upload (Chen et al. 2022).

W. Chen, S. Horvath, P. Richtarik, "Optimal Client Sampling for Federated Learning", TMLR 2022, arXiv 2010.13723.

    u_i = w_i ||U_i||,  U_i the update of client i in this round,  w_i = n_i / sum_j n_j over the available clients

    p_i = min(1, c u_i),  c such that sum_i p_i = m

    S:  each available client i with probability p_i;  weight of i:  w_i / p_i

These p minimise the variance of the estimate over all p with this sum. The estimate is unbiased for the available
clients' mean. selector=aocs (form=approximate) finds p from sums over clients only, as secure aggregation allows:

    p_i <- min(1, m u_i / sum_j u_j), and at most `iterations` times, with I the number of clients with p_i < 1:
    C = (m - n + I) / sum_{p_j < 1} p_j;  p_i <- min(1, C p_i) where p_i < 1;  the end where C <= 1

All available clients download w_t and train before the selection (`signal/trained_norm.py`), and are charged for it.
The selected ones send their updates, so that a round costs the computation of all clients and the uploads of about m.

The paper was not read: the rule for p_i is that of the authors' code for aocs, and was derived for ocs.

Departures from the paper:
- w_i are shares of the available clients, and not of all.
- Where no client is drawn, one is drawn in proportion to p_i, as a cohort is not empty. The probability of this is at
  most exp(-sum_i p_i).
- If all norms are 0, all p_i are m / n. A norm that is not finite, or that was not reported, counts as 0.
- The sums of aocs are 8 bytes per client and iteration, which are not charged.
- The weights of failed clients are lost: the estimate is then biased.
- A client that failed three times in a row is withheld for some rounds (`round/backoff.py`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedcohort import ranges
from fedcohort.arrays import Values
from fedcohort.component import FORESEEN_SAMPLES, Requirement
from fedcohort.selector.base import Selector, draw, find_answers
from fedcohort.types import AggregationOverride, Population, Probe, ProbeResult, RoundContext, RoundOutcome, Selection

MAX_UPDATE_NORM, MIN_NORM_SUM = 1e100, 1e-300  # of a norm, as norms are added, and of a sum of norms, which divides


@dataclass(frozen=True)
class State:
    """State of OCS between the selection and the aggregation of a round.

    Attributes:
        weights: aggregation weight that each available client has if it is selected, its data share divided by its
            selection probability, [n_clients]; 0 for other clients.
    """

    weights: Values


@dataclass(frozen=True)
class Ocs(Selector[State]):
    """OCS, a client selector: clients take part with probabilities that minimise the variance of the mean update.

    Attributes:
        form: "exact" (OCS) minimises the variance; "approximate" (AOCS) needs only sums over clients.
        iterations: largest number of corrections with form=approximate.
    """

    form: str
    iterations: int

    backs_off: ClassVar[bool] = True
    may_choose_fewer: ClassVar[bool] = True
    advises: ClassVar[bool] = True
    absolute: ClassVar[bool] = True
    needs: ClassVar[frozenset[str]] = frozenset({"n_train", "trained_norm"})
    requirements: ClassVar[frozenset[Requirement]] = frozenset({FORESEEN_SAMPLES})

    def __post_init__(self) -> None:
        ranges.choice("form", self.form, "exact", "approximate")
        ranges.integer("iterations", self.iterations, "[0, inf)")

    def init(self, population: Population) -> State:
        return State(np.zeros(population.n_clients))

    def plan(self, state: State, ctx: RoundContext) -> Sequence[Probe]:
        return (Probe("trained_norm", ctx.available),)

    def select(self, state: State, ctx: RoundContext, probes: Mapping[str, ProbeResult]) -> tuple[Selection, State]:
        available_ids, uniform_draws = ctx.available, ctx.rng.random(ctx.n_clients)
        n_train = ctx.signals["n_train"][available_ids].astype(np.float64)
        data_shares = n_train / n_train.sum() if n_train.any() else np.full(len(n_train), 1 / max(len(n_train), 1))
        update_norms = find_answers(probes, "trained_norm").dense(ctx.n_clients, 0.0)[available_ids]
        u = data_shares * np.where((update_norms >= 0) & (update_norms <= MAX_UPDATE_NORM), update_norms, 0.0)
        p = np.zeros(ctx.n_clients)
        p[available_ids] = (
            ocs_probabilities(u, ctx.cohort)
            if self.form == "exact"
            else aocs_probabilities(u, ctx.cohort, self.iterations)
        )
        clients = np.flatnonzero(uniform_draws < p)
        if not len(clients):
            clients = draw(p, available_ids, min(1, len(available_ids)), ctx.rng)
        agg_weights, scores = np.zeros(ctx.n_clients), np.full(ctx.n_clients, np.nan)
        scores[available_ids] = u
        available_p = p[available_ids]
        agg_weights[available_ids] = np.divide(data_shares, available_p, out=np.zeros(len(u)), where=available_p > 0)
        return Selection(clients, scores, probability=p, uncapped=len(clients) > ctx.cohort), State(agg_weights)

    def observe(self, state: State, outcome: RoundOutcome) -> tuple[AggregationOverride | None, State]:
        return AggregationOverride(weights=state.weights[outcome.clients], absolute=True), state


def ocs_probabilities(u: Values, m: int) -> Values:
    """Return the participation probabilities min(1, c u_i), which sum to m, [n]; all 1 if n <= m.

    If l clients have a probability below 1, c = (m + l - n) / (sum of the l smallest u). The largest l is taken with
    which c times the l-th smallest u is at most 1.

    Args:
        u: norm of each client's update times its data share, at least 0, [n].
        m: expected number of participating clients.
    """
    n = len(u)
    if n <= m:
        return np.ones(n)
    if not u.any():
        return np.full(n, m / n)
    positions_by_norm = np.argsort(u, kind="stable")
    norm_sums = np.cumsum(u[positions_by_norm])
    uncapped_p_sums = np.arange(1, n + 1) + m - n  # sum of the probabilities below 1, by their number
    is_feasible_count = (uncapped_p_sums > 0) & (uncapped_p_sums * u[positions_by_norm] <= norm_sums * (1 + 1e-12))
    last_uncapped_rank, p = int(np.flatnonzero(is_feasible_count)[-1]), np.ones(n)
    uncapped_positions = positions_by_norm[: last_uncapped_rank + 1]
    p[uncapped_positions] = (
        uncapped_p_sums[last_uncapped_rank] * u[uncapped_positions] / max(norm_sums[last_uncapped_rank], MIN_NORM_SUM)
    )
    return np.minimum(p, 1.0)


def aocs_probabilities(u: Values, m: int, iterations: int) -> Values:
    """Return the participation probabilities of AOCS, [n]; their sum is at most m, and m after enough iterations.

    Args:
        u: norm of each client's update times its data share, at least 0, [n].
        m: expected number of participating clients.
        iterations: largest number of rescaling steps.
    """
    n = len(u)
    if n <= m:
        return np.ones(n)
    if not u.any():
        return np.full(n, m / n)
    p = np.minimum(m * (u / u.sum()), 1.0)
    for _ in range(iterations):
        is_uncapped = p < 1
        uncapped_probability_sum = float(p[is_uncapped].sum())
        rescaling_factor = (
            (m - n + int(is_uncapped.sum())) / uncapped_probability_sum if uncapped_probability_sum > 0 else 0.0
        )
        if rescaling_factor <= 1:
            break
        p = np.where(is_uncapped, np.minimum(rescaling_factor * p, 1.0), 1.0)
    return np.asarray(p)
