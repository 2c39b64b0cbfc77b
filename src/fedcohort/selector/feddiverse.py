"""FedDiverse: cohorts of clients whose data are heterogeneous in different ways (Nemeth et al. 2025).

Nemeth, Fani, Ng, Caputo, Lozano, Oliver, Quadrianto, "FedDiverse: Tackling Data Heterogeneity in Federated Learning
with Diversity-Driven Client Selection", FLTA 2025, arXiv 2504.11216, Sec. IV.

    triplet:  Delta^k = (CI, AI, SC), class imbalance, attribute imbalance and spurious correlation of k's data

    D^k = Delta^k / (CI + AI + SC)
    k_p:  drawn in proportion to SC among the clients that are left
    k_c:  argmin <D^{k_p}, D^k>
    k_r:  argmax <D^{k_p} x D^{k_c}, D^k>, and so on, three by three, until the cohort is complete

Every client estimates its triplet once, from w_{T_0}. The draw of k_p is in proportion to SC for the first three
clients, to CI for the next three, to AI after that, and to SC again. Before round T_0 = pretrain cohorts are uniform.

Departures from the paper:
- The draw of k_p uses the triplets, the other two steps the normalised ones, as in the formulas. A triplet of zeros is
  normalised to thirds, and where a component is zero for all clients k_p is drawn uniformly.
- The cross product points along "the remaining dimension" for one of the two orders of k_p and k_c only. cross=abs
  takes its absolute value.
- The rotation starts again in each round unless persist_rotation is set. The paper does not say.
- Pre-training is plain FedAvg, whatever aggregator, regulariser and server optimizer the run has (`Selection.plain`).
- A client that is away at T_0 is queried once it is available. One without a finite triplet is chosen last.
- The paper gives no q, epochs, learning rate or batch size for the clients' estimate (`data/interaction.py`). With a
  small learning rate all samples get one attribute (CMNIST, mlp, 5 epochs: 0.01 is too small, 0.1 is not).
- Errors of the estimates on CMNIST with 24 clients: CI none; SC .07 on average, .13 to .19 for one client; AI .13 to
  .16, mostly too high, with rank correlations of .3 to .4.
- With many classes and few samples (digits: 10 classes, about 24 samples a client) no biased model predicts any sample
  of its class correctly. All clients then have AI = 1 and SC = 0, the class imbalance alone decides, and the same
  clients are chosen as k_c in each round. The run warns of it; more epochs or a larger learning rate do not help.
- source=known_dht (Table IV) uses the true triplets, and is charged for the matrices that they follow from.
- source=known_matrix draws without replacement in proportion to w = argmin Var(sum_k w_k N^k), w >= 0, sum w = 1. The
  last constraint is not printed, but w = 0 is optimal without it. Clients of weight zero fill the cohort.
- A client that failed three times in a row is withheld for some rounds (`round/backoff.py`): k_c and k_r rarely change.

A selection's probability is that of its first draw. Its score term `role` is 0 for a k_p, 1 for a k_c and 2 for a k_r.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from jaxtyping import Bool, Float64

from fedcohort import ranges
from fedcohort.component import SAME_MODEL, SAMPLE_ATTRIBUTES, Requirement
from fedcohort.data import skew
from fedcohort.maths.simplex import least_variance_weights
from fedcohort.selector.base import Selector, draw, find_answers, top
from fedcohort.types import Ids, Population, Probe, ProbeResult, RoundContext, Selection, Values

log = logging.getLogger("fedcohort")

Triplets = Float64[np.ndarray, "clients 3"]
TRIPLET_COLUMN_ORDER = (2, 0, 1)  # SC, CI, AI
MIN_DIVISOR = 1e-12
MIN_TRIPLET_COMPONENT = MIN_DRAW_WEIGHT = 1e-9  # smaller components, and weights of known_matrix, count as 0


@dataclass(frozen=True)
class State:
    """State of FedDiverse that is kept between rounds.

    Attributes:
        delta: each client's heterogeneity triplet (class imbalance, attribute imbalance, spurious correlation),
            [n_clients, 3]; NaN if unknown.
        is_queried: whether each client was queried, [n_clients].
        n_triples: number of groups of three clients chosen so far, over all rounds.
        draw_weights: weights of the draw with source=known_matrix, otherwise zeros, [n_clients].
    """

    delta: Triplets
    is_queried: Bool[np.ndarray, "clients"]
    n_triples: int
    draw_weights: Values


@dataclass(frozen=True)
class FedDiverse(Selector[State]):
    """FedDiverse, a client selector: cohorts of clients whose data are heterogeneous in different ways.

    Attributes:
        pretrain: rounds of random cohorts before the triplets are queried.
        cross: score of the third client: the "signed" scalar product of its triplet and the cross product of the first
            two, or its absolute value ("abs").
        persist_rotation: whether the triplet component that draws the first client continues to rotate in the next
            round.
        tie: which of equal scores wins: a "random" one, or the lowest "id".
        source: origin of the triplets: "estimated" by the clients, true ones ("known_dht"), or weights from the true
            counts of classes and attributes ("known_matrix").
        q: exponent of the generalised cross-entropy of the models with which clients estimate their triplets.
        epochs, lr, batch: epochs, learning rate and mini-batch size of these models.
    """

    pretrain: int
    cross: str
    persist_rotation: bool
    tie: str
    source: str
    q: float
    epochs: int
    lr: float
    batch: int

    backs_off: ClassVar[bool] = True

    def __post_init__(self) -> None:
        ranges.integer("pretrain", self.pretrain, "[0, inf)")
        ranges.choice("cross", self.cross, "signed", "abs")
        ranges.flag("persist_rotation", self.persist_rotation)
        ranges.choice("tie", self.tie, "random", "id")
        ranges.choice("source", self.source, "estimated", "known_dht", "known_matrix")
        ranges.number("q", self.q, "(0, 1]")
        ranges.integer("epochs", self.epochs, "[1, inf)")
        ranges.number("lr", self.lr, "(0, inf)")
        ranges.integer("batch", self.batch, "[1, inf)")

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"dht" if self.source == "estimated" else "group_counts"})

    @property
    def requirements(self) -> frozenset[Requirement]:
        pretrain_requirements = {SAME_MODEL.or_else("selector.pretrain=0")} if self.pretrain else set()
        known_requirements = {SAMPLE_ATTRIBUTES.or_else("selector.source=estimated"), *pretrain_requirements}
        return frozenset({SAME_MODEL} if self.source == "estimated" else known_requirements)

    def init(self, population: Population) -> State:
        K = population.n_clients
        initial_state = State(np.full((K, 3), np.nan), np.zeros(K, bool), 0, np.zeros(K))
        if self.source == "estimated":
            return initial_state
        group_counts = population.signals["group_counts"]
        if self.source == "known_matrix":
            draw_weights = least_variance_weights(group_counts.astype(np.float64))
            return replace(initial_state, draw_weights=np.where(draw_weights > MIN_DRAW_WEIGHT, draw_weights, 0.0))
        return replace(initial_state, delta=skew.skew_triplets(group_counts.reshape(K, population.n_classes, -1)))

    def plan(self, state: State, ctx: RoundContext) -> Sequence[Probe]:
        unqueried_ids = ctx.ready[~state.is_queried[ctx.ready]]
        if self.source != "estimated" or ctx.round < self.pretrain or not len(unqueried_ids):
            return ()
        batch_seed = int(ctx.rng.integers(2**63))  # batch orders follow from it, the round and the client
        query_options = {"q": self.q, "epochs": self.epochs, "lr": self.lr, "batch": self.batch, "seed": batch_seed}
        return (Probe("dht", unqueried_ids, query_options),)

    def select(self, state: State, ctx: RoundContext, probes: Mapping[str, ProbeResult]) -> tuple[Selection, State]:
        if "dht" in probes:
            state = self._store_triplets(state, find_answers(probes, "dht"))
            _warn_without_attribute_information(state.delta)
        if ctx.round < self.pretrain:
            return Selection(draw(np.ones(ctx.n_clients), ctx.available, ctx.cohort, ctx.rng), plain=True), state
        if self.source == "known_matrix":
            return Selection(draw(state.draw_weights, ctx.available, ctx.cohort, ctx.rng), state.draw_weights), state
        n_triples = state.n_triples if self.persist_rotation else 0
        has_triplet = np.isfinite(state.delta).all(1)
        delta = np.where(has_triplet[:, None], state.delta, 0.0)
        cohort_order = self.choose_cohort_in_order(delta, has_triplet, ctx, n_triples)
        role_of_client = np.full(ctx.n_clients, np.nan)
        role_of_client[cohort_order] = np.arange(len(cohort_order)) % 3
        first_draw_column = TRIPLET_COLUMN_ORDER[n_triples % 3]
        selection = Selection(
            np.sort(np.array(cohort_order, dtype=np.int64)),
            scores=state.delta[:, first_draw_column],
            score_terms=dict(zip(skew.SKEW_METRIC_NAMES, state.delta.T, strict=True)) | {"role": role_of_client},
            probability=draw_probabilities(delta[:, first_draw_column], has_triplet, ctx.available),
        )
        return selection, replace(state, n_triples=state.n_triples + -(-len(cohort_order) // 3))

    def choose_cohort_in_order(
        self, delta: Triplets, has_triplet: Bool[np.ndarray, "_n"], ctx: RoundContext, n_triples: int
    ) -> list[int]:
        """Return the cohort's ids in the order of choice: the first of each three is drawn, the others have top scores.

        `delta`, [n_clients, 3], is 0 where `has_triplet` is false. `n_triples`, the number of groups of three chosen
        before, gives the triplet component of the first draw, modulo 3.
        """
        D = normalise_triplets(delta)
        chosen_ids: list[int] = []
        remaining_ids = ctx.available
        while len(chosen_ids) < ctx.cohort and len(remaining_ids):
            role_in_triple = len(chosen_ids) % 3
            if role_in_triple == 0:
                draw_weights = delta[:, TRIPLET_COLUMN_ORDER[n_triples % 3]]
                k = draw_one_client(draw_probabilities(draw_weights, has_triplet, remaining_ids), ctx.rng.random())
                n_triples += 1
            else:
                p, c = chosen_ids[-role_in_triple], chosen_ids[-1]
                scores = -(D @ D[p]) if role_in_triple == 1 else D @ np.cross(D[p], D[c])
                scores = np.abs(scores) if role_in_triple == 2 and self.cross == "abs" else scores
                k = int(top(np.where(has_triplet, scores, -np.inf), remaining_ids, 1, ctx.rng, self.tie)[0])
            chosen_ids.append(k)
            remaining_ids = remaining_ids[remaining_ids != k]
        return chosen_ids

    def _store_triplets(self, state: State, triplet_answers: ProbeResult) -> State:
        """Return the state with the heterogeneity triplets in `triplet_answers`, [n, 3]; invalid ones stay unknown."""
        delta, is_queried = state.delta.copy(), state.is_queried.copy()
        is_finite_triplet = np.isfinite(triplet_answers.values).all(1)
        delta[triplet_answers.clients[is_finite_triplet]] = np.clip(triplet_answers.values[is_finite_triplet], 0.0, 1.0)
        is_queried[triplet_answers.clients] = True
        return replace(state, delta=delta, is_queried=is_queried)


def has_no_attribute_information(delta: Triplets) -> Bool[np.ndarray, "clients"]:
    """Return whether each triplet of `delta` [n, 3] says nothing on attributes (imbalance 1, correlation 0), [n]."""
    return (delta[:, 1] > 1 - MIN_TRIPLET_COMPONENT) & (delta[:, 2] < MIN_TRIPLET_COMPONENT)


def _warn_without_attribute_information(delta: Triplets) -> None:
    """Log a warning if over half of the known triplets `delta` [n_clients, 3] hold no information on attributes."""
    finite_triplets = delta[np.isfinite(delta).all(1)]
    n_uninformative_triplets = int(has_no_attribute_information(finite_triplets).sum())
    if 2 * n_uninformative_triplets > len(finite_triplets):
        log.warning(
            "selector=feddiverse: the estimates of %d of %d clients hold no information on attributes, so that class "
            "imbalance alone decides: use more samples per client or fewer classes",
            *(n_uninformative_triplets, len(finite_triplets)),
        )


def normalise_triplets(delta: Triplets) -> Triplets:
    """Return each client's triplet in `delta` [n, 3] divided by its sum, [n, 3]; thirds where the sum is 0."""
    triplet_sums = delta.sum(1, keepdims=True)
    return np.where(triplet_sums > MIN_DIVISOR, delta / np.where(triplet_sums > MIN_DIVISOR, triplet_sums, 1.0), 1 / 3)


