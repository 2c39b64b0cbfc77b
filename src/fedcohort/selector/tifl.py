"""TiFL: all clients of a cohort are from one tier of similar speed; inaccurate tiers are drawn most (Chai et al. 2020).

Chai, Ali, Zawad, Truex, Anwar, Baracaldo, Zhou, Ludwig, Yan, Cheng, "TiFL: A Tier-based Federated Learning System",
HPDC 2020, arXiv 2001.09249.

    tiers:  T groups of equal size by the expected seconds of a whole job, fastest first
    S:  m clients drawn uniformly from a tier j, which is drawn with probability p_j among the tiers with credits
    credits:  a tier loses one each time it is drawn
    every I rounds:  A_j <- mean accuracy of w_t on the validation sets of tier j

Then p_j <- (L - rank_j) / (L (L + 1) / 2) for the L tiers with credits. rank_j counts from 0, the tier with the lowest
accuracy. All p_j are 1/T at first. They change only if the accuracy of the tier that was drawn in the round before the
query, whose clients trained w_t, has not risen since the previous query.

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

CLIENT_VALIDATION_REQUIREMENT = Requirement(
    lambda facts: bool(facts.config["split"]["client_val"] > 0),
    "{option} compares tiers by the accuracy on the clients' validation sets, and split.client_val=0 leaves clients at "
    "most two validation samples: choose split.client_val in (0, 0.5]",
)


@dataclass(frozen=True)
class State:
    """State of TiFL that is kept between rounds.

    Attributes:
        tier_of_client: tier of each client, 0 the fastest, [n_clients].
        credits: number of rounds in which each tier may still be drawn, [n_tiers].
        probability: probability with which each tier is drawn, [n_tiers].
        accuracy: mean validation accuracy of each tier at the latest query, 0 before it, [n_tiers].
        last_drawn_tier: tier that was drawn last; -1 before the first draw.
        previous_tier: tier that was drawn last before the current round; -1 if none was.
    """

    tier_of_client: Ids
    credits: Ids
    probability: Values
    accuracy: Values
    last_drawn_tier: int
    previous_tier: int


@dataclass(frozen=True)
class TiFl(Selector[State]):
    """TiFL, a client selector: each cohort is drawn from one tier of equally fast clients.

    Attributes:
        tiers: number of tiers.
        interval: number of rounds between queries of the clients' validation accuracy.
        credits: number of rounds in which each tier may be drawn until all credits are renewed.
        adapt: when probabilities change: "paper", only if the tier drawn before did not become more accurate,
            or "always", after each query but that of round 0.
        rank_sum: divisor of the ranks of L tiers: "plus", L (L + 1) / 2, or "minus", L (L - 1) / 2, with which the most
            accurate tier is not drawn.
    """

    tiers: int
    interval: int
    credits: int
    adapt: str
    rank_sum: str

    backs_off: ClassVar[bool] = True
    needs: ClassVar[frozenset[str]] = frozenset({"expected_s", "val_accuracy"})
    recommendations: ClassVar[frozenset[Requirement]] = frozenset({CLIENT_VALIDATION_REQUIREMENT})

    def __post_init__(self) -> None:
        ranges.integer("tiers", self.tiers, "[1, inf)")
        ranges.integer("interval", self.interval, "[1, inf)")
        ranges.integer("credits", self.credits, "[1, inf)")
        ranges.choice("adapt", self.adapt, "paper", "always")
        ranges.choice("rank_sum", self.rank_sum, "plus", "minus")

    def init(self, population: Population) -> State:
        T = self.tiers
        tier_of_client = assign_tiers(population.signals["expected_s"], T)
        return State(tier_of_client, np.full(T, self.credits), np.full(T, 1 / T), np.zeros(T), -1, -1)

    def plan(self, state: State, ctx: RoundContext) -> Sequence[Probe]:
        return (Probe("val_accuracy", ctx.ready, concurrent=True),) if ctx.round % self.interval == 0 else ()

    def select(self, state: State, ctx: RoundContext, probes: Mapping[str, ProbeResult]) -> tuple[Selection, State]:
        if not ctx.is_refill:
            state = replace(state, previous_tier=state.last_drawn_tier)
        is_available_tier = np.bincount(state.tier_of_client[ctx.available], minlength=self.tiers) > 0
        has_credits = state.credits[is_available_tier].any()
        credits = state.credits if has_credits else np.full(self.tiers, self.credits)
        is_drawable_tier = is_available_tier & (credits > 0)
        tier_probs = np.where(is_drawable_tier, state.probability, 0.0)
        tier_probs = tier_probs if tier_probs.any() else is_drawable_tier.astype(np.float64)
        tier_probs = tier_probs / max(float(tier_probs.sum()), 1e-300)
        scores = tier_probs[state.tier_of_client]
        if not len(ctx.available):
            return Selection(ctx.available, scores), state
        drawn_tier = int(np.searchsorted(np.cumsum(tier_probs) / tier_probs.sum(), ctx.rng.random(), side="right"))
        tiers_to_drawn_tier = drawn_tier - np.arange(self.tiers)  # in tiers; slower ones come after all faster ones
        tier_proximity_scores = -np.where(
            tiers_to_drawn_tier < 0, self.tiers - tiers_to_drawn_tier, tiers_to_drawn_tier
        ).astype(np.float64)
        clients = top(tier_proximity_scores[state.tier_of_client], ctx.available, ctx.cohort, ctx.rng)
        credits = credits - (np.arange(self.tiers) == drawn_tier)
        return Selection(clients, scores), replace(state, credits=credits, last_drawn_tier=drawn_tier)

    def observe(self, state: State, outcome: RoundOutcome) -> tuple[None, State]:
        val_accuracies = find_answers(outcome.probes, "val_accuracy")
        is_finite_accuracy = np.isfinite(val_accuracies.values)
        tier_of_answer = state.tier_of_client[val_accuracies.clients[is_finite_accuracy]]
        accuracy = np.clip(val_accuracies.values[is_finite_accuracy], 0.0, 1.0)
        if not len(tier_of_answer):
            return None, state
        answers_per_tier = np.bincount(tier_of_answer, minlength=self.tiers)
        accuracy_sums = np.bincount(tier_of_answer, weights=accuracy, minlength=self.tiers)
        tier_accuracy = np.where(answers_per_tier > 0, accuracy_sums / np.maximum(answers_per_tier, 1), state.accuracy)
        next_state = replace(state, accuracy=tier_accuracy)
        has_accuracy_risen = tier_accuracy[state.previous_tier] > state.accuracy[state.previous_tier]
        if outcome.round == 0 or (self.adapt == "paper" and has_accuracy_risen):
            return None, next_state
        return None, replace(next_state, probability=self.tier_probabilities(tier_accuracy, state.credits))

    def tier_probabilities(self, accuracy: Values, credits: Ids) -> Values:
        """Return the probability with which each tier is drawn, the largest for the least accurate one, [n_tiers].

        Args:
            accuracy: mean validation accuracy of each tier, in [0, 1], [n_tiers].
            credits: number of rounds in which each tier may still be drawn, [n_tiers]; without credits the probability
                is 0.
        """
        tiers_with_credits = np.flatnonzero(credits > 0)
        rank_reduction = int(self.rank_sum == "minus" and len(tiers_with_credits) > 1)
        p, tiers_by_accuracy = np.zeros(self.tiers), np.argsort(accuracy[tiers_with_credits], kind="stable")
        p[tiers_with_credits[tiers_by_accuracy]] = np.arange(len(tiers_with_credits), 0, -1) - rank_reduction
        return np.asarray(p / max(float(p.sum()), 1.0))


def assign_tiers(job_s: Values, n_tiers: int) -> Ids:
    """Return the tier of each client, 0 the fastest, int64 [n_clients]; the sizes of tiers differ by at most one.

    Args:
        job_s: expected seconds of each client's whole job, [n_clients]; equal durations are ordered by id.
        n_tiers: number of tiers.
    """
    tier_of_client = np.empty(len(job_s), np.int64)
    for tier_number, member_ids in enumerate(np.array_split(np.argsort(job_s, kind="stable"), n_tiers)):
        tier_of_client[member_ids] = tier_number
    return tier_of_client
