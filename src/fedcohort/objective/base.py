"""The contract of a local objective: a loss per sample, with the plain cross-entropy beside it.

Selectors, sample selectors and fairness weights read the cross-entropy, so that what clients report stays comparable
whatever they minimise. The engine takes the mean over the mini-batch, and minimises `outer` of it.
"""

from typing import Protocol

from jaxtyping import Float, Int64
from torch import Tensor


class Objective(Protocol):
    """uses_reference: it needs w_t's own predictions on the samples that a client trains on.

    reach: the most that its bounded terms come to for one sample, in nats; 0 without such terms.
    A class may have `prefers` and `remarks`, as aggregators and selectors. One whose `per_sample` is the cross-entropy
    and whose `outer` is the mean itself says so (`plain = True`): engines know its gradient by heart.
    """

    @property
    def uses_reference(self) -> bool: ...

    @property
    def reach(self) -> float: ...

    def per_sample(
        self, logits: Float[Tensor, "b c"], y: Int64[Tensor, "b"], reference: Float[Tensor, "b c"] | None
    ) -> tuple[Float[Tensor, "b"], Float[Tensor, "b"]]:
        """(objective, cross-entropy) of each sample, in nats.

        reference: probabilities of w_t in eval mode, fixed during the round, where `uses_reference`.
        """
        ...

    def outer(self, mean: Float[Tensor, "*k"]) -> Float[Tensor, "*k"]:
        """What is minimised, of the objective's mean over each mini-batch."""
        ...
