"""Distillation: a student network is trained to predict the teachers' probabilities (Hinton et al. 2015).

Hinton, Vinyals, Dean, "Distilling the Knowledge in a Neural Network", 2015, arXiv 1503.02531.

    loss = mean over the batch of KL(t || softmax(s / tau)),   t: the teachers' probabilities, s: the student's logits

Networks stay in eval mode: batch-norm statistics remain those of the clients' data, and dropout is not active.
"""

from collections.abc import Iterator

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from fedcohort.types import Ids

TOLERANCE = 1e-6  # difference below which probabilities count as equal


def distillation_loss(
    target: Float[Tensor, "b c"], logits: Float[Tensor, "b c"], tau: float = 1.0
) -> Float[Tensor, ""]:
    """Return the mean KL(target || softmax(logits / tau)) in nats; its gradient is (softmax - target) / (tau b)."""
    return F.kl_div(F.log_softmax(logits / tau, 1), target, reduction="batchmean")


def batches(rng: np.random.Generator, n: int, size: int, count: int) -> Iterator[Ids]:
    """Yield `count` mini-batches of `size` of n row numbers, pass after pass, each in a new random order.

    The last mini-batch of a pass may be smaller.
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
    """Return the logits of x, computed for `size` samples at a time."""
    network.eval()
    return torch.cat([network(part) for part in torch.split(x, size)])


def step_towards(
    optimizer: torch.optim.Optimizer,
    target: Float[Tensor, "b c"],
    logits: Float[Tensor, "b c"],
    tau: float = 1.0,
    pull: float = 1.0,
) -> None:
    """Make one optimizer step that reduces `pull` times the distillation loss of `logits` towards `target`.

    There is no step if the target is already predicted up to rounding errors, which Adam would scale to full steps.
    """
    with torch.no_grad():
        if float((F.softmax(logits / tau, 1) - target).abs().max()) <= TOLERANCE:
            return
    optimizer.zero_grad()
    (pull * distillation_loss(target, logits, tau)).backward()
    optimizer.step()


def trainable_parameters(network: nn.Module) -> list[nn.Parameter]:
    """Return the parameters of a network that require a gradient, as others are frozen."""
    return [parameter for parameter in network.parameters() if parameter.requires_grad]
