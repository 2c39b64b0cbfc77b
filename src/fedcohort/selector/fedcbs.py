"""Fed-CBS: a cohort drawn client by client so that its classes are balanced (Zhang et al. 2023).

Zhang, Li, Tang, Sun, Chen, Zhang, Chen, Chen, Li, "Fed-CBS: A Heterogeneity-Aware
Client Sampling Mechanism for Federated Learning via Class-Imbalance Reduction", ICML 2023, arXiv 2209.15245.

    imbalance:  QCID(S) = sum_c (sum_{k in S} h_kc / sum_{k in S} n_k - 1/C)^2, h_kc samples of class c at k
    1st draw:  k in proportion to 1 / max(QCID({k}), eps)^beta_1 + lambda sqrt(3 ln(t + 1) / (2 T_k))
    j-th draw:  k in proportion to QCID(S)^beta_{j-1} / max(QCID(S + k), eps)^beta_j, beta_j = beta j

T_k is one more than the number of rounds for which k was selected, whether or not it arrived. The numerator of the j-th
draw is the same for all k.

Departures from the paper:
- beta_j and eps could not be confirmed. beta = 1 and eps = .001 are from re-implementations. One of these takes the
  argmax as the first draw and the best of six cohorts, which is not done here. With these values the best balanced
  cohort need not be the most probable one (example: tests/selector/test_fedcbs.py).
- The paper computes h_k'h_l under encryption. Here clients send h_k unencrypted, and are charged for it.
- A client without samples has the imbalance of a client with a single class.
- A client that failed three times in a row is withheld for some rounds (`round/backoff.py`), as only the first draw
  depends on T_k.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedcohort import ranges
from fedcohort.maths.qcid import ClassCounts, class_imbalances
from fedcohort.selector.base import Selector, draw
from fedcohort.types import Ids, Population, ProbeResult, RoundContext, RoundOutcome, Selection, Values


@dataclass(frozen=True)
class State:
    """State of Fed-CBS that is kept between rounds.

    Attributes:
        selection_rounds: one more than the number of rounds for which each client was selected, [n_clients].
    """

    selection_rounds: Ids


@dataclass(frozen=True)
class FedCbs(Selector[State]):
    """Fed-CBS, a client selector: it draws clients one by one so that the cohort's classes are balanced.

    Attributes:
        lam: weight of the exploration bonus in the first draw (lambda in the paper).
        beta: the j-th draw weighs a client by the cohort's class imbalance with it to the power -beta j.
        eps: lower bound of the class imbalance.
    """

    lam: float
    beta: float
    eps: float

    backs_off: ClassVar[bool] = True
    needs: ClassVar[frozenset[str]] = frozenset({"label_counts"})

    def __post_init__(self) -> None:
        ranges.number("lam", self.lam, "[0, inf)")
        ranges.number("beta", self.beta, "(0, 10]")
        ranges.number("eps", self.eps, "[1e-12, 1)")

    def init(self, population: Population) -> State:
        return State(np.ones(population.n_clients, np.int64))

    def select(self, state: State, ctx: RoundContext, probes: Mapping[str, ProbeResult]) -> tuple[Selection, State]:
        class_counts = ctx.signals["label_counts"].astype(float)
        exploration_bonus = self.lam * np.sqrt(1.5 * np.log(ctx.round + 1) / state.selection_rounds)
        class_balance_score = np.maximum(class_imbalances(class_counts), self.eps) ** -self.beta
        scores = class_balance_score + exploration_bonus
        chosen_ids, remaining_ids = draw(scores, ctx.available, min(ctx.cohort, 1), ctx.rng), ctx.available
        while len(chosen_ids) < min(ctx.cohort, len(ctx.available)):
            remaining_ids = remaining_ids[remaining_ids != chosen_ids[-1]]
            draw_probabilities = self.draw_probabilities(class_counts, chosen_ids, remaining_ids)
            chosen_ids = np.append(chosen_ids, draw(draw_probabilities, remaining_ids, 1, ctx.rng))
        first_draw_probability = np.zeros(ctx.n_clients)
        first_draw_probability[ctx.available] = scores[ctx.available] / max(float(scores[ctx.available].sum()), 1e-300)
        score_terms = {"exploit": class_balance_score, "explore": exploration_bonus}
        return Selection(np.sort(chosen_ids), scores, score_terms, first_draw_probability), state

    def observe(self, state: State, outcome: RoundOutcome) -> tuple[None, State]:
        selection_rounds = state.selection_rounds.copy()
        selection_rounds[outcome.clients] += 1
        selection_rounds[outcome.failed] += 1
        return None, State(selection_rounds)

    def draw_probabilities(self, class_counts: ClassCounts, chosen_ids: Ids, remaining_ids: Ids) -> Values:
        """Return each client's probability to be drawn next, [n_clients]; 0 outside `remaining_ids`.

        The logarithms of the weights are normalised, since the weights themselves overflow.

        Args:
            class_counts: number of samples by client and class, [n_clients, n_classes].
            chosen_ids: ids of the clients drawn before.
            remaining_ids: ids of the clients that can be drawn.
        """
        imbalances_with_client = class_imbalances(class_counts, class_counts[chosen_ids].sum(0))[remaining_ids]
        log_weights = -self.beta * (len(chosen_ids) + 1) * np.log(np.maximum(imbalances_with_client, self.eps))
        client_probabilities = np.zeros(len(class_counts))
        client_probabilities[remaining_ids] = np.exp(log_weights - log_weights.max())
        return np.asarray(client_probabilities / client_probabilities.sum())
