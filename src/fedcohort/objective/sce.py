"""Symmetric cross-entropy: cross-entropy plus its reverse, against label noise (Wang et al. 2019).

Wang, Ma, Chen, Luo, Yi, Bailey, "Symmetric Cross Entropy for Robust Learning with Noisy Labels", ICCV 2019, arXiv
1908.06112; with the constants of RHFL (Fang and Ye, CVPR 2022).

    L:  a CE + b RCE
    CE:  -ln p_y
    RCE:  -A (1 - p_y), A = ln 1e-4

With a = 1, b = beta, A = -4 it is FLASH's loss at alpha = 0.

Departures from the paper: RHFL's code also clamps p at 1e-7, which changes only gradients at smaller p. The log-softmax
needs no clamp.
"""

from dataclasses import dataclass

from jaxtyping import Float, Int64
from torch import Tensor
from torch.nn import functional as F

from fedcohort import ranges
from fedcohort.maths.sce import symmetric_ce
from fedcohort.objective.base import Objective


@dataclass(frozen=True)
class Sce(Objective):
    """Symmetric cross-entropy, a local objective against label noise.

    Attributes:
        a: weight of the cross-entropy.
        b: weight of the reverse cross-entropy.
        A: number that stands for ln 0 in the reverse cross-entropy, negative.
    """

    a: float
    b: float
    A: float

    def __post_init__(self) -> None:
        ranges.number("a", self.a, "[0, inf)")
        ranges.number("b", self.b, "[0, inf)")
        ranges.number("A", self.A, "(-inf, 0)")

    @property
    def max_bounded_loss(self) -> float:
        return -self.b * self.A

    def per_sample(
        self, logits: Float[Tensor, "b c"], labels: Int64[Tensor, "b"], reference_probs: Float[Tensor, "b c"] | None
    ) -> tuple[Float[Tensor, "b"], Float[Tensor, "b"]]:
        log_probs = F.log_softmax(logits, 1)
        return symmetric_ce(log_probs, labels, self.a, self.b, self.A), F.nll_loss(log_probs, labels, reduction="none")
