"""UCB-CS: upper confidence bounds on discounted training losses (Cho et al. 2020).

Cho, Gupta, Joshi, Yagan, "Bandit-based Communication-Efficient Client Selection Strategies for Federated Learning",
2020, arXiv 2012.08009.

    after a round:  L_k <- gamma L_k + loss_k,  N_k <- gamma N_k + 1 for clients k that arrived    (Eq. 5-7)
                    L_k <- gamma L_k,           N_k <- gamma N_k     for all others;   T <- gamma T + 1
    index:  A_k = p_k (L_k / N_k + sqrt(2 sigma^2 ln T / N_k)), infinite for clients never selected    (Eq. 4)
    S:  the m available clients with the largest A_k, ties broken at random

loss_k is the client's average training loss over its local steps in nats. sigma is the largest standard deviation of
the batch losses within a client's round. With a single local step (agg=fedsgd) sigma is 0, and no client is explored a
second time.

Departures from the paper:
- The discount counts rounds. Eq. 5-7 discount per SGD step, and .7^30 = 2e-5 would leave no memory.
- Every index is computed again in each round, as in Eq. 4 and the text. Algorithm 1 (index=algorithm1) updates only the
  clients just selected and lets all other indices decay, so that it does not explore them.
- sigma is the maximum over the latest value of every client. sigma=last_round takes only the last cohort's values,
  which Sec. III also allows.
- A failed client counts in N with a loss of 0. The paper's clients never fail; a client that never arrives would
  otherwise keep an infinite index and its place.
- A client that failed three times in a row is withheld for some rounds (`round/backoff.py`): p_k multiplies the
  exploration term, so that large clients would return too soon.
- A client whose loss is not finite is ranked last until it reports a finite one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Bool

from fedcohort import ranges
from fedcohort.bandit import discounted
from fedcohort.bandit.discounted import DiscountedSums
from fedcohort.component import CLEAN_LABELS, Requirement
from fedcohort.selector.base import Selector, top
from fedcohort.types import Population, ProbeResult, RoundContext, RoundOutcome, Selection, Values

SEVERAL_LOCAL_STEPS_REQUIREMENT = Requirement(
    lambda facts: facts.components.client.takes_several_steps(facts.most_samples),
    "{option} explores in proportion to the spread of a client's batch losses, but every client takes one step per "
    "round, so that losses alone decide after its first round. Set client.epochs, client.steps or a smaller "
    "client.batch for several steps",
)


@dataclass(frozen=True)
class State:
    """State of UCB-CS that is kept between rounds.

    Attributes:
        discounted_sums: discounted sums of losses, of selections and of rounds.
        loss_deviations: each client's latest standard deviation of batch losses in nats, NaN before the first,
            [n_clients].
        sigma: largest standard deviation of batch losses that scales the exploration, in nats.
        mean_terms: discounted mean loss of each client in nats, the first term of its bandit index, [n_clients].
        width_terms: confidence width of each client in nats, the second term of its bandit index, [n_clients].
        has_invalid_loss: whether each client's last reported loss was not finite, [n_clients].
    """

    discounted_sums: DiscountedSums
    loss_deviations: Values
    sigma: float
    mean_terms: Values
    width_terms: Values
    has_invalid_loss: Bool[np.ndarray, "_n"]


@dataclass(frozen=True)
class UcbCs(Selector[State]):
    """UCB-CS, a client selector with upper confidence bounds on discounted training losses.

    Attributes:
        discount: factor of past losses and counts per round.
        index: bandit index of clients that were not selected: "eq4" computes it again, "algorithm1" discounts it.
        sigma: deviations whose maximum scales the exploration: the latest of all clients ("all_latest"), or those of
            the last cohort ("last_round").
        tie: which of equal indices wins: a "random" one, or the lowest "id".
    """

    discount: float
    index: str
    sigma: str
    tie: str

    backs_off: ClassVar[bool] = True
    needs: ClassVar[frozenset[str]] = frozenset({"n_train", "train_loss", "train_loss_std"})
    recommendations: ClassVar[frozenset[Requirement]] = frozenset({CLEAN_LABELS, SEVERAL_LOCAL_STEPS_REQUIREMENT})

    def __post_init__(self) -> None:
        ranges.number("discount", self.discount, "[0, 1]")
        ranges.choice("index", self.index, "eq4", "algorithm1")
        ranges.choice("sigma", self.sigma, "all_latest", "last_round")
        ranges.choice("tie", self.tie, "random", "id")

    def init(self, population: Population) -> State:
        K = population.n_clients
        nan_loss_stds, infinite_widths = np.full(K, np.nan), np.full(K, np.inf)
        return State(discounted.initial_sums(K), nan_loss_stds, 0.0, np.zeros(K), infinite_widths, np.zeros(K, bool))

    def select(self, state: State, ctx: RoundContext, probes: Mapping[str, ProbeResult]) -> tuple[Selection, State]:
        n_train = ctx.signals["n_train"]
        data_shares = n_train / max(n_train.sum(), 1)
        was_selected = state.discounted_sums.is_pulled
        mean_losses = data_shares * state.mean_terms
        exploration_terms = np.where(was_selected, data_shares * np.where(was_selected, state.width_terms, 0.0), np.inf)
        scores = np.where(state.has_invalid_loss, -np.inf, mean_losses + exploration_terms)
        clients = top(scores, ctx.available, ctx.cohort, ctx.rng, self.tie)
        return Selection(clients, scores, {"exploit": mean_losses, "explore": exploration_terms}), state

    def observe(self, state: State, outcome: RoundOutcome) -> tuple[None, State]:
        reported_losses, loss_deviations = outcome.signals["train_loss"], outcome.signals["train_loss_std"]
        is_finite_loss = np.isfinite(reported_losses)
        finite_loss_ids = outcome.clients[is_finite_loss]
        has_invalid_loss = state.has_invalid_loss.copy()
        has_invalid_loss[outcome.clients] = ~is_finite_loss
        latest_loss_stds = state.loss_deviations.copy()
        has_loss_deviation = is_finite_loss & np.isfinite(loss_deviations)
        latest_loss_stds[outcome.clients[has_loss_deviation]] = loss_deviations[has_loss_deviation]
        selected_ids = np.concatenate([finite_loss_ids, outcome.failed])
        selected_losses = np.concatenate([reported_losses[is_finite_loss], np.zeros(len(outcome.failed))])
        discounted_sums = discounted.add_pulls_to_sums(
            state.discounted_sums, self.discount, selected_ids, selected_losses
        )
        compared_stds = latest_loss_stds if self.sigma == "all_latest" else latest_loss_stds[finite_loss_ids]
        sigma = float(np.nanmax(compared_stds)) if np.isfinite(compared_stds).any() else state.sigma
        mean_terms = discounted.mean_rewards(discounted_sums)
        width_terms = discounted.confidence_widths(discounted_sums, sigma)
        if self.index == "algorithm1":
            mean_terms, width_terms = (
                self._update_ucb_term(old_ucb_term, new_ucb_term, selected_ids)
                for old_ucb_term, new_ucb_term in ((state.mean_terms, mean_terms), (state.width_terms, width_terms))
            )
        return None, State(discounted_sums, latest_loss_stds, sigma, mean_terms, width_terms, has_invalid_loss)

    def _update_ucb_term(self, old_ucb_terms: Values, new_ucb_terms: Values, selected_ids: np.ndarray) -> Values:
        """Return a term of the bandit index after a round, [n_clients] (Algorithm 1 of the paper).

        Selected clients get `new_ucb_terms`; the terms of the others are multiplied by the option `discount`.

        Args:
            old_ucb_terms: the term before the round, [n_clients]; infinite values stay.
            new_ucb_terms: the term that Eq. 4 gives after the round, [n_clients].
            selected_ids: ids of the clients that were selected in the round, [m].
        """
        next_ucb_terms = old_ucb_terms.copy()
        next_ucb_terms[np.isfinite(old_ucb_terms)] *= self.discount
        next_ucb_terms[selected_ids] = new_ucb_terms[selected_ids]
        return next_ucb_terms
