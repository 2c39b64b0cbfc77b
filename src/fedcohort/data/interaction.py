"""FedDiverse's estimate of a client's samples by class and attribute, if attributes are unknown.

Source: Nemeth et al., "FedDiverse", Sec. IV-A (interaction matrix).

    biased model   trained from w_t with GCE on T_k; with more than two classes, one model per class of the client that
                   separates class y from all others
    G_y, g_y       samples of class y that this model classifies correctly, and the other samples of class y
    pivot          the class with the smallest ||G_y| - |g_y||, the lowest one in case of ties
    attribute      output of a binary classifier, trained from w_t with CE on the pivot's samples; label 1 in G, 0 in g
    N[y, a]        samples of class y that the binary classifier assigns to attribute a, the pivot's included

Departures from the paper:
- A class whose samples are all in G, or all in g, is not a candidate for the pivot: it has only one label to learn, and
  rare classes would often be chosen. Without a pivot all samples get attribute 1 (AI = 1, SC = 0).
- The binary classifier's head, which w_t does not have, is initialised with zeros on top of w_t's other layers.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor, nn
from torch.nn import functional as F

from fedcohort.errors import FedcohortError
from fedcohort.maths.gce import generalised_ce
from fedcohort.maths.optimizers import uncompiled_optimizer

Loss = Callable[[Tensor, Tensor], Tensor]  # of the logits and the labels of a batch
FORWARD_BATCH = 512  # samples of a forward pass


@dataclass(frozen=True)
class EstimateOptions:
    """Training options of the biased model and of the attribute classifier.

    Attributes:
        q: exponent of the GCE loss, for the biased model only.
        epochs: passes over the samples.
        lr: learning rate of plain SGD.
        batch: samples of a mini-batch.
    """

    q: float
    epochs: int
    lr: float
    batch: int


def estimate_group_counts(
    copy: Callable[[], nn.Module], x: Tensor, y: Tensor, recipe: EstimateOptions, rng: np.random.Generator
) -> Int64[np.ndarray, "classes 2"]:
    """Return one client's samples by class and estimated attribute.

    Args:
        copy: makes a network with the weights w_t.
        x: the client's inputs, [n, ...].
        y: the client's labels, int64 [n].
        recipe: training options.
        rng: generator for the order of the samples.
    """
    correct = find_bias_aligned(copy, x, y, recipe, rng)
    n_classes = _count_classes(copy(), x)
    labels = y.cpu().numpy()
    n_correct, sizes = np.bincount(labels[correct], minlength=n_classes), np.bincount(labels, minlength=n_classes)
    attribute = np.ones(len(labels), dtype=np.int64)
    if (y_hat := find_pivot_class(n_correct, sizes - n_correct)) is not None:
        # The binary classifier learns G against g on the pivot's samples, and is applied to all samples.
        in_pivot = labels == y_hat
        rows = torch.from_numpy(np.flatnonzero(in_pivot)).to(x.device)
        in_majority = torch.from_numpy(correct[in_pivot].astype(np.int64)).to(x.device)
        network = train_network(with_binary_head(copy(), x), x[rows], in_majority, F.cross_entropy, recipe, rng)
        attribute = predict(network, x).cpu().numpy()
    return np.bincount(2 * labels + attribute, minlength=2 * n_classes).reshape(n_classes, 2)


def find_bias_aligned(
    copy: Callable[[], nn.Module], x: Tensor, y: Tensor, recipe: EstimateOptions, rng: np.random.Generator
) -> np.ndarray:
    """Train the biased models, and return which samples they classify correctly, bool [n]."""

    def loss(logits: Tensor, labels: Tensor) -> Tensor:
        return generalised_ce(F.log_softmax(logits, 1), labels, recipe.q).mean()

    if _count_classes(copy(), x) == 2:
        network = train_network(copy(), x, y, loss, recipe, rng)
        return (predict(network, x) == y).cpu().numpy()
    correct = np.zeros(len(y), dtype=bool)
    for c in np.unique(y.cpu().numpy()).tolist():
        in_class = y == c
        network = train_network(with_binary_head(copy(), x), x, in_class.long(), loss, recipe, rng)
        correct[in_class.cpu().numpy()] = (predict(network, x[in_class]) == 1).cpu().numpy()
    return correct


def find_pivot_class(G: Int64[np.ndarray, "classes"], g: Int64[np.ndarray, "classes"]) -> int | None:
    """Return the class whose G and g are nearest in size; None if no class has both."""
    count_difference = np.where((G > 0) & (g > 0), np.abs(G - g).astype(np.float64), np.inf)
    return int(count_difference.argmin()) if np.isfinite(count_difference).any() else None


def with_binary_head(network: nn.Module, x: Tensor) -> nn.Module:
    """Replace the last layer of `network` by a head of two outputs, initialised with zeros; return the network."""
    n_classes = _count_classes(network, x)
    linear_layers = [(name, layer) for name, layer in network.named_modules() if isinstance(layer, nn.Linear)]
    candidate_layers = [(name, layer) for name, layer in linear_layers if layer.out_features == n_classes]
    if not candidate_layers:
        raise FedcohortError(
            f"signal dht replaces the network's last linear layer, of {n_classes} outputs (one per class), by a layer "
            "of two outputs, but this network has no such layer: choose another model"
        )
    name, replaced_layer = candidate_layers[-1]
    weight = replaced_layer.weight
    binary_head = nn.Linear(replaced_layer.in_features, 2, device=weight.device, dtype=weight.dtype)
    nn.init.zeros_(binary_head.weight)
    nn.init.zeros_(binary_head.bias)
    path, _, leaf = name.rpartition(".")
    if not leaf:
        return binary_head
    setattr(network.get_submodule(path), leaf, binary_head)
    return network


def train_network(
    network: nn.Module, x: Tensor, labels: Tensor, loss: Loss, recipe: EstimateOptions, rng: np.random.Generator
) -> nn.Module:
    """Train all parameters of `network` by plain SGD, and return it; `loss` takes logits and labels of a batch."""
    network.requires_grad_(True)
    optimizer = uncompiled_optimizer(torch.optim.SGD)(network.parameters(), lr=recipe.lr)
    network.train(len(labels) > 1)  # a single sample has no batch statistics
    for _ in range(recipe.epochs):
        for rows in batches(len(labels), recipe.batch, rng):
            batch = torch.from_numpy(rows).to(x.device)
            optimizer.zero_grad()
            loss(network(x[batch]), labels[batch]).backward()
            optimizer.step()
    return network


def batches(n: int, size: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Yield the mini-batches of one pass in a random order.

    A last batch of one sample joins the batch before it, as batch norm needs two samples.
    """
    order = rng.permutation(n)
    batch_starts = [batch_start for batch_start in range(size, n, size) if n - batch_start > 1]
    yield from np.split(order, batch_starts)


@torch.no_grad()
def predict(network: nn.Module, x: Tensor) -> Tensor:
    """Return the class of each sample, int64 [n], in eval mode."""
    network.eval()
    return torch.cat([network(batch).argmax(1) for batch in torch.split(x, FORWARD_BATCH)])


@torch.no_grad()
def _count_classes(network: nn.Module, x: Tensor) -> int:
    network.eval()
    return int(network(x[:1]).shape[1])
