"""FLASH's noise-robust loss (Chang et al. 2024, Eq. 1-3).

Chang, Ahmed, Krishnamurthy, Guler, Swami, Oymak, Roy-Chowdhury, "FLASH: Federated Learning Across Simultaneous
Heterogeneities", arXiv 2402.08769.

    L:  CE + alpha CE_P + beta RCE
    CE:  -ln p_y
    CE_P:  -sum_k z_k ln p_k, z = softmax(w_t(a)) the received model's prediction, fixed during the round
    RCE:  -A (1 - p_y), A < 0
    gradient in the logits:  (p - e_y) + alpha (p - z) - beta A p_y (p - e_y)

The last term of the gradient vanishes for samples whose label the model finds implausible.

Departures from the paper:
- z comes from the broadcast model ("z := p(a; w^t)"). The alpha term has no gradient at the first step, and then keeps
  the model near w_t. With the moving model it would be entropy minimisation.
- No final (alpha, beta) is named. (0.1, 4) is the pair that Fig. 5 fixes on CIFAR-10 while varying the other, (1, 8) on
  FEMNIST.
- The forward pass for z over the client's samples, once a round, is charged neither in FLOPs nor in seconds.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Float, Int64
from torch import Tensor
from torch.nn import functional as F

from fedcohort import ranges
from fedcohort.objective.base import Objective


@dataclass(frozen=True)
class FlashRobust(Objective):
    """FLASH's noise-robust loss, a local objective: cross-entropy with pseudo-labels and reverse cross-entropy.

    Attributes:
        alpha: weight of the pseudo-label term, the cross-entropy to the received model's predictions.
        beta: weight of the reverse cross-entropy.
        A: number that stands for ln 0 in the reverse cross-entropy, negative.
    """

    alpha: float
    beta: float
    A: float

    uses_reference: ClassVar[bool] = True

    def __post_init__(self) -> None:
        ranges.number("alpha", self.alpha, "[0, inf)")
        ranges.number("beta", self.beta, "[0, inf)")
        ranges.number("A", self.A, "(-inf, 0)")

    @property
    def robust_loss(self) -> Mapping[str, float]:
        return {"alpha": self.alpha, "beta": self.beta, "A": self.A}

    @property
    def max_bounded_loss(self) -> float:
        return -self.beta * self.A

    def per_sample(
        self, logits: Float[Tensor, "b c"], labels: Int64[Tensor, "b"], reference_probs: Float[Tensor, "b c"] | None
    ) -> tuple[Float[Tensor, "b"], Float[Tensor, "b"]]:
        if reference_probs is None:
            raise ValueError("FLASH's loss needs the received model's predictions: pass `reference_probs`, [b, c]")
        log_probs = F.log_softmax(logits, 1)
        log_py = log_probs.gather(1, labels[:, None])[:, 0]
        pseudo_label_loss = -(reference_probs * log_probs).sum(1)
        return -log_py + self.alpha * pseudo_label_loss - self.beta * self.A * (1 - log_py.exp()), -log_py
