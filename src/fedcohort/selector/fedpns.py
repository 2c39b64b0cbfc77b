"""FedPNS: clients whose gradients oppose the others' are left out, and drawn more rarely (Wu and Wang 2022).

Wu and Wang, "Node Selection Toward Faster Convergence for Federated Learning on Non-IID Data" (2022), after the
authors' code.

    g_k = (w_t - w_k) / (lr x local steps of k),   E(A) = sum_{i in A} <g_i, mean of A> = |A| ||mean of A||^2
    while |A| > keep_min:  k* = argmax_k E(A - k);  stop if E(A - k*) <= E(A), else label k* and leave it out;
        loss_check: stop, and k* stays in, where the server's loss of the mean of A is below that of A - k*
    delta_k = min((labels_k / selections_k + beta)^alpha, 1):  a labelled k loses delta_k of its probability prob_k, and
    all who were not labelled, arrived or not, share what is lost alike
    S = m clients, one after the other in proportion to prob, 1/K each at first

The server works out U U' of the updates once, m^2 P (`signal/update_gram.py`). With H_ij = (U U')_ij / (steps of i x
steps of j) E(A) is the sum of A's block of H over |A|: m^2 a step.

Departures from the paper:
- lr is the same for all, and cancels;
- the loss check of the authors' code is on the test set; here it is on server_val, and off by default;
- it compares plain means, as in the code, whatever the aggregator's weights; a loss that is not finite is the highest;
- their first cohort is picked by hand, half of it with IID data; here it is drawn as every other;
- their inner products are rounded to two decimals; here they are not;
- E is their sum over A, not a mean: the mean labels more clients;
- keep_min is a share of those who arrived, rounded up, 8 of 10 in the code (where that is everybody, nobody is ever
  labelled, and the method draws as `random` does: the start of a run says so); failed clients count as never selected;
- clients that failed three times in a row are withheld for a while (`round/backoff.py`): they gain what others lose;
- the clients kept are weighed as the aggregator weighs them, a plain mean in the code;
- prob is at least 1e-8, so that even a client that lost all comes back where others are away.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float64

from fedcohort import ranges
from fedcohort.component import Facts, Requirement
from fedcohort.selector.base import TIE, Selector, draw
from fedcohort.types import Advice, Ids, Population, ProbeResult, RoundContext, RoundOutcome, Selection, Values

FLOOR = 1e-8  # of a probability
IDLE = (
    "{option} keeps ceil(keep x m) of the m clients that arrive in a round, which is all of them: no client is left "
    "out, and clients are drawn as with selector=random. Choose a larger cohort, or a lower selector.keep"
)
Gram = Float64[np.ndarray, "m m"]


@dataclass(frozen=True)
class State:
    """What changes between rounds.

    Attributes:
        prob: sums to 1.
        selected, labelled: how often each client arrived, and how often it was left out then.
    """

    prob: Values
    selected: Ids
    labelled: Ids


@dataclass(frozen=True)
class FedPns(Selector[State]):
    """The selector, with its options.

    Attributes:
        alpha, beta: what a label costs.
        keep: share of the arrived that is always aggregated.
        loss_check: see above.
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
        return frozenset({Requirement(self._labels, IDLE)})

    def _labels(self, run: Facts) -> bool | None:
        """Whether anybody can be left out, where as many arrive as may; of fewer it is nobody the sooner."""
        return None if run.arriving is None else self._least(run.arriving) < run.arriving

    def _least(self, arrived: int) -> int:
        """How many of those who arrived are aggregated at least."""
        return math.ceil(self.keep * arrived - 1e-9)

    def init(self, population: Population) -> State:
        K = population.n_clients
        return State(np.full(K, 1 / K), np.zeros(K, np.int64), np.zeros(K, np.int64))

    def select(self, state: State, ctx: RoundContext, probes: Mapping[str, ProbeResult]) -> tuple[Selection, State]:
        chance = np.zeros(ctx.n_clients)
        chance[ctx.available] = state.prob[ctx.available]
        chance /= max(float(chance.sum()), FLOOR)
        clients = draw(state.prob, ctx.available, ctx.cohort, ctx.rng)
        return Selection(clients, scores=state.prob, probability=chance), state

    def observe(self, state: State, outcome: RoundOutcome) -> tuple[Advice | None, State]:
        H = per_step(outcome.signals["update_gram"], outcome.signals["steps"])
        rows = np.argsort(outcome.clients)  # ties go by id, whatever the order of arrival
        rows = rows[np.isfinite(np.diag(H))[rows]]
        least = self._least(len(outcome.clients))
        worse = self._check(outcome, rows) if self.loss_check else None
        labels, out = against(scale(H[np.ix_(rows, rows)]), least - (len(outcome.clients) - len(rows)), worse)
        selected, labelled = state.selected.copy(), state.labelled.copy()
        selected[outcome.clients] += 1
        bad = outcome.clients[rows[labels]]
        labelled[bad] += 1
        prob = self.move(state.prob, bad, labelled[bad] / selected[bad])
        after = State(prob, selected, labelled)
        keep = np.ones(len(outcome.clients), bool)
        keep[rows[out]] = False
        return (Advice(keep=keep) if len(out) else None), after

    def _check(self, outcome: RoundOutcome, rows: Ids) -> Callable[[Ids, Ids], bool]:
        """Whether the second group's mean has a higher loss than the first's; groups are places in `rows`."""
        trial = outcome.signals["server_loss"]

        def loss(members: Ids) -> float:
            weights = np.zeros(len(outcome.clients))
            weights[rows[members]] = 1 / len(members)
            found = float(trial(weights))
            return found if math.isfinite(found) else math.inf

        return lambda whole, without: loss(whole) < loss(without)

    def move(self, prob: Values, labelled: Ids, ratio: Values) -> Values:
        """The probabilities after a round; ratio: of times labelled to times selected, aligned with `labelled`."""
        others = np.ones(len(prob), bool)
        others[labelled] = False
        if not len(labelled) or not others.any():
            return prob
        loss = prob[labelled] * np.minimum((ratio + self.beta) ** self.alpha, 1.0)
        out = prob.copy()
        out[labelled] -= loss
        out[others] += loss.sum() / others.sum()
        out = np.maximum(out, FLOOR)
        return np.asarray(out / out.sum())


