"""Cross-entropy: -ln p_y.

Departures from the paper: none.
"""

from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Float, Int64
from torch import Tensor
from torch.nn import functional as F

from fedcohort.objective.base import Objective


@dataclass(frozen=True)
class CrossEntropy(Objective):
    """The cross-entropy as a local objective; it has no options."""

    plain: ClassVar[bool] = True

    def per_sample(
        self, logits: Float[Tensor, "b c"], labels: Int64[Tensor, "b"], reference_probs: Float[Tensor, "b c"] | None
    ) -> tuple[Float[Tensor, "b"], Float[Tensor, "b"]]:
        cross_entropy = F.cross_entropy(logits, labels, reduction="none")
        return cross_entropy, cross_entropy
