"""Symmetric cross-entropy: Wang et al., "Symmetric Cross Entropy for Robust Learning with Noisy Labels" (2019), Eq. 7.

    L = a CE + b RCE,   CE = -ln p_y,   RCE = -A (1 - p_y),   A < 0 stands for ln 0

The reverse term is bounded, and its sum over all labels does not depend on p, so that wrong labels have less effect.
"""

from jaxtyping import Float, Int
from torch import Tensor


def symmetric_ce(
    log_probs: Float[Tensor, "b c"], labels: Int[Tensor, "b"], a: float, b: float, A: float
) -> Float[Tensor, "b"]:
    """Return a CE + b RCE, the symmetric cross-entropy of each sample, in nats, [b].

    Args:
        log_probs: log-probabilities of the classes, [b, C].
        labels: class y of each sample, [b].
        a: weight of the cross-entropy CE = -ln p_y.
        b: weight of the reverse cross-entropy RCE = -A (1 - p_y).
        A: negative number that stands for ln 0.
    """
    log_py = log_probs.gather(1, labels[:, None])[:, 0]
    return -a * log_py - b * A * (1 - log_py.exp())
