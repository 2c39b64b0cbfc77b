"""pow-d: Cho, Wang, Joshi, "Client Selection in Federated Learning: Convergence Analysis and Power-of-Choice Selection
Strategies" (2020), as UCB-CS (Sec. II-B) and FedDiverse (Sec. II-C) describe it.

    A = d available clients, drawn one after the other in proportion to n_k
    F_k(w_t) = mean cross-entropy over all training samples of k, asked of k in A before the selection
    S = the m clients of A with the largest F_k(w_t)

Departures from the paper:
- FedDiverse draws A uniformly (candidate=uniform); the original draws by data size (candidate=size, the default);
- a client whose loss is not finite is taken only where too few others answered;
- a round with fewer than d available clients polls all of them;
- where fewer than m candidates answer, other available clients fill the cohort, at random.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedcohort import ranges
from fedcohort.selector.base import Stateless, answers, draw, top
from fedcohort.types import Population, Probe, ProbeResult, RoundContext, RoundOutcome, Selection


@dataclass(frozen=True)
class PowD:
    """The clients of largest loss among `candidates` (null: twice the cohort), drawn by "size" or "uniform"."""

    candidates: int | None
    candidate: str

    advises: ClassVar[bool] = False

    def __post_init__(self) -> None:
        ranges.integer("candidates", self.candidates, "[1, inf)", optional=True)
        ranges.choice("candidate", self.candidate, "size", "uniform")

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"loss", "n_train"} if self.candidate == "size" else {"loss"})

    def init(self, population: Population) -> Stateless:
        """Raises `OptionError` where d is less than m, or more than K."""
        m, K = population.cohort, population.n_clients
        if self.candidates is not None and not m <= self.candidates <= K:
            allowed = f"an integer in [{m}, {K}], from the cohort to all clients, or null"
            raise ranges.refuse("candidates", allowed, self.candidates)
        return Stateless()

    def plan(self, state: Stateless, ctx: RoundContext) -> Sequence[Probe]:
        d = max(ctx.cohort, 2 * ctx.cohort if self.candidates is None else self.candidates)
        by_size = self.candidate == "size"
        weights = ctx.signals["n_train"].astype(float) if by_size else np.ones(ctx.n_clients)
        return (Probe("loss", draw(weights, ctx.available, d, ctx.rng)),)

    def select(
        self, state: Stateless, ctx: RoundContext, probes: Mapping[str, ProbeResult]
    ) -> tuple[Selection, Stateless]:
        polled = answers(probes, "loss")
        loss = polled.dense(ctx.n_clients)
        scores = np.where(np.isfinite(loss), loss, -np.inf)
        clients = top(scores, polled.clients, ctx.cohort, ctx.rng)
        others = np.setdiff1d(ctx.available, clients)
        filling = draw(np.ones(ctx.n_clients), others, ctx.cohort - len(clients), ctx.rng)
        scores[np.setdiff1d(np.arange(ctx.n_clients), polled.clients)] = np.nan
        return Selection(np.sort(np.concatenate([clients, filling])), scores), state

    def observe(self, state: Stateless, outcome: RoundOutcome) -> tuple[None, Stateless]:
        return None, state

    def trace(self, state: Stateless) -> Mapping[str, tuple[float, float]]:
        return {}
