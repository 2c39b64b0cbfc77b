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

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from fedcohort import ranges
from fedcohort.selector.candidates import PowerOfChoice
from fedcohort.types import RoundContext


@dataclass(frozen=True)
class CPowD(PowerOfChoice):
    """The clients of largest loss on `batch` samples among the candidates."""

    batch: int

    signal: ClassVar[str] = "batch_loss"

    def __post_init__(self) -> None:
        super().__post_init__()
        ranges.integer("batch", self.batch, "[1, inf)")

    def options(self, ctx: RoundContext) -> Mapping[str, Any]:
        return {"batch": self.batch, "key": int(ctx.rng.integers(2**62))}
