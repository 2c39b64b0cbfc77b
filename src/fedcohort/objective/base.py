"""The contract of a local objective: a loss per sample, with the plain cross-entropy beside it.

Selectors, sample selectors and fairness weights read the cross-entropy, so that what clients report stays comparable
whatever they minimise. The engine takes the mean over the mini-batch, and minimises `outer` of it.
"""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Protocol

from jaxtyping import Float, Int64
from torch import Tensor

from fedcohort.component import Component


class Objective(Component, Protocol):
    """The loss of a mini-batch.

    Attributes:
        plain: whether `per_sample` is the cross-entropy and `outer` the mean itself: engines know its gradient.
        uses_reference: whether it needs w_t's own predictions on the samples that a client trains on.
        averages: whether what is minimised is the mean itself: `outer` changes nothing.
        robust_loss: the weights alpha, beta and A where it is the robust loss; empty otherwise.
        reach: the most that its bounded terms come to for one sample, in nats; 0 without such terms.
    """

    @property
    def plain(self) -> bool:
        return False

    @property
    def uses_reference(self) -> bool:
        return False

    @property
    def averages(self) -> bool:
        return True

    @property
    def robust_loss(self) -> Mapping[str, float]:
        return {}

    @property
    def reach(self) -> float:
        return 0.0

    @abstractmethod
    def per_sample(
        self, logits: Float[Tensor, "b c"], y: Int64[Tensor, "b"], reference: Float[Tensor, "b c"] | None
    ) -> tuple[Float[Tensor, "b"], Float[Tensor, "b"]]:
        """Return the objective and the cross-entropy of each sample, [b] both, in nats.

        reference: probabilities of w_t in eval mode, fixed during the round, where `uses_reference`.
        """

    def outer(self, mean: Float[Tensor, "*k"]) -> Float[Tensor, "*k"]:
        """What is minimised, of the objective's mean over each mini-batch."""
        return mean
