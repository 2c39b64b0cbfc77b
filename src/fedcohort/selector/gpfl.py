"""GPFL: clients whose updates point along the server's step when the step helps (Na et al. 2024).

S. Na, Y. Liang, S.-M. Yiu, "GPFL: A Gradient Projection-Based Client Selection Framework for Efficient Federated
Learning", 2024, arXiv 2403.17833. It is not the method for personalised models with the same name.

    G = sum_i n_i U_i / sum_i n_i over the cohort's arrived updates U_i
    c_i:  mean of <U_i^l, G^l> / ||G^l|| over the tensors l of parameters    (`signal/step_projection.py`)
    reward of i:  v exp(c_i) / sum_j exp(c_j) over the arrived clients j
    value of i:  sum of its rewards / (their number + 1)
    bonus of i:  alpha(t) sqrt(2 ln t / N_i), infinite before i is selected
    S_t:  the m available clients with the largest sums of value and bonus

v is 1 if G raises the server's accuracy, and -1 if G lowers it. At equal accuracies v is .5 if G lowers the server's
loss, -.5 if G raises it, and 0 if the losses are equal. t is the number of past rounds, and N_i the number of times
that i was selected. alpha(t) is t / 100 before round 100, and then 200 / (t + 100) (schedule=peak).

The server's accuracy and loss, before and after G, are two forward passes over its validation data. The run charges
them to the server (`comp/server_flops`).

Of the paper only the abstract and a review were read, which state a projection of gradients on the direction of the
global gradient, and a bandit. The means over layers, v, the softmax, the value and the bonus are those of the authors'
released code. schedule=linear (t / 800) is that of an earlier version of it, and schedule=constant is an option of it.

Departures from the paper:
- The released rule projects updates. The abstract speaks of momentum-based gradients.
- G and v are those of FedAvg's step, on validation data. The code compares two global models, which differ from it
  with other aggregators or with a server optimizer. Its data for the accuracy are not known.
- The accuracy before round 0 is measured. The code takes 0.
- The warm-up selects `cohort` clients in each round, as later rounds do, and the best of the others fill its last
  cohort. The code splits the clients into a given number of random cohorts, of another size.
- A tensor on which G is zero is left out of the mean. Without a finite projection, accuracy and loss there is no
  reward.
- A failed client gets no reward, and counts as selected. The code's clients never fail.
- A client that failed three times in a row is withheld for some rounds (`round/backoff.py`).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedcohort import ranges
from fedcohort.component import SAME_MODEL, Requirement
from fedcohort.selector.base import Selector, top
from fedcohort.types import Ids, Population, ProbeResult, RoundContext, RoundOutcome, Selection, Values


@dataclass(frozen=True)
class State:
    """State of GPFL that is kept between rounds.

    Attributes:
        reward_sums: sum of each client's rewards, [n_clients].
        reward_counts: number of each client's rewards, [n_clients].
        times_selected: number of rounds in which each client was selected, [n_clients].
        n_train: training samples of each client, [n_clients].
    """

    reward_sums: Values
    reward_counts: Ids
    times_selected: Ids
    n_train: Ids


@dataclass(frozen=True)
class Gpfl(Selector[State]):
    """GPFL, a client selector: a bandit rewards clients whose gradients point along the server's step.

    Attributes:
        schedule: factor of the exploration bonus in round t: "peak" rises to 1 in round 100 and falls again, "linear"
            is t / 800, "constant" is 1.
        exploration: additional factor of the exploration bonus.
        tie: which of equally good clients is selected: a "random" one, or the lowest "id".
    """

    schedule: str
    exploration: float
    tie: str

    backs_off: ClassVar[bool] = True
    needs: ClassVar[frozenset[str]] = frozenset({"n_train", "server_accuracy", "step_projection"})
    requirements: ClassVar[frozenset[Requirement]] = frozenset({SAME_MODEL})

    def __post_init__(self) -> None:
        ranges.choice("schedule", self.schedule, "peak", "linear", "constant")
        ranges.number("exploration", self.exploration, "[0, inf)")
        ranges.choice("tie", self.tie, "random", "id")

    def init(self, population: Population) -> State:
        K = population.n_clients
        return State(np.zeros(K), np.zeros(K, np.int64), np.zeros(K, np.int64), population.signals["n_train"])

    def select(self, state: State, ctx: RoundContext, probes: Mapping[str, ProbeResult]) -> tuple[Selection, State]:
        t, times_selected = ctx.round, state.times_selected
        alpha = {"peak": t / 100 if t < 100 else 200 / (t + 100), "linear": t / 800, "constant": 1.0}[self.schedule]
        exploration_bonus = self.exploration * alpha * np.sqrt(2 * math.log(max(t, 1)) / np.maximum(times_selected, 1))
        mean_rewards = state.reward_sums / (state.reward_counts + 1)
        exploration_terms = np.where(times_selected > 0, exploration_bonus, np.inf)
        scores = mean_rewards + exploration_terms
        clients = top(scores, ctx.available, ctx.cohort, ctx.rng, self.tie)
        return Selection(clients, scores, {"exploit": mean_rewards, "explore": exploration_terms}), state

    def observe(self, state: State, outcome: RoundOutcome) -> tuple[None, State]:
        reward_sums, reward_counts = state.reward_sums.copy(), state.reward_counts.copy()
        times_selected = state.times_selected.copy()
        times_selected[outcome.selection.clients] += 1
        if len(outcome.clients):
            client_rewards = self._compute_rewards(outcome, state.n_train[outcome.clients])
            rewarded_ids = outcome.clients[np.isfinite(client_rewards)]
            reward_sums[rewarded_ids] += client_rewards[np.isfinite(client_rewards)]
            reward_counts[rewarded_ids] += 1
        return None, State(reward_sums, reward_counts, times_selected, state.n_train)

    def _compute_rewards(self, outcome: RoundOutcome, n_train: Ids) -> Values:
        """Return the reward of each client that arrived in `outcome`, [n].

        It is NaN for a projection that is not finite, and for all clients if the server's accuracy or loss is not.

        `n_train` is the number of training samples of each of these clients, [n].
        """
        data_shares = np.maximum(n_train, 0) if n_train.max() > 0 else np.ones(len(n_train))
        data_shares = data_shares / data_shares.sum()
        server_metrics = outcome.signals["server_accuracy"]
        step_projections = outcome.signals["step_projection"](data_shares)
        improvement_sign = sign_of_improvement(server_metrics(np.zeros(len(data_shares))), server_metrics(data_shares))
        is_finite_projection, exp_projections = np.isfinite(step_projections), np.full(len(data_shares), np.nan)
        finite_projections = step_projections[is_finite_projection]
        exp_projections[is_finite_projection] = np.exp(finite_projections - finite_projections.max(initial=-np.inf))
        return np.asarray(improvement_sign * exp_projections / max(exp_projections[is_finite_projection].sum(), 1.0))


def sign_of_improvement(server_metrics_before: tuple[float, float], server_metrics_after: tuple[float, float]) -> float:
    """Return the sign of a change in accuracy, or half the sign of a decrease in loss if the accuracies are equal.

    Args:
        server_metrics_before: the server's accuracy in [0, 1] and loss in nats before an aggregation step.
        server_metrics_after: accuracy and loss after the step.

    Returns:
        One of 1, 0.5, 0, -0.5 and -1, or NaN if an accuracy or loss is not finite.
    """
    if not np.isfinite([*server_metrics_before, *server_metrics_after]).all():
        return math.nan
    accuracy_change = server_metrics_after[0] - server_metrics_before[0]
    loss_decrease = server_metrics_before[1] - server_metrics_after[1]
    return float(np.sign(accuracy_change)) if accuracy_change else float(np.sign(loss_decrease)) / 2
