"""sce_loss: mean symmetric cross-entropy of w_t on a client's training set, with the constants of RHFL's code.

    loss:  L = a CE + b RCE, RCE = -A (1 - p_y), a = 0.1, b = 1, A = ln 1e-4

The constants are fixed, so that it is the same whatever clients minimise: objective.a, b and A do not change it.
"""

import math
from collections.abc import Mapping

from jaxtyping import Float, Int
from torch import Tensor

from fedcohort.maths.sce import symmetric_ce
from fedcohort.signal.base import Measured

CE_WEIGHT, RCE_WEIGHT, LOG_OF_ZERO = 0.1, 1.0, math.log(1e-4)


def symmetric_loss(
    log_probs: Float[Tensor, "b c"], labels: Int[Tensor, "b"], options: Mapping[str, float]
) -> Float[Tensor, "b"]:
    """Return the symmetric cross-entropy of each sample with RHFL's constants, in nats, [b].

    Args:
        log_probs: log-probabilities of w_t.
        labels: class of each sample.
        options: not used; the signal has no options.
    """
    return symmetric_ce(log_probs, labels, CE_WEIGHT, RCE_WEIGHT, LOG_OF_ZERO)


signal = Measured(
    reveals="how well the global model fits a client's training data",
    bytes_up=4,
    split="train",
    per_sample=symmetric_loss,
)
