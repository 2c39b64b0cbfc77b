"""Toy selectors: common bandits, which no law may reject, and selectors that break a law and must be detected."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from fedcohort.selector.base import Selector, top
from fedcohort.types import Ids, Population, Probe, ProbeResult, RoundContext, RoundOutcome, Selection, Values


@dataclass(frozen=True)
class State:
    """Mean and number of the losses of each client so far."""

    mean: Values
    count: Ids


class Toy(Selector[State]):
    """Selector by the mean loss of each client; subclasses compute other scores from it in `score`."""

    backs_off: ClassVar[bool] = True
    needs: ClassVar[frozenset[str]] = frozenset({"train_loss"})

    def score(self, state: State, rng: np.random.Generator) -> Values:
        """Return a score for each client; here its mean loss."""
        return state.mean

    def init(self, population: Population) -> State:
        return State(np.zeros(population.n_clients), np.zeros(population.n_clients, np.int64))

    def select(self, state: State, ctx: RoundContext, probes: Mapping[str, ProbeResult]) -> tuple[Selection, State]:
        scores = self.score(state, ctx.rng)
        return Selection(top(scores, ctx.available, ctx.cohort, ctx.rng), scores), state

    def observe(self, state: State, outcome: RoundOutcome) -> tuple[None, State]:
        loss = outcome.signals["train_loss"]
        is_finite = np.abs(loss) < 1e12
        k, mean, count = outcome.clients[is_finite], state.mean.copy(), state.count.copy()
        count[k] += 1
        mean[k] += (loss[is_finite] - mean[k]) / count[k]
        return None, replace(state, mean=mean, count=count)


@dataclass(frozen=True)
class PerClientThompson(Toy):
    """A score is a draw from each client's own posterior."""

    def score(self, state: State, rng: np.random.Generator) -> Values:
        return np.asarray(state.mean + rng.standard_normal(len(state.mean)) / np.sqrt(state.count + 1))


@dataclass(frozen=True)
class EpsilonGreedy(Toy):
    """Random scores in three rounds of ten."""

    def score(self, state: State, rng: np.random.Generator) -> Values:
        return rng.random(len(state.mean)) if rng.random() < 0.3 else state.mean


@dataclass(frozen=True)
class LowIdsAmongDraws(Toy):
    """Thompson sampling with a small preference for low ids."""

    def score(self, state: State, rng: np.random.Generator) -> Values:
        return np.asarray(PerClientThompson().score(state, rng) - 1e-3 * np.arange(len(state.mean)))


@dataclass(frozen=True)
class LowIds(Toy):
    """Selector of the lowest available ids, without scores."""

    def select(self, state: State, ctx: RoundContext, probes: Mapping[str, ProbeResult]) -> tuple[Selection, State]:
        return Selection(ctx.available[: ctx.cohort]), state


@dataclass(frozen=True)
class RequiredAnswers(Toy):
    """Selector that expects answers to its query in every round, also where no client is available."""

    needs: ClassVar[frozenset[str]] = frozenset({"loss", "train_loss"})

    def plan(self, state: State, ctx: RoundContext) -> Sequence[Probe]:
        return [Probe("loss", ctx.available)]

    def select(self, state: State, ctx: RoundContext, probes: Mapping[str, ProbeResult]) -> tuple[Selection, State]:
        scores = probes["loss"].dense(ctx.n_clients)
        return Selection(top(scores, ctx.available, ctx.cohort, ctx.rng), scores), state


TOY_SELECTORS = {"toy_thompson": PerClientThompson(), "toy_epsilon_greedy": EpsilonGreedy()}
LAW_BREAKERS = {"low ids": LowIds(), "low ids among draws": LowIdsAmongDraws()}
