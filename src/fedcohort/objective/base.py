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
    """A local objective, the loss of a mini-batch that clients minimise.

    Attributes:
        plain: whether the objective is the mean cross-entropy, whose gradient is known in closed form.
        uses_reference: whether the objective needs the predictions of the received model on the samples that a client
            trains on.
        minimises_mean: whether clients minimise the mean over samples, so that `transform_mean` changes nothing.
        robust_loss: constants alpha, beta and A of FLASH's robust loss; empty for other objectives.
        max_bounded_loss: largest value of the objective's bounded terms for one sample, in nats; 0 without such terms.
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
            labels: class of each sample, [b].
            reference_probs: class probabilities of the received model in eval mode, fixed during the round, [b, C];
                None unless `uses_reference`.
        """

    def transform_mean(self, mean_loss: Float[Tensor, "*k"]) -> Float[Tensor, "*k"]:
        """Return the loss that clients minimise in nats, computed from the mean of `per_sample`; by default the mean.

        Args:
            mean_loss: mean of the objective over the mini-batch, or over one mini-batch of each of k clients, in nats.
        """
        return mean_loss
