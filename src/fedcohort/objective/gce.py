"""Generalised cross-entropy: samples with implausible labels have smaller gradients (Zhang and Sabuncu 2018).

Zhang, Sabuncu, "Generalized Cross Entropy Loss for Training Deep Neural Networks with Noisy Labels", NeurIPS 2018,
arXiv 1805.07836, Eq. 6.

    L_q:  (1 - p_y^q) / q
    gradient in the logits:  p_y^q (p - e_y)

A larger q gives implausible labels less weight; q -> 0 is cross-entropy, q = 1 the mean absolute error.

Departures from the paper: the truncated variant (Sec. 3.3) is not implemented.
"""

from dataclasses import dataclass

from jaxtyping import Float, Int64
from torch import Tensor
from torch.nn import functional as F

from fedcohort import ranges
from fedcohort.maths.gce import generalised_ce
from fedcohort.objective.base import Objective


@dataclass(frozen=True)
class Gce(Objective):
    """Generalised cross-entropy, a local objective that gives implausible labels smaller gradients.

    Attributes:
        q: exponent in (0, 1]; near 0 the loss is the cross-entropy, for 1 the mean absolute error.
    """

    q: float

    def __post_init__(self) -> None:
        ranges.number("q", self.q, "(0, 1]")

    @property
    def max_bounded_loss(self) -> float:
        return 1 / self.q

    def per_sample(
        self, logits: Float[Tensor, "b c"], labels: Int64[Tensor, "b"], reference_probs: Float[Tensor, "b c"] | None
    ) -> tuple[Float[Tensor, "b"], Float[Tensor, "b"]]:
        log_probs = F.log_softmax(logits, 1)
        return generalised_ce(log_probs, labels, self.q), F.nll_loss(log_probs, labels, reduction="none")
