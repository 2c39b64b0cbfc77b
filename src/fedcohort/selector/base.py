"""The contract of a client selector, and the choice that all of them share.

A selector is a frozen dataclass of hyperparameters; what changes between rounds is an explicit State. It sees arrays
and the signals that it declares, never a model, a dataset or an aggregator. It scores; `top` and `draw` choose.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, TypeVar

import numpy as np

from fedcohort.component import Component
from fedcohort.maths.order import nth_smallest
from fedcohort.types import Advice, Ids, Population, Probe, ProbeResult, RoundContext, RoundOutcome, Selection, Values

S = TypeVar("S")


class Selector(Component, Protocol[S]):
    """`plan` -> probes of w_t -> `select` -> local training -> `observe` -> aggregation, once a round.

    A selector writes `init` and `select`, and what else it does; the rest it inherits.

    A client's id means nothing: relabelled clients must have relabelled scores. Scores may hold a draw (Thompson
    sampling, epsilon-greedy): take it as one vector over all clients, `ctx.rng.standard_normal(ctx.n_clients)`. The
    laws relabel such a vector with the clients, and a client's draw doesn't depend on who else is there.

    Attributes:
        backs_off: whether the run withholds clients that failed repeatedly (`round/backoff.py`).
        needs: the words of `fedcohort/signal/` that it reads, static, probed and reported alike. A ClassVar, or a
            property where options decide: nobody is charged for a signal that the chosen options leave unread.
        advises: whether `observe` may return Advice; the matrix of updates is then kept for the aggregation.
        weighs: whether its advice has weights, or only says whom to keep; an aggregator that goes by them in part, or
            not at all, says so at start-up.
        absolute: whether its advice is (`Advice.absolute`): aggregators that work out weights of their own, and would
            lose the sum of those advised, are then refused.
        uncapped: whether it asks all who are available in every round.
        robust_loss: the weights alpha, beta and A of the robust loss by which it asks clients; empty if it doesn't.
    """

    backs_off: ClassVar[bool] = False

    @property
    def needs(self) -> frozenset[str]:
        return frozenset()

    @property
    def advises(self) -> bool:
        return False

    @property
    def weighs(self) -> bool:
        return self.advises

    @property
    def absolute(self) -> bool:
        return False

    @property
    def uncapped(self) -> bool:
        return False

    @property
    def robust_loss(self) -> Mapping[str, float]:
        return {}

    def shortlist(self, cohort: int) -> int:
        """Return the number of clients that a cohort is chosen from: back-off leaves at least as many."""
        return cohort

    def memory_bytes(self, n_clients: int) -> float:
        """Return a lower bound of the bytes that a choice among `n_clients` takes; 0 for what grows with n_clients."""
        return 0

    @abstractmethod
    def init(self, population: Population) -> S:
        """The state before round 0."""

    def plan(self, state: S, ctx: RoundContext) -> Sequence[Probe]:
        """Return the queries about w_t, to clients of `ctx.ready`; most selectors have none."""
        return ()

    @abstractmethod
    def select(self, state: S, ctx: RoundContext, probes: Mapping[str, ProbeResult]) -> tuple[Selection, S]:
        """Choose `ctx.cohort` distinct ids of `ctx.available`, or all of them where there are fewer.

        probes: answers to the blocking probes, by signal.
        """

    def observe(self, state: S, outcome: RoundOutcome) -> tuple[Advice | None, S]:
        """Learn from those who arrived, and who failed, before the aggregation. It must not draw.

        `outcome.signals[word]` has a number, or a row, for each of `outcome.clients`, in their order. It may be NaN or
        infinite, as the loss of a client that diverged: what is known of the others must not be spoilt by it.

        It is not called for a round without a cohort. A round without arrivals must change the state, too: no run may
        stall on clients that never arrive. Either the method counts failures, or it sets `backs_off`.
        """
        return None, state

    def trace(self, state: S) -> Mapping[str, tuple[float, float]]:
        """Named (mean, standard deviation) of what the selector believes, for the figures; {} where there is none."""
        return {}


@dataclass(frozen=True)
class Stateless:
    """The state of a selector that remembers nothing."""


def begins_with_all(word: str) -> str:
    """The line that a run starts with whose first round isn't as large as its cohort; word: of the selector."""
    return f"selector={word} trains everybody who is ready in round 1, whatever the cohort"


def answers(probes: Mapping[str, ProbeResult], signal: str) -> ProbeResult:
    """The answers to a probe, nobody's where none was sent."""
    return probes.get(signal, ProbeResult(np.empty(0, np.int64), np.empty(0)))


TIE = 1e-9


def finite_or_last(scores: Values) -> Values:
    """Scores with NaN and -inf as -inf ("never prefer"); +inf stays, it is the documented cold-start value."""
    return np.where(np.isnan(scores), -np.inf, scores)


def top(scores: Values, available: Ids, count: int, rng: np.random.Generator, tie: str = "random") -> Ids:
    """The `count` available clients with the highest scores, sorted by id; all of them where there are fewer.

    Args:
        scores: float64 [n_clients]. Two scores are tied when |a-b| <= 1e-9 max(1, |a|, |b|): dot products that are
            equal on paper differ in the last bit, and a naive argmax then always prefers the same client.
        available: sorted ids.
        count: how many.
        rng: for ties.
        tie: "random" draws among those tied at the cut, "id" takes the lowest ids. One vector is drawn either way.
    """
    order_noise = rng.random(len(scores))[available]
    if count >= len(available):
        return np.sort(available)
    value = finite_or_last(scores)[available]
    cut = np.partition(value, len(value) - count)[len(value) - count]
    if np.isfinite(cut):
        near = np.isfinite(value) & (np.abs(value - cut) <= TIE * np.maximum(1.0, np.maximum(np.abs(value), abs(cut))))
    else:
        near = value == cut
    above = (value > cut) & ~near
    left = count - int(above.sum())
    tied = np.flatnonzero(near)
    if tie == "random":
        tied = tied[np.argsort(order_noise[tied], kind="stable")]
    chosen = np.concatenate([np.flatnonzero(above), tied[:left]])
    return np.sort(available[chosen])


def draw(weights: Values, available: Ids, count: int, rng: np.random.Generator) -> Ids:
    """`count` distinct available clients, drawn one after the other in proportion to `weights`, sorted by id."""
    return np.sort(successive(weights, available, count, rng))


def successive(weights: Values, available: Ids, count: int, rng: np.random.Generator) -> Ids:
    """Draw as `draw` does, and return the ids in the order of drawing.

    weights: float64 [n_clients], not negative. Exponential keys e_k / weight_k give exactly the successive draw
    without replacement (Efraimidis and Spirakis 2006), with one vector a round, indexed by client. Clients of weight
    zero come in, uniformly, only where too few others are left.
    """
    noise, weight = rng.standard_exponential(len(weights)), weights
    if len(available) < len(weights):
        noise, weight = noise[available], weight[available]
    usable = np.isfinite(weight) & (weight > 0)
    keys = noise / weight if usable.all() else np.where(usable, noise, np.inf) / np.where(usable, weight, 1.0)
    cut = nth_smallest(keys, count) if 0 < count < len(keys) else np.inf
    some = np.flatnonzero(keys <= cut)  # the rest need no order
    order = some[np.lexsort((noise[some], keys[some]))]
    return available[order[:count]]
