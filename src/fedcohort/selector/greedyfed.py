"""GreedyFed: clients with the largest Shapley values on the server's validation data (Singhal et al. 2024).

P. Singhal, S. R. Pandey, P. Popovski, "Greedy Shapley Client Selection for Communication-Efficient Federated Learning",
2024, arXiv 2312.09108.

    v(S) = -loss of w_t + sum_{i in S} n_i U_i / sum_{i in S} n_i on the server's validation data, for S in a cohort
    phi_i:  Shapley value of client i in the game v of its cohort (`maths/shapley.py`)
    SV_i:  mean of phi_i over the rounds in which i took part
    S_t:  clients without a value, and then the m largest SV_i

selector=s_fedavg has the rule of S-FedAvg (L. Nagalapatti, R. Narayanam, "Game of Gradients: Mitigating Irrelevant
Clients in Federated Learning", AAAI 2021, arXiv 2110.12257): SV_i starts at 1 / K, becomes alpha SV_i + (1 - alpha)
phi_i, and cohorts are drawn in proportion to exp(SV_i).

The papers were not read: GreedyFed's rule is that of the authors' code, S-FedAvg's was recalled. An evaluation of v is
a forward pass over the server's validation data, which the run charges to the server (`comp/server_flops`).

Departures from the paper:
- Clients without a value come in random order. The code selects them by id, and knows their number of rounds.
- The estimate of the Shapley values is that of `maths/shapley.py`, with its own rule of convergence. Cohorts of up to
  `exact` clients get exact values.
- A cohort's values are 0 where its loss differs from that of w_t by less than `tolerance`, as in the code.
- A difference of two losses of which one is not finite counts as 0. Failed clients get no value.
- A client that failed three times in a row is withheld for some rounds (`round/backoff.py`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from fedcohort import ranges
from fedcohort.arrays import Ids, Values
from fedcohort.maths.shapley import shapley_values
from fedcohort.rng import new_generator
from fedcohort.selector.base import Selector, draw, top
from fedcohort.types import AggregationOverride, Population, ProbeResult, RoundContext, RoundOutcome, Selection

MAX_PERMUTATION_SEED = 2**63 - 1


@dataclass(frozen=True)
class State:
    """State of GreedyFed that is kept between rounds.

    Attributes:
        value_estimates: running estimate of each client's Shapley value, [n_clients].
        participation_rounds: number of rounds in which each client took part, [n_clients].
        n_train: training samples of each client, [n_clients].
        permutation_key: seed of the random permutations of this round.
    """

    value_estimates: Values
    participation_rounds: Ids
    n_train: Ids
    permutation_key: int


@dataclass(frozen=True)
class GreedyFed(Selector[State]):
    """GreedyFed, a client selector: clients with the largest Shapley values of the server's loss.

    Attributes:
        choice: "greedy" for the largest values, or "softmax" for a draw in proportion to exp(value).
        memory: running estimate: "mean" over a client's rounds, or "exp" for an exponential mean.
        alpha: weight of the previous estimate with memory=exp, in [0, 1).
        exploration: factor of the bonus sqrt(ln(round + 1) / rounds in which the client took part), with choice=greedy.
        tolerance: loss difference in nats below which two losses count as equal.
        exact: largest cohort whose Shapley values are computed exactly.
        permutations: largest number of permutations per client of a larger cohort.
        tie: which of equal values wins: a "random" one, or the lowest "id".
    """

    choice: str
    memory: str
    alpha: float
    exploration: float
    tolerance: float
    exact: int
    permutations: int
    tie: str

    backs_off: ClassVar[bool] = True
    needs: ClassVar[frozenset[str]] = frozenset({"n_train", "server_loss"})

    def __post_init__(self) -> None:
        ranges.choice("choice", self.choice, "greedy", "softmax")
        ranges.choice("memory", self.memory, "mean", "exp")
        ranges.number("alpha", self.alpha, "[0, 1)")
        ranges.number("exploration", self.exploration, "[0, inf)")
        ranges.number("tolerance", self.tolerance, "[0, inf)")
        ranges.integer("exact", self.exact, "[0, 12]")
        ranges.integer("permutations", self.permutations, "[1, inf)")
        ranges.choice("tie", self.tie, "random", "id")

    def init(self, population: Population) -> State:
        K = population.n_clients
        initial_estimate = 1 / K if self.choice == "softmax" else 0.0
        return State(np.full(K, initial_estimate), np.zeros(K, np.int64), population.signals["n_train"], 0)

    def select(self, state: State, ctx: RoundContext, probes: Mapping[str, ProbeResult]) -> tuple[Selection, State]:
        state = replace(state, permutation_key=int(ctx.rng.integers(MAX_PERMUTATION_SEED)))
        if self.choice == "softmax":
            scores = state.value_estimates
            draw_weights = np.exp(np.clip(scores - scores[ctx.available].max(initial=-np.inf), -700.0, 700.0))
            return Selection(draw(draw_weights, ctx.available, ctx.cohort, ctx.rng), scores=scores), state
        exploration_term = self.exploration * np.sqrt(np.log(ctx.round + 1) / np.maximum(state.participation_rounds, 1))
        scores = np.where(state.participation_rounds > 0, state.value_estimates + exploration_term, np.inf)
        return Selection(top(scores, ctx.available, ctx.cohort, ctx.rng, self.tie), scores=scores), state

    def observe(self, state: State, outcome: RoundOutcome) -> tuple[AggregationOverride | None, State]:
        positions_by_id = np.argsort(outcome.clients)  # the same permutations, whatever the order of arrival
        clients, server_loss = outcome.clients[positions_by_id], outcome.signals["server_loss"]
        n_train = np.maximum(state.n_train[clients], 0).astype(np.float64)

        def value_of_coalition(member_positions: Ids) -> float:
            coalition_weights, member_sample_counts = np.zeros(len(clients)), n_train[member_positions]
            coalition_weights[positions_by_id[member_positions]] = (
                member_sample_counts if member_sample_counts.any() else 1.0
            )
            return -float(server_loss(coalition_weights / max(coalition_weights.sum(), 1.0)))

        rng = new_generator(state.permutation_key, "selector/permutations", outcome.round)
        phi = shapley_values(value_of_coalition, len(clients), self.tolerance, self.exact, self.permutations, rng)
        participation_rounds, value_estimates = state.participation_rounds.copy(), state.value_estimates.copy()
        participation_rounds[clients] += 1
        if self.memory == "mean":
            new_estimate_weights = 1 / participation_rounds[clients]
        else:
            has_value_estimate = (state.participation_rounds[clients] > 0) | (self.choice == "softmax")
            new_estimate_weights = np.where(has_value_estimate, 1 - self.alpha, 1.0)
        value_estimates[clients] += new_estimate_weights * (phi - value_estimates[clients])
        return None, replace(state, value_estimates=value_estimates, participation_rounds=participation_rounds)
