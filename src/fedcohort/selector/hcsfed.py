"""HCSFed: strata of clients with alike gradients, more draws for strata that vary more (Song et al. 2023).

Song, Wang, Gao, Lu, Dong, Hu, Liu, "Fast Heterogeneous Federated Learning with Hybrid Client Selection" (UAI 2023).

    X_k = compressed gradient of k at w_0 (`maths/sketch.py`), asked once;   H strata by k-means
    S_h = sqrt(sum_{k in h} ||X_k - mean||^2 / (N_h - 1)),   m_h near m N_h S_h / sum N_j S_j, at least 1 where m >= H
    in each stratum m_h clients, one after the other in proportion to ||X_k||
    agg=stratified: each update of stratum h weighs (N_h / K) / m_h
    recluster=r: every r rounds everybody's X_k is of another day, and asked again at w_t; the strata are formed anew

variant=feddiverse_paper, as FedDiverse's experiments have it: X_k is the compressed update of round 0, where everybody
trains; three strata, m / H draws each, uniform within.

Departures from the paper:
- the paper's number of strata is not certain to us: 10 or so; FedDiverse's three and 1e-5 are from its text;
- sketches of values are sorted: k-means numbers its groups at random. Sorted ones compare how a gradient's values are
  distributed, not where they are; compress=shared_projection does that;
- strata=null are no more than the cohort: with fewer places than strata (which `strata` may ask for) those of the
  largest targets have one each, the same in every round, and whoever is in another never trains;
- quotas are not in FedDiverse's text; the remainder of m / H goes to the largest strata, as does what has no room;
- the paper's strata hold for the whole run, as does recluster=null. Otherwise an old sketch counts until the new one is
  there, from the next time that a client is available (feddiverse_paper: from its next update);
- agg=fedavg, the default, leaves weights to the aggregator, as all other selectors do;
- clients that are away at first are asked when they are there (feddiverse_paper: known by their first update), and
  the strata are formed anew then. One whose answer is not finite, or beyond 1e12, comes last; with feddiverse_paper
  those not known yet are a stratum with draws in proportion to its size;
- clients that failed three times in a row are withheld for a while (`round/backoff.py`): small strata are drawn from
  in every round.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from jaxtyping import Bool, Float64

from fedcohort import ranges
from fedcohort.component import Facts, Requirement
from fedcohort.maths import kmeans, sketch, strata
from fedcohort.rng import generator
from fedcohort.selector.base import Selector, answers, begins_with_all, draw
from fedcohort.types import Advice, Ids, Population, Probe, ProbeResult, RoundContext, RoundOutcome, Selection, Values

NOBODY = -1  # the stratum of those not known
LIMIT = 1e12
KEY = 0  # all clients compress with the same draws, whenever they are asked and in all runs
TOO_MANY = (
    "{option} has more strata than a cohort has places: those of the largest targets have one each, the same in every "
    "round, and whoever is in another never trains. Choose selector.strata=null"
)
TOO_SHORT = (
    "{option} compresses a gradient of this network into two numbers, which tell little more than its length: choose a "
    "larger selector.rate"
)
STRATA = {"paper": 10, "feddiverse_paper": 3}


@dataclass(frozen=True)
class State:
    """What changes between rounds.

    Attributes:
        X: sketches [K, d'], NaN where unknown; no columns before the first.
        asked: who was, or sent an update, since the last `recluster` rounds were over.
        stratum: of each client, -1 where unknown.
        stale: somebody's sketch is newer than the strata.
    """

    X: Float64[np.ndarray, "k d"]
    asked: Bool[np.ndarray, "k"]
    stratum: Ids
    stale: bool


@dataclass(frozen=True)
class HcsFed(Selector[State]):
    """The selector; the module and configs/selector/hcsfed.yaml explain its options."""

    variant: str
    strata: int | None
    rate: float
    compress: str
    agg: str
    recluster: int | None

    backs_off: ClassVar[bool] = True

    def __post_init__(self) -> None:
        ranges.choice("variant", self.variant, *STRATA)
        ranges.integer("strata", self.strata, "[1, inf)", optional=True)
        ranges.number("rate", self.rate, "(0, 1]")
        ranges.choice("compress", self.compress, *sketch.WAYS)
        ranges.choice("agg", self.agg, "fedavg", "stratified")
        ranges.integer("recluster", self.recluster, "[1, inf)", optional=True)

    @property
    def probes(self) -> bool:
        return self.variant == "paper"

    @property
    def advises(self) -> bool:
        return self.agg == "stratified"

    @property
    def recommendations(self) -> frozenset[Requirement]:
        return frozenset({Requirement(self._fits, TOO_MANY), Requirement(self._tells, TOO_SHORT)})

    def _fits(self, run: Facts) -> bool | None:
        """Whether every stratum has a place in a cohort."""
        return None if run.cohort is None else self.strata is None or self.strata <= run.cohort

    def _tells(self, run: Facts) -> bool | None:
        """Whether a sketch is longer than the shortest."""
        return run.layout and sketch.length(run.layout.n_params, self.rate) > sketch.length(1, self.rate)

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"compressed_gradient" if self.probes else "update"})

    def notices(self, choice: str) -> Sequence[str]:
        return () if self.probes else (begins_with_all(choice),)

    def init(self, population: Population) -> State:
        K = population.n_clients
        return State(np.empty((K, 0)), np.zeros(K, bool), np.full(K, NOBODY), False)

    def plan(self, state: State, ctx: RoundContext) -> Sequence[Probe]:
        new = ctx.ready if self.due(ctx.round) else ctx.ready[~state.asked[ctx.ready]]
        if not self.probes or not len(new):
            return ()
        return (Probe("compressed_gradient", new, {"rate": self.rate, "way": self.compress, "key": KEY}),)

    def select(self, state: State, ctx: RoundContext, probes: Mapping[str, ProbeResult]) -> tuple[Selection, State]:
        if self.due(ctx.round):
            state = replace(state, asked=np.zeros(ctx.n_clients, bool))
        if "compressed_gradient" in probes:
            answer = answers(probes, "compressed_gradient")
            state = remember(state, answer.clients, answer.values)
        if not self.probes and ctx.round == 0:
            return Selection(ctx.available, uncapped=True), state
        if state.stale:
            state = replace(state, stratum=self._stratify(state, ctx), stale=False)
        return self._draw(state, ctx), state

    def observe(self, state: State, outcome: RoundOutcome) -> tuple[Advice | None, State]:
        advice = Advice(weights=shares(state.stratum, outcome.clients)) if self._weighs(state, outcome) else None
        new = np.flatnonzero(~state.asked[outcome.clients])
        if self.probes or not len(new):
            return advice, state
        delta = outcome.signals["update"][new]
        rows = [sketch.sketch(row, self.rate, self.compress, generator(KEY, "signal/sketch")) for row in delta]
        return advice, remember(state, outcome.clients[new], np.stack(rows))

    def due(self, round: int) -> bool:
        """Whether what is known of everybody is too old in this round."""
        return self.recluster is not None and round > 0 and round % self.recluster == 0

    def _weighs(self, state: State, outcome: RoundOutcome) -> bool:
        return self.agg == "stratified" and len(outcome.clients) > 0 and bool((state.stratum != NOBODY).any())

    def _stratify(self, state: State, ctx: RoundContext) -> Ids:
        """Return the stratum of each client."""
        known = np.flatnonzero(np.isfinite(state.X).all(1))
        stratum = np.full(len(state.X), NOBODY)
        H = min(STRATA[self.variant], ctx.cohort) if self.strata is None else self.strata
        if len(known):
            X = state.X[known]
            distinct = len(np.unique(X, axis=0))
            stratum[known] = kmeans.clusters(X, min(H, distinct), ctx.rng)
        return stratum

    def _draw(self, state: State, ctx: RoundContext) -> Selection:
        here, stratum = ctx.available, state.stratum
        m, H = min(ctx.cohort, len(here)), int(stratum.max(initial=NOBODY)) + 1
        strangers = here[stratum[here] == NOBODY]
        norm = np.linalg.norm(state.X, axis=1) if state.X.shape[1] else np.full(ctx.n_clients, np.nan)
        first = self._strangers(strangers, m, ctx)
        room = np.array([(stratum[here] == h).sum() for h in range(H)], dtype=np.int64)
        draws = self.quotas(state, H, room, m - first)
        chance, clients = np.zeros(ctx.n_clients), np.empty(0, np.int64)
        for h in range(H):
            members = here[stratum[here] == h]
            weight = norm if self.probes and norm[members].sum() > 0 else np.ones(ctx.n_clients)
            clients = np.append(clients, draw(weight, members, int(draws[h]), ctx.rng))
            if draws[h]:
                chance[members] = draws[h] / m * weight[members] / weight[members].sum()
        if m > len(clients):
            chance[strangers] = (m - len(clients)) / m / len(strangers)
            clients = np.append(clients, draw(np.ones(ctx.n_clients), strangers, m - len(clients), ctx.rng))
        part = np.where(stratum == NOBODY, np.nan, stratum.astype(np.float64))
        return Selection(np.sort(clients), chance, {"stratum": part, "norm": norm}, chance)

    def _strangers(self, strangers: Ids, m: int, ctx: RoundContext) -> int:
        """Draws for those not known yet, m N / K on average; none where everybody was asked, or nobody is there."""
        if self.probes or not len(strangers):
            return 0
        return min(len(strangers), int(m * len(strangers) / len(ctx.available) + ctx.rng.random()))

    def quotas(self, state: State, H: int, room: Ids, m: int) -> Ids:
        """m_h for each stratum, at most its members that are there."""
        sizes = np.bincount(state.stratum[state.stratum != NOBODY], minlength=H)
        if not self.probes:
            return strata.equal(sizes, room, m)
        known = state.stratum != NOBODY
        S = strata.spread(state.X[known], state.stratum[known], H)
        return strata.neyman(strata.targets(sizes, S, m), room, m)


def remember(state: State, clients: Ids, values: Float64[np.ndarray, "_n _d"]) -> State:
    """Return the state with these clients' sketches."""
    asked = state.asked.copy()
    asked[clients] = True
    X = state.X.copy() if state.X.shape[1] else np.full((len(asked), values.shape[1]), np.nan)
    good = (np.abs(values) < LIMIT).all(1)
    X[clients[good]] = values[good]
    return replace(state, X=X, asked=asked, stale=True)


def shares(stratum: Ids, clients: Ids) -> Values:
    """Return N_h / K over the number of clients of h in the cohort that arrived, for each of them."""
    sizes, arrived = np.bincount(stratum + 1), np.bincount(stratum[clients] + 1, minlength=1)
    mine = stratum[clients] + 1
    out: Values = sizes[mine] / len(stratum) / arrived[mine]
    return out
