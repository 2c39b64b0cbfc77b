"""The contract of a local objective: a loss per sample, with the plain cross-entropy beside it.

Selectors, sample selectors and fairness weights read the cross-entropy, so that what clients report stays comparable
whatever they minimise. The engine takes the mean over the mini-batch.
"""

from typing import ClassVar, Protocol

from jaxtyping import Float, Int64
from torch import Tensor


class Objective(Protocol):
    """uses_reference: it needs w_t's own predictions on the samples that a client trains on."""

    uses_reference: ClassVar[bool]

    def per_sample(
        self, logits: Float[Tensor, "b c"], y: Int64[Tensor, "b"], reference: Float[Tensor, "b c"] | None
    ) -> tuple[Float[Tensor, "b"], Float[Tensor, "b"]]:
        """(objective, cross-entropy) of each sample, in nats.

        reference: probabilities of w_t in eval mode, fixed during the round, where `uses_reference`.
        """
        ...
