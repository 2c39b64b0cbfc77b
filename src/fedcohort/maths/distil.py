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

PROBABILITY_TOLERANCE = 1e-6  # difference below which probabilities count as equal


def distillation_loss(
    target_probs: Float[Tensor, "b c"], logits: Float[Tensor, "b c"], tau: float = 1.0
) -> Float[Tensor, ""]:
    """Return the mean KL(target || softmax(logits / tau)) over samples in nats, a scalar.

    Its gradient in the logits is (softmax - target) / (tau b).

    Args:
        target_probs: target probabilities of each sample, [b, C].
        logits: predicted logits of each sample, [b, C].
        tau: temperature that divides the logits.
    """
    return F.kl_div(F.log_softmax(logits / tau, 1), target_probs, reduction="batchmean")


def draw_batches(rng: np.random.Generator, n_rows: int, batch_size: int, n_batches: int) -> Iterator[Ids]:
    """Yield `n_batches` mini-batches of row numbers, int64 [batch_size] each, in a new random order for each pass.

    A pass covers all numbers below `n_rows`; its last mini-batch may be smaller.
    """
    n_yielded_batches = 0
    while n_yielded_batches < n_batches:
        row_order = rng.permutation(n_rows)
        for batch_start in range(0, n_rows, batch_size):
            if n_yielded_batches == n_batches:
                return
            yield row_order[batch_start : batch_start + batch_size]
            n_yielded_batches += 1


@torch.no_grad()
def predict_logits(network: nn.Module, inputs: Tensor, batch_size: int) -> Float[Tensor, "n c"]:
    """Return the logits of `network` in eval mode for `inputs` [n, ...], [n, C], `batch_size` samples at a time."""
    network.eval()
    return torch.cat([network(input_batch) for input_batch in torch.split(inputs, batch_size)])


def distillation_step(
    optimizer: torch.optim.Optimizer,
    target_probs: Float[Tensor, "b c"],
    logits: Float[Tensor, "b c"],
    tau: float = 1.0,
    loss_weight: float = 1.0,
) -> None:
    """Make one optimizer step that reduces the distillation loss of `logits` to `target_probs`.

    There is no step if the target is already predicted up to rounding errors, which Adam would scale to full steps.

    Args:
        optimizer: optimizer of the parameters from which the logits were computed.
        target_probs: target probabilities of each sample, [b, C].
        logits: predicted logits of each sample, with their graph, [b, C].
        tau: temperature that divides the logits.
        loss_weight: factor of the loss.
    """
    with torch.no_grad():
        if float((F.softmax(logits / tau, 1) - target_probs).abs().max()) <= PROBABILITY_TOLERANCE:
            return
    optimizer.zero_grad()
    (loss_weight * distillation_loss(target_probs, logits, tau)).backward()
    optimizer.step()


def trainable_parameters(network: nn.Module) -> list[nn.Parameter]:
    """Return the parameters of `network` that require a gradient; the others are frozen."""
    return [parameter for parameter in network.parameters() if parameter.requires_grad]
