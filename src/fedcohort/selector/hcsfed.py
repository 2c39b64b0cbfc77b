"""HCSFed: strata of clients with similar gradients, more draws from strata that vary more (Song et al. 2023).

Song, Wang, Gao, Lu, Dong, Hu, Liu, "Fast Heterogeneous Federated Learning with Hybrid Client Selection", UAI 2023,
arXiv 2208.05135.

    sketch:  X_k, the compressed gradient of k at w_0 (`maths/sketch.py`), queried once
    strata:  H clusters of the X_k by k-means, of N_h clients each
    spread:  S_h = sqrt(sum_{k in h} ||X_k - mean||^2 / (N_h - 1))
    quotas:  m_h near m N_h S_h / sum N_j S_j, at least 1 if m >= H
    draw:  in each stratum m_h clients, successively in proportion to ||X_k||
    agg=stratified:  each update of stratum h has the weight (N_h / K) / m_h

variant=feddiverse_paper is the form in FedDiverse's experiments: X_k is the compressed update of round 0, in which all
clients train; there are three strata with m / H draws each, uniform within a stratum.

Departures from the paper:
- The paper's number of strata could not be confirmed, about 10. The three strata and the rate of 1e-5 are from
  FedDiverse's text.
- Sketches of values are sorted, as k-means numbers its clusters at random. Sorted sketches compare the distributions of
  gradient values, not their positions; compress=shared_projection compares positions.
- strata=null makes at most as many strata as the cohort has clients. Where `strata` exceeds the cohort, only the strata
  with the largest targets are drawn from, the same in every round.
- FedDiverse's text has no quotas. The remainder of m / H goes to the largest strata, as do places that a stratum cannot
  fill.
- The paper's strata hold for the whole run (recluster=null). recluster=r queries all clients about w_t again every r
  rounds. An old sketch counts until its client is available again (feddiverse_paper: until its next update).
- agg=fedavg, the default, leaves the weights to the aggregator, like all other selectors.
- Clients that are away at first are queried once available (feddiverse_paper: with their first update), and the strata
  are formed again. A client whose sketch is not finite, or beyond 1e12, is chosen last. With feddiverse_paper clients
  without a sketch form one more stratum, with draws in proportion to its size.
- A client that failed three times in a row is withheld for some rounds (`round/backoff.py`), as small strata are drawn
  from in every round.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from jaxtyping import Bool, Float64

from fedcohort import ranges
from fedcohort.arrays import Ids
from fedcohort.component import Facts, Requirement
from fedcohort.maths import kmeans, sketch, strata
from fedcohort.rng import new_generator
from fedcohort.selector.base import Selector, draw, find_answers, first_round_notice
from fedcohort.types import AggregationOverride, Population, Probe, ProbeResult, RoundContext, RoundOutcome, Selection

NO_STRATUM = -1  # the stratum of clients without a sketch
MAX_SKETCH_VALUE = 1e12
COMPRESSION_RNG_KEY = 0  # all clients compress with the same random numbers, in all rounds and runs
TOO_MANY_STRATA_MESSAGE = (
    "{option} has more strata than the cohort has clients: the same strata are drawn from in every round, and clients "
    "of the others never train. Set selector.strata=null"
)
SKETCH_TOO_SHORT_MESSAGE = (
    "{option} compresses a gradient of this network into two numbers, which hold little more than its norm: set a "
    "larger selector.rate"
)
N_STRATA_BY_VARIANT = {"paper": 10, "feddiverse_paper": 3}


@dataclass(frozen=True)
class State:
    """State of HCSFed that is kept between rounds.

    Attributes:
        X: compressed gradient (sketch) of each client, [n_clients, length], NaN if unknown; no columns before the first
            sketch.
        is_queried: whether each client sent a sketch or an update in the current period of `recluster`, [n_clients].
        stratum_of_client: stratum of each client, -1 if unknown, [n_clients].
        needs_clustering: whether a sketch is newer than the strata, so that they must be formed again.
        n_strata: number of strata to form, at most.
    """

    X: Float64[np.ndarray, "k d"]
    is_queried: Bool[np.ndarray, "k"]
    stratum_of_client: Ids
    needs_clustering: bool
    n_strata: int


@dataclass(frozen=True)
class HcsFed(Selector[State]):
    """HCSFed, a client selector: it samples from strata of clients with similar gradients.

    Attributes:
        variant: "paper" queries sketches of the first gradients once; "feddiverse_paper" takes the updates of round 0.
        strata: number of strata; None for the variant's default, at most the cohort.
        rate: length of a sketch relative to the gradient.
        compress: kind of sketch (`maths/sketch.py`), "values" or "shared_projection".
        agg: weights of the updates: "fedavg" keeps the aggregator's, "stratified" takes those of the strata.
        recluster: rounds between queries of all clients, None for a single query.
    """

    variant: str
    strata: int | None
    rate: float
    compress: str
    agg: str
    recluster: int | None

    backs_off: ClassVar[bool] = True

    def __post_init__(self) -> None:
        ranges.choice("variant", self.variant, *N_STRATA_BY_VARIANT)
        ranges.integer("strata", self.strata, "[1, inf)", allow_null=True)
        ranges.number("rate", self.rate, "(0, 1]")
        ranges.choice("compress", self.compress, *sketch.SKETCH_KINDS)
        ranges.choice("agg", self.agg, "fedavg", "stratified")
        ranges.integer("recluster", self.recluster, "[1, inf)", allow_null=True)

    @property
    def asks_for_sketches(self) -> bool:
        """Return whether clients are queried for sketches; otherwise sketches are computed from their updates."""
        return self.variant == "paper"

    @property
    def advises(self) -> bool:
        return self.agg == "stratified"

    @property
    def recommendations(self) -> frozenset[Requirement]:
        strata_requirement = Requirement(self._has_no_more_strata_than_cohort, TOO_MANY_STRATA_MESSAGE)
        return frozenset({strata_requirement, Requirement(self._has_long_sketch, SKETCH_TOO_SHORT_MESSAGE)})

    def _has_no_more_strata_than_cohort(self, facts: Facts) -> bool | None:
        """Return whether a cohort of a run with `facts` has a place for every stratum; None if its size is unknown."""
        return None if facts.cohort is None else self.strata is None or self.strata <= facts.cohort

    def _has_long_sketch(self, facts: Facts) -> bool | None:
        """Return whether sketches in a run with `facts` have more than two numbers; None if the network is unknown."""
        return facts.layout and sketch.sketch_length(facts.layout.n_params, self.rate) > 2

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"compressed_gradient" if self.asks_for_sketches else "update"})

    def notices(self, selector_name: str) -> Sequence[str]:
        return () if self.asks_for_sketches else (first_round_notice(selector_name),)

    def init(self, population: Population) -> State:
        K = population.n_clients
        n_strata = self.strata or min(N_STRATA_BY_VARIANT[self.variant], population.cohort)
        return State(np.empty((K, 0)), np.zeros(K, bool), np.full(K, NO_STRATUM), False, n_strata)

    def plan(self, state: State, ctx: RoundContext) -> Sequence[Probe]:
        unqueried_ids = ctx.ready if self.is_reclustering_due(ctx.round) else ctx.ready[~state.is_queried[ctx.ready]]
        if not self.asks_for_sketches or not len(unqueried_ids):
            return ()
        query_options = {"rate": self.rate, "way": self.compress, "key": COMPRESSION_RNG_KEY}
        return (Probe("compressed_gradient", unqueried_ids, query_options),)

    def select(self, state: State, ctx: RoundContext, probes: Mapping[str, ProbeResult]) -> tuple[Selection, State]:
        if self.is_reclustering_due(ctx.round) and not ctx.is_refill:
            state = replace(state, is_queried=np.zeros(ctx.n_clients, bool))
        if "compressed_gradient" in probes and not ctx.is_refill:
            sketch_answers = find_answers(probes, "compressed_gradient")
            state = store_gradient_sketches(state, sketch_answers.clients, sketch_answers.values)
        if not self.asks_for_sketches and ctx.round == 0:
            return Selection(ctx.available, uncapped=True), state
        if state.needs_clustering:
            state = replace(state, stratum_of_client=self._cluster_clients(state, ctx), needs_clustering=False)
        return self._draw_cohort(state, ctx), state

    def observe(self, state: State, outcome: RoundOutcome) -> tuple[AggregationOverride | None, State]:
        agg_override = None
        if self.advises and len(outcome.clients) and (state.stratum_of_client != NO_STRATUM).any():
            agg_override = AggregationOverride(weights=strata.stratum_weights(state.stratum_of_client, outcome.clients))
        unqueried_ids = np.flatnonzero(~state.is_queried[outcome.clients])
        if self.asks_for_sketches or not len(unqueried_ids):
            return agg_override, state
        sketches = []
        for update in outcome.signals["update"][unqueried_ids]:
            rng = new_generator(COMPRESSION_RNG_KEY, "signal/sketch")
            sketches.append(sketch.sketch_gradient(update, self.rate, self.compress, rng))
        return agg_override, store_gradient_sketches(state, outcome.clients[unqueried_ids], np.stack(sketches))

    def is_reclustering_due(self, round: int) -> bool:
        """Return whether all clients' compressed gradients are computed again in `round`, by the option `recluster`."""
        return self.recluster is not None and round > 0 and round % self.recluster == 0

    def _cluster_clients(self, state: State, ctx: RoundContext) -> Ids:
        """Return each client's stratum by k-means of the stored sketches, [n_clients]; -1 for a client without one."""
        sketched_ids = np.flatnonzero(np.isfinite(state.X).all(1))
        stratum_of_client = np.full(len(state.X), NO_STRATUM)
        if len(sketched_ids):
            X = state.X[sketched_ids]
            n_strata = min(state.n_strata, len(np.unique(X, axis=0)))
            stratum_of_client[sketched_ids] = kmeans.cluster_vectors(X, n_strata, ctx.rng)
        return stratum_of_client

    def _draw_cohort(self, state: State, ctx: RoundContext) -> Selection:
        """Draw the cohort of round `ctx` stratum by stratum; `count_stratum_draws` gives the draws of each."""
        available_ids, stratum_of_client = ctx.available, state.stratum_of_client
        m, H = min(ctx.cohort, len(available_ids)), int(stratum_of_client.max(initial=NO_STRATUM)) + 1
        unclustered_ids = available_ids[stratum_of_client[available_ids] == NO_STRATUM]
        sketch_norms = np.linalg.norm(state.X, axis=1) if state.X.shape[1] else np.full(ctx.n_clients, np.nan)
        n_unclustered_draws = self._count_unclustered_draws(unclustered_ids, m, ctx)
        n_available_by_stratum = np.array(
            [(stratum_of_client[available_ids] == h).sum() for h in range(H)], dtype=np.int64
        )
        stratum_draws = self.count_stratum_draws(state, H, n_available_by_stratum, m - n_unclustered_draws)
        probability, clients = np.zeros(ctx.n_clients), np.empty(0, np.int64)
        for h in range(H):
            member_ids = available_ids[stratum_of_client[available_ids] == h]
            draw_weights = (
                sketch_norms
                if self.asks_for_sketches and sketch_norms[member_ids].sum() > 0
                else np.ones(ctx.n_clients)
            )
            clients = np.append(clients, draw(draw_weights, member_ids, int(stratum_draws[h]), ctx.rng))
            if stratum_draws[h]:
                probability[member_ids] = (
                    stratum_draws[h] / m * draw_weights[member_ids] / draw_weights[member_ids].sum()
                )
        if m > len(clients):
            probability[unclustered_ids] = (m - len(clients)) / m / len(unclustered_ids)
            clients = np.append(clients, draw(np.ones(ctx.n_clients), unclustered_ids, m - len(clients), ctx.rng))
        stratum_column = np.where(stratum_of_client == NO_STRATUM, np.nan, stratum_of_client.astype(np.float64))
        return Selection(np.sort(clients), probability, {"stratum": stratum_column, "norm": sketch_norms}, probability)

    def _count_unclustered_draws(self, unclustered_ids: Ids, m: int, ctx: RoundContext) -> int:
        """Return how many of m draws are among `unclustered_ids`, the available clients without a stratum."""
        if self.asks_for_sketches or not len(unclustered_ids):
            return 0
        return min(len(unclustered_ids), int(m * len(unclustered_ids) / len(ctx.available) + ctx.rng.random()))

    def count_stratum_draws(self, state: State, H: int, n_available_by_stratum: Ids, m: int) -> Ids:
        """Return how many of m draws each of H strata gets, int64 [H], at most `n_available_by_stratum` clients."""
        is_clustered = state.stratum_of_client != NO_STRATUM
        clustered_strata = state.stratum_of_client[is_clustered]
        stratum_sizes = np.bincount(clustered_strata, minlength=H)
        if not self.asks_for_sketches:
            return strata.equal_stratum_allocation(stratum_sizes, n_available_by_stratum, m)
        stratum_deviations = strata.deviations_of_strata(state.X[is_clustered], clustered_strata, H)
        return strata.round_draws_to_capacity(
            strata.neyman_allocation(stratum_sizes, stratum_deviations, m), n_available_by_stratum, m
        )


def store_gradient_sketches(state: State, clients: Ids, sketches: Float64[np.ndarray, "_n _d"]) -> State:
    """Return the state with new sketches [n, d'] of the n `clients`, without those with a value of 1e12 or more."""
    is_queried = state.is_queried.copy()
    is_queried[clients] = True
    X = state.X.copy() if state.X.shape[1] else np.full((len(is_queried), sketches.shape[1]), np.nan)
    is_valid_sketch = (np.abs(sketches) < MAX_SKETCH_VALUE).all(1)
    X[clients[is_valid_sketch]] = sketches[is_valid_sketch]
    return replace(state, X=X, is_queried=is_queried, needs_clustering=True)
