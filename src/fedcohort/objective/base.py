"""The contract of a local objective: a loss per sample, with the cross-entropy of the sample.

Selectors, sample selections and fairness weights read the cross-entropy, so that reports are comparable whatever
clients minimise. The engine takes the mean over the mini-batch, and minimises `transform_mean` of it.
"""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Protocol

from jaxtyping import Float, Int64
from torch import Tensor

from fedcohort.component import Component


class Objective(Component, Protocol):
    """A local objective: the loss of a mini-batch that clients minimise.

    Attributes:
        plain: whether `per_sample` is the cross-entropy and `transform_mean` the mean itself, so that engines know its
            gradient.
        uses_reference: whether it needs the predictions of w_t on the samples that a client trains on.
        minimises_mean: whether the mean itself is minimised, so that `transform_mean` changes nothing.
        robust_loss: the weights alpha, beta and A of the robust loss; empty for other objectives.
        max_bounded_loss: the largest value of its bounded terms for one sample, in nats; 0 without such terms.
    """

    @property
    def plain(self) -> bool:
        return False

    @property
    def uses_reference(self) -> bool:
        return False

    @property
    def minimises_mean(self) -> bool:
        return True

    @property
    def robust_loss(self) -> Mapping[str, float]:
        return {}

    @property
    def max_bounded_loss(self) -> float:
        return 0.0

    @abstractmethod
    def per_sample(
        self, logits: Float[Tensor, "b c"], labels: Int64[Tensor, "b"], reference_probs: Float[Tensor, "b c"] | None
    ) -> tuple[Float[Tensor, "b"], Float[Tensor, "b"]]:
        """Return the objective and the cross-entropy of each sample, [b] both, in nats.

        Args:
            logits: logits of the network, [b, C].
            labels: labels, [b].
            reference_probs: probabilities of w_t in eval mode, fixed during the round, where `uses_reference`.
        """

    def transform_mean(self, mean_loss: Float[Tensor, "*k"]) -> Float[Tensor, "*k"]:
        """Return the function of the objective's mean over each mini-batch that is minimised."""
        return mean_loss
