"""Generalised cross-entropy, a loss between cross-entropy and the mean absolute error.

Zhang and Sabuncu, "Generalized Cross Entropy Loss for Training Deep Neural Networks with Noisy Labels" (2018), Eq. 6.

    L_q = (1 - p_y^q) / q,    dL_q = p_y^q dCE     q -> 0 is cross-entropy, q = 1 the mean absolute error (halved)

Samples of which the model is uncertain have smaller weights, so that it mainly learns easy samples.
"""

from jaxtyping import Float, Int
from torch import Tensor


def generalised_ce(log_probs: Float[Tensor, "b c"], labels: Int[Tensor, "b"], q: float) -> Float[Tensor, "b"]:
    """Return the generalised cross-entropy (1 - p^q) / q of each sample, p the probability of its label, [b].

    Args:
        log_probs: log-probabilities of the classes, [b, C].
        labels: class of each sample, [b].
        q: exponent in (0, 1]; near 0 the loss is the cross-entropy, at 1 it is 1 - p.
    """
    q = max(q, 1e-30)  # a smaller one underflows in float32, and the loss is the cross-entropy long before
    return -(q * log_probs.gather(1, labels[:, None])[:, 0]).expm1() / q
