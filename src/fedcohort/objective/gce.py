"""Generalised cross-entropy: samples with implausible labels pull less (Zhang and Sabuncu 2018, Eq. 6).

Zhang and Sabuncu, "Generalized Cross Entropy Loss for Training Deep Neural Networks with Noisy Labels" (2018).

    L_q = (1 - p_y^q) / q,   logit gradient p_y^q (p - e_y)

Samples whose label the model finds implausible pull less, the more so the larger q; q -> 0 is cross-entropy, q = 1 the
mean absolute error.

Departures from the paper: the truncated variant (its Sec. 3.3) is left out.
"""

from dataclasses import dataclass

from jaxtyping import Float, Int64
from torch import Tensor
from torch.nn import functional as F

from fedcohort import ranges
from fedcohort.maths.gce import gce
from fedcohort.objective.base import Objective


@dataclass(frozen=True)
class Gce(Objective):
    """The loss, with its option.

    Attributes:
        q: from cross-entropy (near 0) to the mean absolute error (1).
    """

    q: float

    def __post_init__(self) -> None:
        ranges.number("q", self.q, "(0, 1]")

    @property
    def reach(self) -> float:
        return 1 / self.q

    def per_sample(
        self, logits: Float[Tensor, "b c"], y: Int64[Tensor, "b"], reference: Float[Tensor, "b c"] | None
    ) -> tuple[Float[Tensor, "b"], Float[Tensor, "b"]]:
        logp = F.log_softmax(logits, 1)
        return gce(logp, y, self.q), F.nll_loss(logp, y, reduction="none")