def draw_probabilities(draw_weights: Values, has_triplet: Bool[np.ndarray, "_n"], remaining_ids: Ids) -> Values:
    """Return each client's probability to be drawn out of `remaining_ids` in proportion to `draw_weights`, [n_clients].

    If all weights are 0, clients with `has_triplet` (a known triplet, [n_clients]) have equal probabilities, or all
    clients if none is known.
    """
    remaining_weights = draw_weights[remaining_ids]
    if remaining_weights.sum() < MIN_DIVISOR:
        has_known_triplet = has_triplet[remaining_ids]
        remaining_weights = np.where(has_known_triplet | ~has_known_triplet.any(), 1.0, 0.0)
    client_probabilities = np.zeros(len(draw_weights))
    client_probabilities[remaining_ids] = remaining_weights / remaining_weights.sum()
    return client_probabilities


def draw_one_client(draw_probability: Values, uniform_draw: float) -> int:
    """Return the id of the client that is drawn with `draw_probability` [n_clients]; `uniform_draw` is in [0, 1)."""
    cumulative_probability = np.cumsum(draw_probability)
    last_drawable_client = np.flatnonzero(draw_probability)[-1]  # u times the total may round up to the total
    drawn_client = np.searchsorted(cumulative_probability, uniform_draw * cumulative_probability[-1], side="right")
    return int(min(drawn_client, last_drawable_client))
