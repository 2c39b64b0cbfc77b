"""cpow-d: pow-d with the losses of one mini-batch per candidate, which costs clients less (Cho et al. 2022).

Cho, Wang, Joshi, "Towards Understanding Biased Client Selection in Federated Learning", AISTATS 2022; preprint arXiv
2010.01243. UCB-CS (Sec. II-B) describes it as the computation-efficient variant of pow-d.

    A:  d available clients, drawn successively in proportion to n_k
    query:  l_k, the mean cross-entropy of w_t on one random mini-batch of b samples of k, for k in A
    S:  the m clients of A with the largest l_k

Departures from the paper:
- The mini-batch is drawn again in each round, without replacement; a client with fewer than b samples uses all of them.
- Weights of the mean, losses that are not finite, missing answers and failures: as in `powd.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from fedcohort import ranges
from fedcohort.selector.candidates import PowerOfChoice
from fedcohort.types import RoundContext


@dataclass(frozen=True)
class CPowD(PowerOfChoice):
    """cpow-d, a client selector: the clients with the largest mini-batch loss among random candidates.

    Attributes:
        batch: number of samples in the mini-batch whose loss a candidate reports.
    """

    batch: int

    signal: ClassVar[str] = "batch_loss"

    def __post_init__(self) -> None:
        super().__post_init__()
        ranges.integer("batch", self.batch, "[1, inf)")

    def query_options(self, ctx: RoundContext) -> Mapping[str, Any]:
        return {"batch": self.batch, "key": int(ctx.rng.integers(2**62))}
