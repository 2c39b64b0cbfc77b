"""TiFL: all clients of a cohort are from one tier of similar speed; inaccurate tiers are drawn most (Chai et al. 2020).

Chai, Ali, Zawad, Truex, Anwar, Baracaldo, Zhou, Ludwig, Yan, Cheng, "TiFL: A Tier-based Federated Learning System",
HPDC 2020, arXiv 2001.09249.

    tiers:  T groups of equal size by the expected seconds of a whole job, fastest first
    S:  m clients drawn uniformly from a tier j, which is drawn with probability p_j among the tiers with credits
    credits:  a tier loses one each time it is drawn
    every I rounds:  A_j <- mean accuracy of w_t on the validation sets of tier j

Then p_j <- (L - rank_j) / (L (L + 1) / 2) for the L tiers with credits. rank_j counts from 0, the tier with the lowest
accuracy. All p_j are 1/T at first. They change only if the accuracy of the tier that was drawn last has not risen since
the query before.

The abstract and two third-party implementations were read, the full text was not. The defaults of T and I and the
formula of p_j are those of the implementations. The condition on the tier drawn last is recalled from the paper and not
confirmed. The implementations have none: adapt=always.

Departures from the paper:
- rank_sum=minus ranks from 1 and divides by L (L - 1) / 2, which may be the paper's formula. The most accurate tier is
  then not drawn.
- The number of rounds is not known to the method: credits are an option. When no tier with available clients has any,
  all credits are renewed. One of the implementations then never ends.
- All ready clients are queried during the training of every I-th round, the first one included. A query costs a
  download and a forward pass over the validation set. The new p_j hold from the next round on.
- A tier with fewer than m available clients is filled up from the next faster tiers, then from slower ones. One of the
  implementations draws a client twice.
- The accuracy of a tier is the mean over the clients that answered. A tier without an answer keeps its value, and has 0
  before its first one. Equal accuracies rank by tier, fastest first.
- Where all tiers with credits have p_j = 0, they are drawn uniformly.
- Tiers do not change during a run; the abstract describes an update of them.
- A client that failed three times in a row is withheld for some rounds (`round/backoff.py`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from fedcohort import ranges
from fedcohort.component import Requirement
from fedcohort.selector.base import Selector, find_answers, top
from fedcohort.types import Ids, Population, Probe, ProbeResult, RoundContext, RoundOutcome, Selection, Values

VALIDATION = Requirement(
    lambda run: bool(run.config["split"]["client_val"] > 0),
    "{option} compares tiers by the accuracy on the clients' validation sets, and split.client_val=0 leaves clients at "
    "most two validation samples: choose split.client_val in (0, 0.5]",
)


@dataclass(frozen=True)
class State:
    """State of TiFL that is kept between rounds.

    Attributes:
        tier: tier of each client, 0 the fastest, [K].
        credits: rounds in which each tier may still be drawn, [T].
        probability: p_j of each tier, [T].
        accuracy: accuracy of each tier at the latest query, 0 before it, [T].
        latest: tier that was drawn last; -1 before the first draw.
    """

    tier: Ids
    credits: Ids
    probability: Values
    accuracy: Values
    latest: int


@dataclass(frozen=True)
class TiFl(Selector[State]):
    """TiFL, a client selector.

    Attributes:
        tiers: T, the number of tiers.
        interval: I, rounds between queries of the accuracy.
        credits: rounds in which each tier may be drawn until all credits are renewed.
        adapt: "paper" or "always".
        rank_sum: "plus" or "minus".
    """

    tiers: int
    interval: int
    credits: int
    adapt: str
    rank_sum: str

    backs_off: ClassVar[bool] = True
    needs: ClassVar[frozenset[str]] = frozenset({"expected_s", "val_accuracy"})
    recommendations: ClassVar[frozenset[Requirement]] = frozenset({VALIDATION})

    def __post_init__(self) -> None:
        ranges.integer("tiers", self.tiers, "[1, inf)")
        ranges.integer("interval", self.interval, "[1, inf)")
        ranges.integer("credits", self.credits, "[1, inf)")
        ranges.choice("adapt", self.adapt, "paper", "always")
        ranges.choice("rank_sum", self.rank_sum, "plus", "minus")

    def init(self, population: Population) -> State:
        T = self.tiers
        tier = assign_tiers(population.signals["expected_s"], T)
        return State(tier, np.full(T, self.credits), np.full(T, 1 / T), np.zeros(T), -1)

    def plan(self, state: State, ctx: RoundContext) -> Sequence[Probe]:
        return (Probe("val_accuracy", ctx.ready, concurrent=True),) if ctx.round % self.interval == 0 else ()

    def select(self, state: State, ctx: RoundContext, probes: Mapping[str, ProbeResult]) -> tuple[Selection, State]:
        available = np.bincount(state.tier[ctx.available], minlength=self.tiers) > 0
        remaining = state.credits
        if not remaining[available].any():
            remaining = np.full(self.tiers, self.credits)
        is_live = available & (remaining > 0)
        p = np.where(is_live, state.probability, 0.0)
        p = p if p.any() else is_live.astype(np.float64)
        p = p / max(float(p.sum()), 1e-300)
        if not len(ctx.available):
            return Selection(ctx.available, p[state.tier]), state
        drawn = int(np.searchsorted(np.cumsum(p) / p.sum(), ctx.rng.random(), side="right"))
        distance = drawn - np.arange(self.tiers)  # in tiers; slower ones come after all faster ones
        preference = -np.where(distance < 0, self.tiers - distance, distance).astype(np.float64)
        clients = top(preference[state.tier], ctx.available, ctx.cohort, ctx.rng)
        remaining = remaining - (np.arange(self.tiers) == drawn)
        return Selection(clients, p[state.tier]), replace(state, credits=remaining, latest=drawn)

    def observe(self, state: State, outcome: RoundOutcome) -> tuple[None, State]:
        result = find_answers(outcome.probes, "val_accuracy")
        is_finite = np.isfinite(result.values)
        tier, accuracy = state.tier[result.clients[is_finite]], np.clip(result.values[is_finite], 0.0, 1.0)
        if not len(tier):
            return None, state
        count = np.bincount(tier, minlength=self.tiers)
        total = np.bincount(tier, weights=accuracy, minlength=self.tiers)
        latest = np.where(count > 0, total / np.maximum(count, 1), state.accuracy)
        after = replace(state, accuracy=latest)
        has_risen = latest[state.latest] > state.accuracy[state.latest]
        if outcome.round == 0 or (self.adapt == "paper" and has_risen):
            return None, after
        return None, replace(after, probability=self.probabilities(latest, state.credits))

    def probabilities(self, accuracy: Values, remaining: Ids) -> Values:
        """Return p_j, the largest for the least accurate tier, [T]; remaining: credits of each tier."""
        live = np.flatnonzero(remaining > 0)
        shift = int(self.rank_sum == "minus" and len(live) > 1)
        p = np.zeros(self.tiers)
        p[live[np.argsort(accuracy[live], kind="stable")]] = np.arange(len(live), 0, -1) - shift
        return np.asarray(p / max(float(p.sum()), 1.0))


def assign_tiers(seconds: Values, tiers: int) -> Ids:
    """Return the tier of each client, [K], 0 the fastest; sizes differ by at most one, and the first are larger.

    Args:
        seconds: expected seconds of each client's whole job, [K]; equal clients are assigned by id.
        tiers: number of tiers.
    """
    tier = np.empty(len(seconds), np.int64)
    for number, members in enumerate(np.array_split(np.argsort(seconds, kind="stable"), tiers)):
        tier[members] = number
    return tier
