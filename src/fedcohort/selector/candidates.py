"""Power of choice: what pow-d, cpow-d and rpow-d share. d candidates are drawn, the m of largest loss are chosen."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fedcohort import ranges
from fedcohort.component import CLEAN_LABELS, Requirement
from fedcohort.selector.base import Selector, Stateless, answers, draw, top
from fedcohort.types import Ids, Population, Probe, ProbeResult, RoundContext, Selection, Values


@dataclass(frozen=True)
class Candidates:
    """The options of the draw of candidates.

    Attributes:
        candidates: d, None for twice the cohort.
        candidate: weights of the draw, "size" (numbers of training samples) or "uniform".
    """

    candidates: int | None
    candidate: str

    def __post_init__(self) -> None:
        ranges.integer("candidates", self.candidates, "[1, inf)", optional=True)
        ranges.choice("candidate", self.candidate, "size", "uniform")

    def check(self, population: Population) -> None:
        """Raise `OptionError` where d is less than m, or more than K."""
        m, K = population.cohort, population.n_clients
        if self.candidates is not None and not m <= self.candidates <= K:
            allowed = f"an integer in [{m}, {K}], from the cohort to all clients, or null"
            raise ranges.refuse("candidates", allowed, self.candidates)

    def needs_with(self, signal: str) -> frozenset[str]:
        """Return the signals that are read, `signal` among them."""
        return frozenset({signal, "n_train"} if self.candidate == "size" else {signal})

    def weights(self, ctx: RoundContext) -> Values:
        """Return the weights of the draw, [n_clients]."""
        return ctx.signals["n_train"].astype(float) if self.candidate == "size" else np.ones(ctx.n_clients)

    def draw_candidates(self, ctx: RoundContext) -> Ids:
        """Draw d available clients, one after the other; all of them where there are fewer."""
        d = max(ctx.cohort, 2 * ctx.cohort if self.candidates is None else self.candidates)
        return draw(self.weights(ctx), ctx.available, d, ctx.rng)


@dataclass(frozen=True)
class PowerOfChoice(Candidates, Selector[Stateless]):
    """A selector that queries its candidates for a loss of w_t.

    Attributes:
        signal: the loss.
    """

    signal: ClassVar[str]
    backs_off: ClassVar[bool] = True
    recommendations: ClassVar[frozenset[Requirement]] = frozenset({CLEAN_LABELS})

    @property
    def needs(self) -> frozenset[str]:
        return self.needs_with(self.signal)

    def options(self, ctx: RoundContext) -> Mapping[str, Any]:
        """Return the options of the query."""
        return {}

    def init(self, population: Population) -> Stateless:
        self.check(population)
        return Stateless()

    def plan(self, state: Stateless, ctx: RoundContext) -> Sequence[Probe]:
        polled = self.draw_candidates(ctx)
        return (Probe(self.signal, polled, self.options(ctx)),)

    def select(
        self, state: Stateless, ctx: RoundContext, probes: Mapping[str, ProbeResult]
    ) -> tuple[Selection, Stateless]:
        """Choose the m largest finite losses, and other clients at random where too few answered."""
        polled = answers(probes, self.signal)
        loss = polled.dense(ctx.n_clients)
        scores = np.where(np.isfinite(loss), loss, -np.inf)
        clients = top(scores, polled.clients, ctx.cohort, ctx.rng)
        others = np.setdiff1d(ctx.available, clients, assume_unique=True)
        filling = draw(np.ones(ctx.n_clients), others, ctx.cohort - len(clients), ctx.rng)
        unasked = np.ones(ctx.n_clients, bool)
        unasked[polled.clients] = False
        scores[unasked] = np.nan
        return Selection(np.sort(np.concatenate([clients, filling])), scores), state
