"""FedPNS: clients whose gradients oppose the cohort's are left out, and drawn less often (Wu and Wang 2022).

Wu, Wang, "Node Selection Toward Faster Convergence for Federated Learning on Non-IID Data", IEEE TNSE 2022, arXiv
2105.07066. Implemented from the authors' code.

    gradient:  g_k = (w_t - w_k) / (lr x local steps of k)
    agreement:  E(A) = sum_{i in A} <g_i, mean of A> = |A| ||mean of A||^2
    while |A| > keep_min:  k* = argmax_k E(A - k);  stop if E(A - k*) <= E(A), otherwise label k* and remove it from A
    loss_check:  stop and keep k* where the server's loss of the mean of A is below that of A - k*
    probability:  a labelled k loses delta_k prob_k, and all other clients share the sum equally

    delta_k = min((labels_k / selections_k + beta)^alpha, 1)
    S:  m clients, drawn successively in proportion to prob, 1/K each at first

The server computes U U' of the updates once, at m^2 P (`signal/update_gram.py`). With H_ij = (U U')_ij / (steps of i x
steps of j), E(A) is the sum of A's block of H over |A|, at m^2 per step.

Departures from the paper:
- The learning rate is the same for all clients, and cancels.
- The authors' code checks the loss on the test set. Here it is checked on server_val, and the check is off by default.
- The check compares plain means like the code, whatever the aggregator's weights. A loss that is not finite ranks
  highest.
- The authors pick the first cohort by hand, half of it with IID data. Here it is drawn like the others.
- The code rounds inner products to two decimals, which is not done here.
- E is a sum over A as in the code. A mean would label more clients.
- keep_min is a share of the arrivals, rounded up; the code has 8 of 10. Where that is all of them, no client is ever
  labelled, and the method draws as selector=random does: a notice is printed at start-up. Failed clients count as not
  selected.
- A client that failed three times in a row is withheld for some rounds (`round/backoff.py`), as such clients gain what
  others lose.
- The kept clients are weighted by the aggregator; the code takes a plain mean.
- prob is at least 1e-8, so that a client that lost all of it can be drawn where others are away.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float64

from fedcohort import ranges
from fedcohort.arrays import Ids, Values
from fedcohort.component import Facts, Requirement
from fedcohort.selector.base import TIE_TOLERANCE, Selector, draw
from fedcohort.types import AggregationOverride, Population, ProbeResult, RoundContext, RoundOutcome, Selection

MIN_PROBABILITY = 1e-8  # lower bound of a client's probability
NO_CLIENT_EXCLUDED_MESSAGE = (
    "{option} keeps ceil(keep x m) of the m clients that arrive in a round, which is all of them: no client is left "
    "out, and clients are drawn as with selector=random. Choose a larger cohort, or a smaller selector.keep"
)
Gram = Float64[np.ndarray, "m m"]


@dataclass(frozen=True)
class State:
    """State of FedPNS that is kept between rounds.

    Attributes:
        probability: selection probability of each client, sums to 1, [n_clients].
        rounds_arrived: number of rounds in which each client arrived, [n_clients].
        rounds_labelled: number of rounds in which each client was labelled as opposing the cohort, [n_clients].
    """

    probability: Values
    rounds_arrived: Ids
    rounds_labelled: Ids


@dataclass(frozen=True)
class FedPns(Selector[State]):
    """FedPNS, a client selector: clients whose gradients oppose the cohort's are drawn less often.

    Attributes:
        alpha: exponent in the share of its probability that an opposing client loses, (r + beta)^alpha.
        beta: offset of r, the share of the client's arrivals in which it was labelled as opposing the cohort.
        keep: share of the arrivals that is always aggregated.
        loss_check: whether an update is left out only if that does not raise the server's loss.
    """

    alpha: float
    beta: float
    keep: float
    loss_check: bool

    backs_off: ClassVar[bool] = True
    advises: ClassVar[bool] = True
    weighs: ClassVar[bool] = False

    def __post_init__(self) -> None:
        ranges.number("alpha", self.alpha, "(0, inf)")
        ranges.number("beta", self.beta, "[0, inf)")
        ranges.number("keep", self.keep, "(0, 1]")
        ranges.flag("loss_check", self.loss_check)

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"update_gram", "steps", "server_loss"} if self.loss_check else {"update_gram", "steps"})

    @property
    def recommendations(self) -> frozenset[Requirement]:
        return frozenset({Requirement(self._can_exclude_clients, NO_CLIENT_EXCLUDED_MESSAGE)})

    def _can_exclude_clients(self, facts: Facts) -> bool | None:
        """Return whether a round in a run with `facts` can exclude an update if all arrive; None if that is unknown."""
        return None if facts.max_arrivals is None else self._min_kept_updates(facts.max_arrivals) < facts.max_arrivals

    def _min_kept_updates(self, n_arrived: int) -> int:
        """Return the least number of updates to aggregate out of `n_arrived`: `keep` times this number, rounded up."""
        return math.ceil(self.keep * n_arrived - 1e-9)

    def init(self, population: Population) -> State:
        K = population.n_clients
        return State(np.full(K, 1 / K), np.zeros(K, np.int64), np.zeros(K, np.int64))

    def select(self, state: State, ctx: RoundContext, probes: Mapping[str, ProbeResult]) -> tuple[Selection, State]:
        probability = np.zeros(ctx.n_clients)
        probability[ctx.available] = state.probability[ctx.available]
        probability /= max(float(probability.sum()), MIN_PROBABILITY)
        clients = draw(state.probability, ctx.available, ctx.cohort, ctx.rng)
        return Selection(clients, scores=state.probability, probability=probability), state

    def observe(self, state: State, outcome: RoundOutcome) -> tuple[AggregationOverride | None, State]:
        H = inner_products_per_step(outcome.signals["update_gram"], outcome.signals["steps"])
        arrived_rows = np.argsort(outcome.clients)  # ties go by id, whatever the order of arrival
        arrived_rows = arrived_rows[np.isfinite(np.diag(H))[arrived_rows]]
        is_loss_higher = self._make_loss_comparison(outcome, arrived_rows) if self.loss_check else None
        min_kept_gradients = self._min_kept_updates(len(outcome.clients)) - (len(outcome.clients) - len(arrived_rows))
        valid_gram_matrix = normalise_gram_matrix(H[np.ix_(arrived_rows, arrived_rows)])
        opposing_positions, excluded_positions = find_opposing_gradients(
            valid_gram_matrix, min_kept_gradients, is_loss_higher
        )
        rounds_arrived, rounds_labelled = state.rounds_arrived.copy(), state.rounds_labelled.copy()
        rounds_arrived[outcome.clients] += 1
        opposing_ids = outcome.clients[arrived_rows[opposing_positions]]
        rounds_labelled[opposing_ids] += 1
        opposing_shares = rounds_labelled[opposing_ids] / rounds_arrived[opposing_ids]
        probability = self.update_probabilities(state.probability, opposing_ids, opposing_shares)
        next_state = State(probability, rounds_arrived, rounds_labelled)
        is_aggregated = np.ones(len(outcome.clients), bool)
        is_aggregated[arrived_rows[excluded_positions]] = False
        return (AggregationOverride(keep=is_aggregated) if len(excluded_positions) else None), next_state

    def _make_loss_comparison(self, outcome: RoundOutcome, arrived_rows: Ids) -> Callable[[Ids, Ids], bool]:
        """Return a function of two groups of updates: whether the second's mean has the higher loss on the server.

        A group is given by positions in `arrived_rows`, which are positions in the clients of `outcome`.
        """
        server_loss = outcome.signals["server_loss"]

        def loss_of_group(group_rows: Ids) -> float:
            group_weights = np.zeros(len(outcome.clients))
            group_weights[arrived_rows[group_rows]] = 1 / len(group_rows)
            mean_loss = float(server_loss(group_weights))
            return mean_loss if math.isfinite(mean_loss) else math.inf

        return lambda group_rows, remaining_rows: loss_of_group(group_rows) < loss_of_group(remaining_rows)

    def update_probabilities(self, probability: Values, opposing_ids: Ids, opposing_shares: Values) -> Values:
        """Return the selection probabilities [n_clients] after `opposing_ids` lose a share to the other clients.

        `probability` [n_clients] holds the previous ones. `opposing_shares` are the shares of the arrivals of each of
        `opposing_ids` in which it opposed the cohort.
        """
        is_not_opposing = np.ones(len(probability), bool)
        is_not_opposing[opposing_ids] = False
        if not len(opposing_ids) or not is_not_opposing.any():
            return probability
        probability_losses = probability[opposing_ids] * np.minimum((opposing_shares + self.beta) ** self.alpha, 1.0)
        next_probabilities = probability.copy()
        next_probabilities[opposing_ids] -= probability_losses
        next_probabilities[is_not_opposing] += probability_losses.sum() / is_not_opposing.sum()
        next_probabilities = np.maximum(next_probabilities, MIN_PROBABILITY)
        return np.asarray(next_probabilities / next_probabilities.sum())


def inner_products_per_step(update_products: Gram, local_steps: Values) -> Gram:
    """Return the inner products <g_i, g_j> of the clients' gradients, in units of 1 / lr^2, [m, m].

    A client that reports no local steps counts with one step.

    Args:
        update_products: inner products of the clients' updates, [m, m].
        local_steps: local steps of each client, [m].
    """
    local_step_divisors = np.where(np.isfinite(local_steps) & (local_steps > 1), local_steps, 1.0)
    return np.asarray(update_products / local_step_divisors[:, None] / local_step_divisors)


def normalise_gram_matrix(H: Gram) -> Gram:
    """Return the matrix H of inner products [m, m] divided by its largest diagonal entry, so that no sum overflows."""
    max_squared_norm = float(np.diag(H).max(initial=0.0))
    return H / max_squared_norm if max_squared_norm > 0 else H


def summed_agreement(H: Gram, group_rows: Ids) -> float:
    """Return the agreement E(A) = |A| ||mean of A||^2 of a group A of gradients; 0 for an empty group.

    Args:
        H: inner products of all gradients, [m, m].
        group_rows: rows of H that belong to A, [a].
    """
    return float(H[np.ix_(group_rows, group_rows)].sum() / max(len(group_rows), 1))


def agreements_after_removal(H: Gram, group_rows: Ids) -> Values:
    """Return the agreement E(A - k) after removing each single gradient k from a group A, [a].

    Args:
        H: inner products of all gradients, [m, m].
        group_rows: rows of H that belong to A, [a], at least two.
    """
    group_gram_matrix = H[np.ix_(group_rows, group_rows)]
    return np.asarray(
        (group_gram_matrix.sum() - 2 * group_gram_matrix.sum(1) + np.diag(group_gram_matrix)) / (len(group_rows) - 1)
    )


def find_opposing_gradients(
    H: Gram, min_kept_gradients: int, is_loss_higher: Callable[[Ids, Ids], bool] | None = None
) -> tuple[Ids, Ids]:
    """Return the rows to label as opposing the others, and the rows to leave out of the aggregation.

    Args:
        H: inner products of the gradients, [m, m].
        min_kept_gradients: least number of rows to keep; one row is kept in any case.
        is_loss_higher: function of a group's rows, and of these rows without one client, that returns whether the
            server's loss is higher without this client. If so, the client is labelled but kept, and the search ends.
            None leaves the loss unchecked.
    """
    group_rows, opposing_rows = np.arange(len(H)), list[int]()
    while len(group_rows) > max(min_kept_gradients, 1):
        group_agreement = summed_agreement(H, group_rows)
        agreement_if_removed = agreements_after_removal(H, group_rows)
        highest_agreement = float(agreement_if_removed.max())
        if highest_agreement <= group_agreement + TIE_TOLERANCE * max(abs(group_agreement), abs(highest_agreement)):
            break
        min_tied_agreement = highest_agreement - TIE_TOLERANCE * abs(highest_agreement)
        best_removal_position = int(np.flatnonzero(agreement_if_removed >= min_tied_agreement)[0])
        k, remaining_rows = int(group_rows[best_removal_position]), np.delete(group_rows, best_removal_position)
        if is_loss_higher is not None and is_loss_higher(group_rows, remaining_rows):
            return np.array([*opposing_rows, k], dtype=np.int64), np.array(opposing_rows, dtype=np.int64)
        opposing_rows.append(k)
        group_rows = remaining_rows
    return np.array(opposing_rows, dtype=np.int64), np.array(opposing_rows, dtype=np.int64)
