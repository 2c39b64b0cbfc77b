"""DELTA: draws with repetition by the diversity of gradients and their variance at a client (Wang et al. 2023).

L. Wang, Y. Guo, T. Lin, X. Tang, "DELTA: Diverse Client Sampling for Fasting Federated Learning", NeurIPS 2023, arXiv
2205.13925.

    zeta_i = ||g_i - mean_j g_j||,  g_i the gradient of client i at w_t, the mean over the clients measured

    score_i = sqrt(diversity zeta_i^2 + variance sigma_i^2),  sigma_i of the mini-batch gradients (`gradient_std`)

    S:  m draws with repetition from p, the probabilities P_i over the available clients
    weight of i:  draws_i w_i / (m p_i),  w_i = n_i / sum_j n_j over the available clients
    P_i for i in S:  (sum_{j in S} P_j) score_i / sum_{j in S} score_j

The estimate is unbiased for the available clients' mean. All P_i are 1 / K at the start; with ideal=true, all ready
clients are measured before each draw, and P_i is proportional to score_i.

The paper was not read. The score was recalled, and is that of public code of another method, which draws without
repetition and leaves out 1 / p_i. The authors' code has losses L_i instead of sigma_i (score=released):

    score_i = beta l_i zeta_i + (1 - beta) sqrt(l_i),  l_i = L_i / sum_{j in S} L_j

Departures from the paper:
- The cohort of a round measures g_i and sigma_i at w_t while it trains. With gradient=update, g_i is the update.
- Probabilities are at least `least` / K before they are normalised: a client with a score of 0 would never return.
- A cohort of one client, scores of 0 and values that are not finite leave the probabilities as they were.
- Where at most m clients are available, all train, under the aggregator's weights.
- The weights of failed clients are lost: the estimate is then biased. Their probabilities do not change.
- A client that failed three times in a row is withheld for some rounds (`round/backoff.py`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from jaxtyping import Float64

from fedcohort import ranges
from fedcohort.arrays import Ids, Values
from fedcohort.errors import OptionError
from fedcohort.selector.base import Selector, find_answers
from fedcohort.types import AggregationOverride, Population, Probe, ProbeResult, RoundContext, RoundOutcome, Selection

MAX_GRADIENT_ENTRY = 1e100  # of the numbers of a gradient, whose squares are added
MINI_BATCH_RNG_KEY = 0  # the mini-batches of `gradient_std` depend on the round and the client only


@dataclass(frozen=True)
class State:
    """State of DELTA that is kept between rounds.

    Attributes:
        probability: selection probability of each client, sums to 1, [n_clients].
        weights: aggregation weight of each client of the cohort, [n_clients]; all 0 to keep the aggregator's weights.
    """

    probability: Values
    weights: Values


@dataclass(frozen=True)
class Delta(Selector[State]):
    """DELTA, a client selector: it draws clients by the diversity and the variance of their gradients.

    Attributes:
        diversity: weight of the squared distance of a client's gradient from the mean gradient (zeta^2 in the paper).
        variance: weight of the variance of a client's mini-batch gradients (sigma^2 in the paper).
        score: a client's score: "formula", the root of the weighted sum of both squares, or "released", the score of
            the authors' code, which reads losses instead of variances.
        beta: weight of the distance from the mean gradient with score=released, in [0, 1].
        gradient: a client's gradient: "query" asks for the gradient of the round's global model, "update" takes the
            client's update.
        ideal: whether all ready clients are queried before each selection.
        batch: number of samples of each mini-batch whose gradients are compared.
        least: least probability of a client, times the number of clients.
    """

    diversity: float
    variance: float
    score: str
    beta: float
    gradient: str
    ideal: bool
    batch: int
    least: float

    backs_off: ClassVar[bool] = True
    may_choose_fewer: ClassVar[bool] = True
    advises: ClassVar[bool] = True
    absolute: ClassVar[bool] = True

    def __post_init__(self) -> None:
        ranges.number("diversity", self.diversity, "[0, inf)")
        ranges.number("variance", self.variance, "[0, inf)")
        ranges.choice("score", self.score, "formula", "released")
        ranges.number("beta", self.beta, "[0, 1]")
        ranges.choice("gradient", self.gradient, "query", "update")
        ranges.flag("ideal", self.ideal)
        ranges.integer("batch", self.batch, "[1, inf)")
        ranges.number("least", self.least, "(0, 1]")
        if self.ideal and (self.score, self.gradient) != ("formula", "query"):
            raise OptionError(
                "ideal=true measures clients before they train, when they have no losses or updates, got "
                f"score={self.score} and gradient={self.gradient}: choose score=formula and gradient=query"
            )

    @property
    def gradient_signal(self) -> str | None:
        """Name of the signal that clients are queried for; None if the method reads only their updates and losses."""
        if self.gradient == "query":
            return "gradient_moments"
        return "gradient_std" if self.score == "formula" else None

    @property
    def needs(self) -> frozenset[str]:
        signal_names = {"n_train"} | ({self.gradient_signal} if self.gradient_signal else set())
        signal_names |= {"update"} if self.gradient == "update" else set()
        return frozenset(signal_names | ({"train_loss"} if self.score == "released" else set()))

    def init(self, population: Population) -> State:
        K = population.n_clients
        return State(np.full(K, 1 / K), np.zeros(K))

    def plan(self, state: State, ctx: RoundContext) -> Sequence[Probe]:
        if self.gradient_signal is None:
            return ()
        query_options = {"batch": self.batch, "key": MINI_BATCH_RNG_KEY}
        if self.ideal:
            return (Probe(self.gradient_signal, ctx.ready, query_options),)
        generator_state = ctx.rng.bit_generator.state
        clients = np.flatnonzero(draw_with_repetition(state.probability, ctx)[0])
        ctx.rng.bit_generator.state = generator_state  # `select` draws the same cohort
        return (Probe(self.gradient_signal, clients, query_options, concurrent=True),)

    def select(self, state: State, ctx: RoundContext, probes: Mapping[str, ProbeResult]) -> tuple[Selection, State]:
        if self.ideal:
            gradient_answers = find_answers(probes, "gradient_moments")
            if len(gradient_answers.clients):
                client_ids, gradient_moments = finite_rows(gradient_answers.clients, gradient_answers.values)
                client_scores = self.compute_scores(gradient_moments[:, :-1], gradient_moments[:, -1])
                probability = np.full(ctx.n_clients, client_scores.mean() if len(client_ids) else 1.0)
                probability[client_ids] = client_scores
                state = replace(state, probability=self.apply_min_probability(probability))
        draw_counts, p = draw_with_repetition(state.probability, ctx)
        n_train = ctx.signals["n_train"][ctx.available].astype(np.float64)
        weights = np.zeros(ctx.n_clients)
        if len(ctx.available) > ctx.cohort:
            data_shares = n_train / n_train.sum() if n_train.any() else np.full(len(n_train), 1 / len(n_train))
            weights[ctx.available] = draw_counts[ctx.available] * data_shares / (ctx.cohort * p)
        inclusion_probability = np.zeros(ctx.n_clients)
        inclusion_probability[ctx.available] = 1 - (1 - p) ** ctx.cohort if weights.any() else 1.0
        return Selection(np.flatnonzero(draw_counts), probability=inclusion_probability), replace(
            state, weights=weights
        )

    def observe(self, state: State, outcome: RoundOutcome) -> tuple[AggregationOverride | None, State]:
        agg_weights = state.weights[outcome.clients]
        agg_override = AggregationOverride(weights=agg_weights, absolute=True) if agg_weights.any() else None
        if self.ideal or len(outcome.clients) < 2:
            return agg_override, state
        client_ids, gradient_rows = finite_rows(outcome.clients, self._stack_gradients(outcome, len(state.weights)))
        if len(client_ids) < 2:
            return agg_override, state
        client_scores = self.compute_scores(gradient_rows[:, :-1], gradient_rows[:, -1])
        if not client_scores.sum() > 0:
            return agg_override, state
        probability = state.probability.copy()
        probability[client_ids] = probability[client_ids].sum() * client_scores / client_scores.sum()
        return agg_override, replace(state, probability=self.apply_min_probability(probability))

    def _stack_gradients(self, outcome: RoundOutcome, n_clients: int) -> Float64[np.ndarray, "_n d"]:
        """Return each arrived client's gradient, and its deviation over mini-batches or its loss, [n, P + 1].

        `outcome` is the round's outcome, `n_clients` the number of all clients, and P the length of a gradient.
        """
        n_arrived = len(outcome.clients)
        gradient_answers = find_answers(outcome.probes, self.gradient_signal or "").dense(n_clients)
        gradient_rows = gradient_answers[outcome.clients].reshape(n_arrived, -1)
        gradients = outcome.signals["update"] if self.gradient == "update" else gradient_rows[:, :-1]
        secondary_scores = outcome.signals["train_loss"] if self.score == "released" else gradient_rows[:, -1]
        return np.column_stack([gradients, secondary_scores])

    def compute_scores(self, gradients: Float64[np.ndarray, "_n P"], secondary_scores: Values) -> Values:
        """Return the score of each measured client, [n]; P is the length of a gradient.

        Args:
            gradients: gradient of each client, [n, P].
            secondary_scores: standard deviation of each client's mini-batch gradients with score=formula, its mean
                training loss in nats with score=released, [n].
        """
        zeta = np.linalg.norm(gradients - gradients.mean(axis=0), axis=1)
        if self.score == "formula":
            return np.asarray(np.sqrt(self.diversity * zeta**2 + self.variance * secondary_scores**2))
        losses = np.maximum(secondary_scores, 0.0)
        loss_shares = losses / losses.sum() if losses.any() else np.full(len(losses), 1 / max(len(losses), 1))
        return np.asarray(self.beta * loss_shares * zeta + (1 - self.beta) * np.sqrt(loss_shares))

    def apply_min_probability(self, probability: Values) -> Values:
        """Return `probability` [n_clients] normalised, raised to at least `least` / n_clients, and normalised again."""
        n_clients, probability_sum = len(probability), float(probability.sum())
        scaled_probability = probability / probability_sum if probability_sum > 0 else np.full(n_clients, 1 / n_clients)
        bounded_probability = np.maximum(scaled_probability, self.least / n_clients)
        return np.asarray(bounded_probability / bounded_probability.sum())


def draw_with_repetition(probability: Values, ctx: RoundContext) -> tuple[Ids, Values]:
    """Draw the cohort of round `ctx` with replacement, in proportion to `probability` [n_clients] of available clients.

    Returns the number of draws of each client, [n_clients], and the probability of each available client, [a]. Where at
    most `ctx.cohort` clients are available, each is drawn once.
    """
    client_ids = ctx.available
    p = probability[client_ids] / probability[client_ids].sum() if len(client_ids) else np.empty(0)
    if len(client_ids) <= ctx.cohort:
        return np.bincount(client_ids, minlength=ctx.n_clients), p
    cumulative_probability = np.cumsum(p)
    cumulative_probability /= cumulative_probability[-1]
    drawn_positions = np.searchsorted(cumulative_probability, ctx.rng.random(ctx.cohort), side="right")
    return np.bincount(client_ids[drawn_positions], minlength=ctx.n_clients), p


def finite_rows(clients: Ids, gradient_rows: Float64[np.ndarray, "_n d"]) -> tuple[Ids, Float64[np.ndarray, "_n d"]]:
    """Return the ids [n'] and rows [n', d] of the clients whose `gradient_rows` are all at most 1e100 in size.

    Args:
        clients: ids of the clients, [n].
        gradient_rows: gradient of each client, and further numbers, [n, d].
    """
    is_finite_row = (np.abs(gradient_rows) <= MAX_GRADIENT_ENTRY).all(axis=1)
    return clients[is_finite_row], gradient_rows[is_finite_row]
