"""FedDiverse's estimate of a client's samples by class and attribute, if attributes are unknown.

Source: Nemeth et al., "FedDiverse", Sec. IV-A (interaction matrix).

    biased model   trained from w_t with GCE on T_k; with more than two classes, one model per class of the client that
                   separates class y from all others
    G_y, g_y       samples of class y that this model classifies correctly, and the other samples of class y
    pivot          the class with the smallest ||G_y| - |g_y||, the lowest one in case of ties
    attribute      output of a binary classifier, trained from w_t with CE on the pivot's samples; label 1 in G, 0 in g
    N[y, a]        samples of class y that the binary classifier assigns to attribute a, the pivot's included

w_t is the model that the client received, T_k the client's training set, GCE the generalised cross-entropy.

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

LossFunction = Callable[[Tensor, Tensor], Tensor]  # of the logits and the labels of a batch
NetworkFactory = Callable[[], nn.Module]  # which returns a network with the weights w_t
FORWARD_BATCH_SIZE = 512  # samples of a forward pass


@dataclass(frozen=True)
class EstimateOptions:
    """Options of the trainings that estimate attributes: of a network that prefers easy samples, and of a classifier.

    Attributes:
        q: exponent of the generalised cross-entropy by which the first network prefers samples that are easy to learn.
        epochs: number of passes over the samples.
        lr: learning rate of SGD without momentum.
        batch: samples of a mini-batch.
    """

    q: float
    epochs: int
    lr: float
    batch: int


def estimate_group_counts(
    make_network: NetworkFactory, x: Tensor, y: Tensor, training_options: EstimateOptions, rng: np.random.Generator
) -> Int64[np.ndarray, "classes 2"]:
    """Return the number of one client's samples by class and estimated attribute.

    Args:
        make_network: function that returns a network with w_t, the weights of the model that the client received.
        x: the client's inputs, [n, ...].
        y: the client's labels, int64 [n].
        training_options: exponent of the loss, epochs, learning rate and batch size.
        rng: generator for the order of the samples.
    """
    is_correct = mark_bias_aligned_samples(make_network, x, y, training_options, rng)
    n_classes = _count_classes(make_network(), x)
    labels = y.cpu().numpy()
    correct_counts = np.bincount(labels[is_correct], minlength=n_classes)
    class_sizes = np.bincount(labels, minlength=n_classes)
    attribute_of_sample = np.ones(len(labels), dtype=np.int64)
    if (y_hat := find_pivot_class(correct_counts, class_sizes - correct_counts)) is not None:
        # The binary classifier learns G against g on the pivot's samples, and is applied to all samples.
        is_pivot_class = labels == y_hat
        pivot_rows = torch.from_numpy(np.flatnonzero(is_pivot_class)).to(x.device)
        is_bias_aligned = torch.from_numpy(is_correct[is_pivot_class].astype(np.int64)).to(x.device)
        network = replace_head(make_network(), x)
        train_network(network, x[pivot_rows], is_bias_aligned, F.cross_entropy, training_options, rng)
        attribute_of_sample = predict_classes(network, x).cpu().numpy()
    return np.bincount(2 * labels + attribute_of_sample, minlength=2 * n_classes).reshape(n_classes, 2)


def mark_bias_aligned_samples(
    make_network: NetworkFactory, x: Tensor, y: Tensor, training_options: EstimateOptions, rng: np.random.Generator
) -> np.ndarray:
    """Train on a client's samples with a loss that favours easy ones; return which are classified correctly, bool [n].

    The loss is the generalised cross-entropy. With two classes, one network is trained. Otherwise there is one for each
    class, which separates it from all other classes and then classifies the samples of this class.

    Args:
        make_network: function that returns a network with w_t, the weights of the model that the client received.
        x: the client's inputs, [n, ...].
        y: the client's labels, int64 [n].
        training_options: exponent of the loss, epochs, learning rate and batch size.
        rng: generator for the order of the samples.
    """

    def gce_loss(logits: Tensor, labels: Tensor) -> Tensor:
        return generalised_ce(F.log_softmax(logits, 1), labels, training_options.q).mean()

    if _count_classes(make_network(), x) == 2:
        network = train_network(make_network(), x, y, gce_loss, training_options, rng)
        return (predict_classes(network, x) == y).cpu().numpy()
    is_correct = np.zeros(len(y), dtype=bool)
    for c in np.unique(y.cpu().numpy()).tolist():
        is_positive = y == c
        network = train_network(replace_head(make_network(), x), x, is_positive.long(), gce_loss, training_options, rng)
        is_correct[is_positive.cpu().numpy()] = (predict_classes(network, x[is_positive]) == 1).cpu().numpy()
    return is_correct


def find_pivot_class(G: Int64[np.ndarray, "classes"], g: Int64[np.ndarray, "classes"]) -> int | None:
    """Return the pivot, the class whose numbers of correctly and wrongly classified samples differ least.

    Args:
        G: number of correctly classified samples of each class.
        g: number of wrongly classified samples of each class.

    Returns:
        The number of the class; None if no class has samples of both kinds.
    """
    group_count_difference = np.where((G > 0) & (g > 0), np.abs(G - g).astype(np.float64), np.inf)
    return int(group_count_difference.argmin()) if np.isfinite(group_count_difference).any() else None


def replace_head(network: nn.Module, x: Tensor) -> nn.Module:
    """Replace the layer of class outputs of a network by a linear layer with two outputs and zero weights.

    Args:
        network: network to change in place.
        x: samples [n, ...], whose outputs show the number of classes.

    Returns:
        The network, or the new layer for a network of one layer.

    Raises:
        FedcohortError: the network has no linear layer with as many outputs as classes.
    """
    n_classes = _count_classes(network, x)
    linear_layers = [(path, layer) for path, layer in network.named_modules() if isinstance(layer, nn.Linear)]
    output_layer_candidates = [(path, layer) for path, layer in linear_layers if layer.out_features == n_classes]
    if not output_layer_candidates:
        raise FedcohortError(
            f"signal dht replaces the network's last linear layer, of {n_classes} outputs (one per class), by a layer "
            "of two outputs, but this network has no such layer: choose another model"
        )
    layer_path, replaced_layer = output_layer_candidates[-1]
    output_weight = replaced_layer.weight
    binary_head = nn.Linear(replaced_layer.in_features, 2, device=output_weight.device, dtype=output_weight.dtype)
    nn.init.zeros_(binary_head.weight)
    nn.init.zeros_(binary_head.bias)
    parent_path, _, layer_name = layer_path.rpartition(".")
    if not layer_name:
        return binary_head
    setattr(network.get_submodule(parent_path), layer_name, binary_head)
    return network


def train_network(
    network: nn.Module,
    x: Tensor,
    labels: Tensor,
    loss_function: LossFunction,
    training_options: EstimateOptions,
    rng: np.random.Generator,
) -> nn.Module:
    """Train all parameters of a network by SGD without momentum, in place, and return the network.

    Args:
        network: network to train.
        x: inputs, [n, ...].
        labels: labels, [n].
        loss_function: function of logits [B, outputs] and labels [B] of a batch that returns the mean loss.
        training_options: epochs, learning rate and batch size.
        rng: generator for the order of the samples.
    """
    network.requires_grad_(True)
    optimizer = uncompiled_optimizer(torch.optim.SGD)(network.parameters(), lr=training_options.lr)
    network.train(len(labels) > 1)  # a single sample has no batch statistics
    for _ in range(training_options.epochs):
        for batch_positions in draw_batches(len(labels), training_options.batch, rng):
            batch_rows = torch.from_numpy(batch_positions).to(x.device)
            optimizer.zero_grad()
            loss_function(network(x[batch_rows]), labels[batch_rows]).backward()
            optimizer.step()
    return network


def draw_batches(n: int, batch_size: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Yield the positions of the samples of each mini-batch, for one epoch in a random order, int64 [batch].

    A last batch of one sample joins the batch before it, as batch norm needs two samples.

    Args:
        n: number of samples.
        batch_size: samples of a mini-batch.
        rng: generator that draws the order.
    """
    sample_order = rng.permutation(n)
    batch_starts = [batch_start for batch_start in range(batch_size, n, batch_size) if n - batch_start > 1]
    yield from np.split(sample_order, batch_starts)


@torch.no_grad()
def predict_classes(network: nn.Module, x: Tensor) -> Tensor:
    """Return the class that `network`, set to eval mode, predicts for each sample in `x` [n, ...], int64 [n]."""
    network.eval()
    return torch.cat([network(batch).argmax(1) for batch in torch.split(x, FORWARD_BATCH_SIZE)])


@torch.no_grad()
def _count_classes(network: nn.Module, x: Tensor) -> int:
    network.eval()
    return int(network(x[:1]).shape[1])
