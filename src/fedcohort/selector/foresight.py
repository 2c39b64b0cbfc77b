"""Selection by simulated training, shared by two oracles: all clients train from w_t, uncharged, before the choice.

They train on the samples that the run's sample selection takes. Failures are not foreseen. A client that failed three
times in a row is withheld for some rounds (`round/backoff.py`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedcohort import ranges
from fedcohort.selector.base import Selector, Stateless, find_answers, reject_large_population, top
from fedcohort.types import Population, Probe, ProbeResult, RoundContext, Selection


@dataclass(frozen=True)
class TrainingOracle(Selector[Stateless]):
    """A client selector that simulates the training of all clients before it chooses.

    Attributes:
        limit: largest population for which all clients are trained in every round.
        loss_direction: "down" to lower the server's loss with each client added to the cohort, "up" to raise it.
    """

    limit: int

    loss_direction: ClassVar[str]
    backs_off: ClassVar[bool] = True
    needs: ClassVar[frozenset[str]] = frozenset({"greedy_gain"})

    def __post_init__(self) -> None:
        ranges.integer("limit", self.limit, "[1, inf)")

    def init(self, population: Population) -> Stateless:
        """Return the empty state, for the clients of `population`.

        Raises:
            OptionError: the population exceeds `limit`.
        """
        reject_large_population(self.limit, population.n_clients, "which all train in every round")
        return Stateless()

    def plan(self, state: Stateless, ctx: RoundContext) -> Sequence[Probe]:
        """Return the query for each available client's position in a simulated cohort; () if all can be selected."""
        if len(ctx.available) <= ctx.cohort:
            return ()
        return (Probe("greedy_gain", ctx.available, {"cohort": ctx.cohort, "direction": self.loss_direction}),)

    def select(
        self, state: Stateless, ctx: RoundContext, probes: Mapping[str, ProbeResult]
    ) -> tuple[Selection, Stateless]:
        """Choose the clients that the simulated training added to the cohort first; `probes` holds the answers."""
        scores = find_answers(probes, "greedy_gain").dense(ctx.n_clients)
        scores[ctx.available] = np.where(np.isfinite(scores[ctx.available]), scores[ctx.available], -np.inf)
        return Selection(top(scores, ctx.available, ctx.cohort, ctx.rng), scores), state
