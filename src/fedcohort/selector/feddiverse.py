"""FedDiverse: clients whose data are heterogeneous in different ways train together (Nemeth et al.).

Nemeth, Fani, Ng, Caputo, Lozano, Oliver, Quadrianto, "FedDiverse: Tackling Data Heterogeneity in Federated Learning
with Diversity-Driven Client Selection", Sec. IV.

    Delta^k = (CI, AI, SC) of k's data, estimated once by every client from w_{T_0};   D^k = Delta^k / sum of its three
    k_p ~ Delta_SC / sum,   k_c = argmin <D^{k_p}, D^k>,   k_r = argmax <D^{k_p} x D^{k_c}, D^k>,   and again

over the clients not chosen yet; the first draw of the next three is by CI, then by AI, then by SC again. Until round
T_0 = pretrain the cohort is random, every client with the same chance.

Departures from the paper:
- step 1 takes the triplets as they are and steps 2 and 3 those divided by their sums, as the formulas have it; all
  three components zero are three thirds, and where all clients' component is zero k_p is any client;
- the cross product points at "the remaining dimension" only in one of two orders: cross=abs looks both ways;
- the rotation starts anew each round unless persist_rotation; the paper leaves it open;
- pre-training is plain FedAvg, whatever aggregator, regulariser and server optimizer the run has (`Selection.plain`);
- a client that is away at T_0 is asked when it is there; one without a finite triplet comes last, without a draw;
- what the clients' models start from is in `interaction.py`; the paper gives no q, epochs, lr or batch for them, and a
  lr too small for so few epochs leaves all in one attribute (CMNIST, mlp: 0.1 is enough, 0.01 isn't). Their estimates,
  on CMNIST with 24 clients: class imbalance exact; spurious correlation within .07 on average over clients, .13 to .19
  for one of them; attribute imbalance .13 to .16 off, mostly above, with ranks that correlate at .3 to .4 alone;
- with many classes and few samples a client (digits: ten and some 24) no biased model gets a sample of its class right:
  no client has a pivot, all have AI = 1 and SC = 0, and class imbalance alone decides, so that the same clients are k_c
  in round after round. More epochs or a larger lr don't help; a warning says so;
- source=known_dht (Table IV) has the true triplets, and is charged as the matrices that they are worked out of;
- source=known_matrix draws in proportion to w = argmin Var(sum_k w_k N^k) over the simplex (sum w = 1 is not printed,
  but w = 0 would win without it), without putting back; clients of weight zero fill up;
- clients that failed three times in a row are withheld for a while (`round/backoff.py`): k_c and k_r are often the
  same ones.

A selection's probability is that of its first draw; role, among its parts, is 0 for a k_p, 1 for a k_c, 2 for a k_r.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from jaxtyping import Bool, Float64

from fedcohort import ranges
from fedcohort.component import ATTRIBUTES, Requirement
from fedcohort.data import skew
from fedcohort.maths.simplex import least_variance
from fedcohort.selector.base import Selector, answers, draw, top
from fedcohort.types import Ids, Population, Probe, ProbeResult, RoundContext, Selection, Values

log = logging.getLogger("fedcohort")

Triplets = Float64[np.ndarray, "clients 3"]
ROTATION = (2, 0, 1)  # SC, CI, AI
ZERO = 1e-12
TOLD = 1e-9  # of a component, above which it tells something
LEAST_WEIGHT = 1e-9  # of known_matrix: below it a client has none


@dataclass(frozen=True)
class State:
    """What changes between rounds.

    Attributes:
        delta: triplets, NaN where unknown.
        asked: who was.
        turn: groups of three so far, of all rounds that select.
        weight: of each client's draw with known_matrix, otherwise zeros.
    """

    delta: Triplets
    asked: Bool[np.ndarray, "clients"]
    turn: int
    weight: Values


@dataclass(frozen=True)
class FedDiverse(Selector[State]):
    """The selector; the module and configs/selector/feddiverse.yaml explain its options.

    Attributes:
        q, epochs, lr, batch: of the clients' estimate.
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
        known = ATTRIBUTES.or_else("selector.source=estimated")
        return frozenset({known} if self.source != "estimated" else ())

    def init(self, population: Population) -> State:
        K = population.n_clients
        blank = State(np.full((K, 3), np.nan), np.zeros(K, bool), 0, np.zeros(K))
        if self.source == "estimated":
            return blank
        N = population.signals["group_counts"]
        if self.source == "known_matrix":
            weight = least_variance(N.astype(np.float64))
            return replace(blank, weight=np.where(weight > LEAST_WEIGHT, weight, 0.0))
        return replace(blank, delta=skew.triplets(N.reshape(K, population.n_classes, -1)))

    def plan(self, state: State, ctx: RoundContext) -> Sequence[Probe]:
        new = ctx.ready[~state.asked[ctx.ready]]
        if self.source != "estimated" or ctx.round < self.pretrain or not len(new):
            return ()
        seed = int(ctx.rng.integers(2**63))  # batch orders follow from it, the round and the client
        options = {"q": self.q, "epochs": self.epochs, "lr": self.lr, "batch": self.batch, "seed": seed}
        return (Probe("dht", new, options),)

    def select(self, state: State, ctx: RoundContext, probes: Mapping[str, ProbeResult]) -> tuple[Selection, State]:
        if "dht" in probes:
            state = self._remember(state, answers(probes, "dht"))
            _warn_of_blind(state.delta)
        if ctx.round < self.pretrain:
            return Selection(draw(np.ones(ctx.n_clients), ctx.available, ctx.cohort, ctx.rng), plain=True), state
        if self.source == "known_matrix":
            return Selection(draw(state.weight, ctx.available, ctx.cohort, ctx.rng), state.weight), state
        turn = state.turn if self.persist_rotation else 0
        known = np.isfinite(state.delta).all(1)
        delta = np.where(known[:, None], state.delta, 0.0)
        order = self.order(delta, known, ctx, turn)
        role = np.full(ctx.n_clients, np.nan)
        role[order] = np.arange(len(order)) % 3
        first = ROTATION[turn % 3]
        selection = Selection(
            np.sort(np.array(order, dtype=np.int64)),
            scores=state.delta[:, first],
            parts=dict(zip(skew.COMPONENTS, state.delta.T, strict=True)) | {"role": role},
            probability=chances(delta[:, first], known, ctx.available) if order else np.zeros(ctx.n_clients),
        )
        return selection, replace(state, turn=state.turn + -(-len(order) // 3))

    def order(self, delta: Triplets, known: Bool[np.ndarray, "_n"], ctx: RoundContext, turn: int) -> list[int]:
        """Return the cohort as it is chosen: k_p, k_c, k_r, k_p, ...

        Args:
            delta: the triplets, [n_clients, 3], zero where not known.
            known: whether each client's are, bool [n_clients].
            ctx: of the round.
            turn: which of the three comes first.
        """
        D = normalise(delta)
        chosen: list[int] = []
        left = ctx.available
        while len(chosen) < ctx.cohort and len(left):
            step = len(chosen) % 3
            if step == 0:
                k = draw_one(chances(delta[:, ROTATION[turn % 3]], known, left), ctx.rng.random())
                turn += 1
            else:
                p, c = chosen[-1 - (step - 1)], chosen[-1]
                scores = -(D @ D[p]) if step == 1 else self._orient(D @ np.cross(D[p], D[c]))
                k = int(top(np.where(known, scores, -np.inf), left, 1, ctx.rng, self.tie)[0])
            chosen.append(k)
            left = left[left != k]
        return chosen

    def _orient(self, product: Values) -> Values:
        return np.abs(product) if self.cross == "abs" else product

    def _remember(self, state: State, answer: ProbeResult) -> State:
        delta, asked = state.delta.copy(), state.asked.copy()
        good = np.isfinite(answer.values).all(1)
        delta[answer.clients[good]] = np.clip(answer.values[good], 0.0, 1.0)
        asked[answer.clients] = True
        return replace(state, delta=delta, asked=asked)


def find_blind(delta: Triplets) -> Bool[np.ndarray, "clients"]:
    """Return whose estimate tells no attribute: AI = 1 and SC = 0, as of a client without a pivot."""
    return (delta[:, 1] > 1 - TOLD) & (delta[:, 2] < TOLD)


def _warn_of_blind(delta: Triplets) -> None:
    """Say where most estimates tell no attribute."""
    known = delta[np.isfinite(delta).all(1)]
    blind = int(find_blind(known).sum())
    if 2 * blind > len(known):
        log.warning(
            "selector=feddiverse: the estimates of %d of %d clients tell no attribute (AI = 1, SC = 0), so that it "
            "chooses by class imbalance alone: it takes more samples a client, or fewer classes",
            blind,
            len(known),
        )


def normalise(delta: Triplets) -> Triplets:
    """Return each client's triplet over its own sum, [n, 3]; thirds where that is zero."""
    total = delta.sum(1, keepdims=True)
    return np.where(total > ZERO, delta / np.where(total > ZERO, total, 1.0), 1 / 3)


def chances(weights: Values, known: Bool[np.ndarray, "_n"], left: Ids) -> Values:
    """The probability of each client to be drawn out of `left` by `weights`, [K].

    Where all weigh nothing, those known have equal chances; where nobody is known, all have.
    """
    w = weights[left]
    if w.sum() < ZERO:
        w = known[left].astype(np.float64) if known[left].any() else np.ones(len(left))
    out = np.zeros(len(weights))
    out[left] = w / w.sum()
    return out


def draw_one(probability: Values, u: float) -> int:
    """Return the client where the running sum of `probability` [K] passes u in [0, 1)."""
    running = np.cumsum(probability)
    last = np.flatnonzero(probability)[-1]  # u times the whole may round to the whole
    return int(min(np.searchsorted(running, u * running[-1], side="right"), last))
