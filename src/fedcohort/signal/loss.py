"""loss: F_k(w_t), mean cross-entropy of the global model on a client's whole training set, in eval mode."""

from collections.abc import Mapping

from jaxtyping import Float, Int
from torch import Tensor

from fedcohort.signal.base import Measured


def cross_entropy(
    log_probs: Float[Tensor, "b c"], labels: Int[Tensor, "b"], options: Mapping[str, float]
) -> Float[Tensor, "b"]:
    """Return the cross-entropy -ln p_y of each sample, in nats, [b].

    Args:
        log_probs: log-probabilities of w_t.
        labels: class of each sample.
        options: not used; the signal has no options.
    """
    return -log_probs.gather(1, labels[:, None])[:, 0]


signal = Measured(
    reveals="how well the global model fits a client's training data",
    bytes_up=4,
    split="train",
    per_sample=cross_entropy,
)
