"""cpow-d: pow-d with losses of one mini-batch each, which is cheaper for clients (Cho et al. 2020).

The computation-efficient variant of pow-d: Cho, Wang, Joshi, "Client Selection in Federated Learning: Convergence
Analysis and Power-of-Choice Selection Strategies" (2020), as UCB-CS (Sec. II-B) places it.

    A = d available clients, drawn one after the other in proportion to n_k
    l_k = mean cross-entropy of w_t on one random mini-batch of b samples of k, asked of k in A before the selection
    S = the m clients of A with the largest l_k

Departures from the paper:
- the mini-batch is drawn anew each round, without replacement; a client with fewer than b samples uses them all;
- where losses are not finite, fewer answer than are wanted, or clients fail again and again, it does what pow-d does;
- its mean of models is a plain one, as pow-d's (`powd.py`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from fedcohort import ranges
from fedcohort.part import CLEAN_LABELS, Want
from fedcohort.selector import candidates
from fedcohort.selector.base import Selector, Stateless, answers
from fedcohort.types import Population, Probe, ProbeResult, RoundContext, Selection


@dataclass(frozen=True)
class CPowD(Selector[Stateless]):
    """The clients of largest loss on `batch` samples among `candidates`; null is twice the cohort.

    candidate: candidates are drawn by "size" or "uniform".
    """

    candidates: int | None
    candidate: str
    batch: int

    backs_off: ClassVar[bool] = True
    prefers: ClassVar[frozenset[Want]] = frozenset({CLEAN_LABELS})

    def __post_init__(self) -> None:
        ranges.integer("candidates", self.candidates, "[1, inf)", optional=True)
        ranges.choice("candidate", self.candidate, "size", "uniform")
        ranges.integer("batch", self.batch, "[1, inf)")

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"batch_loss", "n_train"} if self.candidate == "size" else {"batch_loss"})

    def init(self, population: Population) -> Stateless:
        """Raises `OptionError` where d is less than m, or more than K."""
        candidates.check(self.candidates, population)
        return Stateless()

    def plan(self, state: Stateless, ctx: RoundContext) -> Sequence[Probe]:
        polled = candidates.draw_candidates(self.candidates, self.candidate, ctx)
        return (Probe("batch_loss", polled, {"batch": self.batch, "key": int(ctx.rng.integers(2**62))}),)

    def select(
        self, state: Stateless, ctx: RoundContext, probes: Mapping[str, ProbeResult]
    ) -> tuple[Selection, Stateless]:
        return candidates.largest(answers(probes, "batch_loss"), ctx), state
