"""robust_loss: FLASH's noise-robust loss of w_t on a client's training set (FLASH Eq. 3).

    loss:  L = CE(T) + alpha CE(P) + beta RCE(T), RCE = -A (1 - p_y), A < 0

At w_t itself the pseudo-labels are the model's own probabilities, so that CE(P) is the entropy of the prediction.
"""

from collections.abc import Mapping

from jaxtyping import Float, Int
from torch import Tensor

from fedcohort.signal.base import Measured


def robust_loss(
    log_probs: Float[Tensor, "b c"], labels: Int[Tensor, "b"], options: Mapping[str, float]
) -> Float[Tensor, "b"]:
    """Return FLASH's noise-robust loss (Eq. 3) of each sample, in nats, [b].

    Args:
        log_probs: log-probabilities of w_t.
        labels: labels of the samples.
        options: `alpha`, weight of the pseudo-labels, `beta`, weight of the reverse cross-entropy, and `A`, the value
            of log 0.
    """
    log_py = log_probs.gather(1, labels[:, None])[:, 0]
    entropy = -(log_probs.exp() * log_probs).sum(1)
    return -log_py + options["alpha"] * entropy - options["beta"] * options["A"] * (1 - log_py.exp())


signal = Measured(
    reveals="how well the global model fits a client's training data, and how sure it is of it",
    bytes_up=4,
    split="train",
    per_sample=robust_loss,
)