def per_step(products: Gram, steps: Values) -> Gram:
    """<g_i, g_j> of the updates' inner products, but for the learning rate; who reports no steps is as with one."""
    s = np.where(np.isfinite(steps) & (steps > 1), steps, 1.0)
    H: Gram = products / s[:, None] / s
    return H


def scale(H: Gram) -> Gram:
    """H over its largest entry, which is on the diagonal: no comparison notices, and no sum of entries overflows."""
    size = float(np.diag(H).max(initial=0.0))
    return H / size if size > 0 else H


def agreement(H: Gram, members: Ids) -> float:
    """E(A) = |A| ||mean of A||^2; 0 for nobody."""
    return float(H[np.ix_(members, members)].sum() / max(len(members), 1))


def without(H: Gram, members: Ids) -> Values:
    """E(A - k) for each k of A; A has two members at least."""
    block = H[np.ix_(members, members)]
    left: Values = (block.sum() - 2 * block.sum(1) + np.diag(block)) / (len(members) - 1)
    return left


def against(H: Gram, least: int, worse: Callable[[Ids, Ids], bool] | None = None) -> tuple[Ids, Ids]:
    """Return who is labelled and who is left out, in that order.

    At least `least` stay, and one in any case.

    worse(A, A - k): whether it is better to keep k; then the label stays, and the search is over.
    """
    members, out = np.arange(len(H)), list[int]()
    while len(members) > max(least, 1):
        now, then = agreement(H, members), without(H, members)
        best = float(then.max())
        if best <= now + TIE * max(abs(now), abs(best)):
            break
        first = int(np.flatnonzero(then >= best - TIE * abs(best))[0])
        k, rest = int(members[first]), np.delete(members, first)
        if worse is not None and worse(members, rest):
            return np.array([*out, k], dtype=np.int64), np.array(out, dtype=np.int64)
        out.append(k)
        members = rest
    return np.array(out, dtype=np.int64), np.array(out, dtype=np.int64)
