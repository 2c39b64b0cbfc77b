"""Distillation: a network learns to predict what others predict (Hinton et al. 2015).

    loss = mean over the batch of KL(t || softmax(s / tau)),   t: the teachers' probabilities, s: the student's logits

Networks stay in eval mode: batch-norm statistics keep the clients' domain, and dropout draws nothing.
"""

from collections.abc import Iterator

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from fedcohort.types import Ids

SAME = 1e-6  # probabilities closer than this are the same


def distance(target: Float[Tensor, "b c"], logits: Float[Tensor, "b c"], tau: float = 1.0) -> Float[Tensor, ""]:
    """KL(target || softmax(logits / tau)), the batch's mean, in nats; its gradient is (softmax - target) / (tau b)."""
    return F.kl_div(F.log_softmax(logits / tau, 1), target, reduction="batchmean")


def batches(rng: np.random.Generator, n: int, size: int, count: int) -> Iterator[Ids]:
    """Yields `count` mini-batches of `size` out of n row numbers, pass after pass, each pass in an order of its own.

    The last batch of a pass has what is left of it.
    """
    done = 0
    while done < count:
        order = rng.permutation(n)
        for start in range(0, n, size):
            if done == count:
                return
            yield order[start : start + size]
            done += 1


@torch.no_grad()
def predict(network: nn.Module, x: Tensor, size: int) -> Float[Tensor, "n c"]:
    """Logits of all of x, `size` samples at a time."""
    network.eval()
    return torch.cat([network(part) for part in torch.split(x, size)])


def learn(
    optimizer: torch.optim.Optimizer,
    target: Float[Tensor, "b c"],
    logits: Float[Tensor, "b c"],
    tau: float = 1.0,
    pull: float = 1.0,
) -> None:
    """Makes one optimizer step down pull * `distance`, in place.

    Makes none where the target is predicted already, to rounding, which Adam would blow up to whole steps.
    """
    with torch.no_grad():
        if float((F.softmax(logits / tau, 1) - target).abs().max()) <= SAME:
            return
    optimizer.zero_grad()
    (pull * distance(target, logits, tau)).backward()
    optimizer.step()


def trainable(network: nn.Module) -> list[nn.Parameter]:
    """The parameters that are not frozen."""
    return [parameter for parameter in network.parameters() if parameter.requires_grad]
