"""val_accuracy: accuracy of w_t on a client's validation set V_i, in eval mode, in [0, 1]."""

from collections.abc import Mapping

from jaxtyping import Float, Int
from torch import Tensor

from fedcohort.signal.base import Measured


def is_correct(
    log_probs: Float[Tensor, "b c"], labels: Int[Tensor, "b"], options: Mapping[str, float]
) -> Float[Tensor, "b"]:
    """Return 1 for each sample whose most probable class is its label, and 0 for the others, [b].

    Args:
        log_probs: log-probabilities of w_t.
        labels: class of each sample.
        options: not used; the signal has no options.
    """
    return (log_probs.argmax(1) == labels).to(log_probs.dtype)


signal = Measured(
    reveals="how well the global model fits a client's validation data", bytes_up=4, split="val", per_sample=is_correct
)
