"""Power of choice, shared by pow-d, cpow-d and rpow-d: draw d candidates, choose the m with the largest losses."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fedcohort import ranges
from fedcohort.component import CLEAN_LABELS, Requirement
from fedcohort.selector.base import Selector, Stateless, draw, find_answers, top
from fedcohort.types import Ids, Population, Probe, ProbeResult, RoundContext, Selection, Values


@dataclass(frozen=True)
class CandidateOptions:
    """Options of power of choice: the number of candidate clients, and the weights with which they are drawn.

    Attributes:
        candidates: number of candidates; None for twice the cohort.
        candidate: weights of the draw of candidates: "size" (number of training samples) or "uniform".
    """

    candidates: int | None
    candidate: str

    def __post_init__(self) -> None:
        ranges.integer("candidates", self.candidates, "[1, inf)", allow_null=True)
        ranges.choice("candidate", self.candidate, "size", "uniform")

    def check_candidate_count(self, population: Population) -> None:
        """Raise `OptionError` if `candidates` is below the cohort or above the number of clients of `population`."""
        cohort, n_clients = population.cohort, population.n_clients
        if self.candidates is not None and not cohort <= self.candidates <= n_clients:
            allowed_text = f"an integer in [{cohort}, {n_clients}], from the cohort to all clients, or null"
            raise ranges.range_error("candidates", allowed_text, self.candidates)

    def loss_signals_to_read(self, signal: str) -> frozenset[str]:
        """Return the names of the signals to read: `signal`, a loss, and n_train if candidates are drawn by size."""
        return frozenset({signal, "n_train"} if self.candidate == "size" else {signal})

    def candidate_weights(self, ctx: RoundContext) -> Values:
        """Return each client's weight in the draw of candidates of round `ctx`, float64 [n_clients]."""
        return ctx.signals["n_train"].astype(float) if self.candidate == "size" else np.ones(ctx.n_clients)

    def draw_candidates(self, ctx: RoundContext) -> Ids:
        """Draw candidates out of the available clients of round `ctx`, all if there are too few; return sorted ids."""
        n_candidates = max(ctx.cohort, 2 * ctx.cohort if self.candidates is None else self.candidates)
        return draw(self.candidate_weights(ctx), ctx.available, n_candidates, ctx.rng)


@dataclass(frozen=True)
class PowerOfChoice(CandidateOptions, Selector[Stateless]):
    """A power-of-choice selector, which queries random candidates for their loss of the round's global model.

    Attributes:
        signal: name of the loss signal.
    """

    signal: ClassVar[str]
    backs_off: ClassVar[bool] = True
    recommendations: ClassVar[frozenset[Requirement]] = frozenset({CLEAN_LABELS})

    @property
    def needs(self) -> frozenset[str]:
        return self.loss_signals_to_read(self.signal)

    def query_options(self, ctx: RoundContext) -> Mapping[str, Any]:
        """Return the options of the query of the loss signal in round `ctx`; {} by default."""
        return {}

    def init(self, population: Population) -> Stateless:
        self.check_candidate_count(population)
        return Stateless()

    def plan(self, state: Stateless, ctx: RoundContext) -> Sequence[Probe]:
        return (Probe(self.signal, self.draw_candidates(ctx), self.query_options(ctx)),)

    def select(
        self, state: Stateless, ctx: RoundContext, probes: Mapping[str, ProbeResult]
    ) -> tuple[Selection, Stateless]:
        """Choose the queried clients with the largest finite losses; fill the cohort up at random if too few answered.

        `probes` holds the answers by signal name. The scores are the losses, -inf for one that is not finite, NaN for
        clients that did not answer.
        """
        loss_answers = find_answers(probes, self.signal)
        losses = np.where(np.isfinite(loss_answers.values), loss_answers.values, -np.inf)
        scores = ProbeResult(loss_answers.clients, losses).dense(ctx.n_clients)
        clients = top(scores, loss_answers.clients, ctx.cohort, ctx.rng)
        unchosen_ids = np.setdiff1d(ctx.available, clients, assume_unique=True)
        extra_ids = draw(np.ones(ctx.n_clients), unchosen_ids, ctx.cohort - len(clients), ctx.rng)
        return Selection(np.sort(np.concatenate([clients, extra_ids])), scores), state
