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

A selection's probability is that of its first draw. Its part `role` is 0 for a k_p, 1 for a k_c and 2 for a k_r.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from jaxtyping import Bool, Float64

from fedcohort import ranges
from fedcohort.component import SAME_STEP, SAMPLE_ATTRIBUTES, Requirement
from fedcohort.data import skew
from fedcohort.maths.simplex import least_variance_weights
from fedcohort.selector.base import Selector, draw, find_answers, top
from fedcohort.types import Ids, Population, Probe, ProbeResult, RoundContext, Selection, Values

log = logging.getLogger("fedcohort")

Triplets = Float64[np.ndarray, "clients 3"]
DRAW_ORDER = (2, 0, 1)  # SC, CI, AI
MIN_SUM = 1e-12
MIN_COMPONENT = 1e-9  # smaller components count as 0
MIN_WEIGHT = 1e-9  # smaller weights of known_matrix count as 0


@dataclass(frozen=True)
class State:
    """State of FedDiverse that is kept between rounds.

    Attributes:
        delta: triplets, NaN if unknown, [K, 3].
        asked: whether each client was queried, [K].
        turn: number of groups of three chosen so far, over all rounds.
        weight: weights of the draw with known_matrix, otherwise zeros, [K].
    """

    delta: Triplets
    asked: Bool[np.ndarray, "clients"]
    turn: int
    weight: Values


@dataclass(frozen=True)
class FedDiverse(Selector[State]):
    """FedDiverse, a client selector; the module's docstring and configs/selector/feddiverse.yaml explain its options.

    Attributes:
        q: exponent of the GCE loss in the clients' estimate.
        epochs: epochs of the models of that estimate.
        lr: their learning rate.
        batch: their samples per mini-batch.
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
        requirement = SAMPLE_ATTRIBUTES.or_else("selector.source=estimated")
        return frozenset({requirement} if self.source != "estimated" else {SAME_STEP})

    def init(self, population: Population) -> State:
        K = population.n_clients
        unknown_state = State(np.full((K, 3), np.nan), np.zeros(K, bool), 0, np.zeros(K))
        if self.source == "estimated":
            return unknown_state
        N = population.signals["group_counts"]
        if self.source == "known_matrix":
            weight = least_variance_weights(N.astype(np.float64))
            return replace(unknown_state, weight=np.where(weight > MIN_WEIGHT, weight, 0.0))
        return replace(unknown_state, delta=skew.triplets(N.reshape(K, population.n_classes, -1)))

    def plan(self, state: State, ctx: RoundContext) -> Sequence[Probe]:
        unqueried_ids = ctx.ready[~state.asked[ctx.ready]]
        if self.source != "estimated" or ctx.round < self.pretrain or not len(unqueried_ids):
            return ()
        seed = int(ctx.rng.integers(2**63))  # batch orders follow from it, the round and the client
        options = {"q": self.q, "epochs": self.epochs, "lr": self.lr, "batch": self.batch, "seed": seed}
        return (Probe("dht", unqueried_ids, options),)

    def select(self, state: State, ctx: RoundContext, probes: Mapping[str, ProbeResult]) -> tuple[Selection, State]:
        if "dht" in probes:
            state = self._store_triplets(state, find_answers(probes, "dht"))
            _warn_if_uninformative(state.delta)
        if ctx.round < self.pretrain:
            return Selection(draw(np.ones(ctx.n_clients), ctx.available, ctx.cohort, ctx.rng), plain=True), state
        if self.source == "known_matrix":
            return Selection(draw(state.weight, ctx.available, ctx.cohort, ctx.rng), state.weight), state
        turn = state.turn if self.persist_rotation else 0
        is_known = np.isfinite(state.delta).all(1)
        delta = np.where(is_known[:, None], state.delta, 0.0)
        cohort_order = self.order_cohort(delta, is_known, ctx, turn)
        role = np.full(ctx.n_clients, np.nan)
        role[cohort_order] = np.arange(len(cohort_order)) % 3
        column = DRAW_ORDER[turn % 3]
        selection = Selection(
            np.sort(np.array(cohort_order, dtype=np.int64)),
            scores=state.delta[:, column],
            score_terms=dict(zip(skew.COMPONENTS, state.delta.T, strict=True)) | {"role": role},
            probability=draw_probabilities(delta[:, column], is_known, ctx.available)
            if cohort_order
            else np.zeros(ctx.n_clients),
        )
        return selection, replace(state, turn=state.turn + -(-len(cohort_order) // 3))

    def order_cohort(
        self, delta: Triplets, is_known: Bool[np.ndarray, "_n"], ctx: RoundContext, turn: int
    ) -> list[int]:
        """Return the cohort in the order of choice: k_p, k_c, k_r, k_p, ...

        Args:
            delta: triplets, [n_clients, 3], zero where unknown.
            is_known: whether each client's triplet is known, bool [n_clients].
            ctx: the round's context.
            turn: index of the component of the first draw in `DRAW_ORDER`, modulo 3.
        """
        D = normalise_triplets(delta)
        chosen_ids: list[int] = []
        ids_left = ctx.available
        while len(chosen_ids) < ctx.cohort and len(ids_left):
            position = len(chosen_ids) % 3
            if position == 0:
                k = draw_one_client(
                    draw_probabilities(delta[:, DRAW_ORDER[turn % 3]], is_known, ids_left), ctx.rng.random()
                )
                turn += 1
            else:
                p, c = chosen_ids[-1 - (position - 1)], chosen_ids[-1]
                scores = -(D @ D[p]) if position == 1 else self._cross_scores(D @ np.cross(D[p], D[c]))
                k = int(top(np.where(is_known, scores, -np.inf), ids_left, 1, ctx.rng, self.tie)[0])
            chosen_ids.append(k)
            ids_left = ids_left[ids_left != k]
        return chosen_ids

    def _cross_scores(self, cross_products: Values) -> Values:
        """Return scores by products with the cross product [n_clients]: absolute values with cross=abs."""
        return np.abs(cross_products) if self.cross == "abs" else cross_products

    def _store_triplets(self, state: State, answers: ProbeResult) -> State:
        """Return the state with the heterogeneity triplets that queried clients have answered."""
        delta, is_queried = state.delta.copy(), state.asked.copy()
        is_finite = np.isfinite(answers.values).all(1)
        delta[answers.clients[is_finite]] = np.clip(answers.values[is_finite], 0.0, 1.0)
        is_queried[answers.clients] = True
        return replace(state, delta=delta, asked=is_queried)


def is_uninformative(delta: Triplets) -> Bool[np.ndarray, "clients"]:
    """Return which estimates carry no attribute, AI = 1 and SC = 0, as of a client without a pivot class, bool [n]."""
    return (delta[:, 1] > 1 - MIN_COMPONENT) & (delta[:, 2] < MIN_COMPONENT)


def _warn_if_uninformative(delta: Triplets) -> None:
    """Log a warning if more than half of the clients' triplets hold no information on attributes."""
    known_triplets = delta[np.isfinite(delta).all(1)]
    n_uninformative = int(is_uninformative(known_triplets).sum())
    if 2 * n_uninformative > len(known_triplets):
        log.warning(
            "selector=feddiverse: the estimates of %d of %d clients hold no information on attributes "
            "(AI = 1, SC = 0): it chooses by class imbalance only, and needs more samples per client or fewer classes",
            n_uninformative,
            len(known_triplets),
        )


def normalise_triplets(delta: Triplets) -> Triplets:
    """Return each client's triplet divided by its own sum, [n, 3]; thirds where the sum is zero."""
    triplet_sums = delta.sum(1, keepdims=True)
    return np.where(triplet_sums > MIN_SUM, delta / np.where(triplet_sums > MIN_SUM, triplet_sums, 1.0), 1 / 3)


def draw_probabilities(weights: Values, is_known: Bool[np.ndarray, "_n"], ids_left: Ids) -> Values:
    """Return each client's probability to be drawn out of `ids_left` in proportion to `weights`, [K].

    Where all weights are zero, the clients with a known triplet have equal probabilities, or all if none is known.
    """
    p_left = weights[ids_left]
    if p_left.sum() < MIN_SUM:
        p_left = is_known[ids_left].astype(np.float64) if is_known[ids_left].any() else np.ones(len(ids_left))
    probabilities = np.zeros(len(weights))
    probabilities[ids_left] = p_left / p_left.sum()
    return probabilities


def draw_one_client(probability: Values, uniform_draw: float) -> int:
    """Return the client at which the running sum of `probability` [K] exceeds u in [0, 1)."""
    cumulative = np.cumsum(probability)
    last_client = np.flatnonzero(probability)[-1]  # u times the total may round up to the total
    return int(min(np.searchsorted(cumulative, uniform_draw * cumulative[-1], side="right"), last_client))
