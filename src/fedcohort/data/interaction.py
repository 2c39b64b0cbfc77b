"""How many samples of each class have which of two attributes, where nobody has named an attribute.

FedDiverse's estimate of a client's interaction matrix (Nemeth et al., "FedDiverse", Sec. IV-A).

    biased model   from w_t, GCE on T_k; above two classes one model for each class of the client, y against the rest
    G_y, g_y       samples of class y that the model (the one of y) gets right, and the others
    pivot          the class with the smallest ||G_y| - |g_y||, the lowest of several
    attribute      a two-way classifier from w_t, CE on the pivot's samples alone, label 1 in G and 0 in g
    N[y, a]        samples of class y that it gives attribute a, the pivot's too

Departures from the paper:
- a class whose samples are all in G, or all in g, is no pivot: there is only one label to learn from it, and a rare
  class would often win that way; without a pivot all samples get attribute 1 (AI = 1, SC = 0);
- a two-way head that w_t doesn't have starts from zero, on top of w_t's other layers.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor, nn
from torch.nn import functional as F

from fedcohort.errors import FedcohortError
from fedcohort.maths.gce import gce

PIECE = 512  # samples of a forward pass


@dataclass(frozen=True)
class Recipe:
    """How the estimate is trained.

    Attributes:
        q: of the GCE loss.
        epochs, lr, batch: of plain SGD, for the biased model and for the attribute classifier.
    """

    q: float
    epochs: int
    lr: float
    batch: int


def estimate(
    copy: Callable[[], nn.Module], x: Tensor, y: Tensor, recipe: Recipe, rng: np.random.Generator
) -> Int64[np.ndarray, "classes 2"]:
    """The count matrix of one client's samples x, y.

    Args:
        copy: makes networks with w_t in them.
        x: the samples, [n, ...].
        y: their labels, int64 [n].
        recipe: how the biased model and the attribute classifier are trained.
        rng: for the batch orders.
    """
    right = judge_biased(copy, x, y, recipe, rng)
    n_classes = _classes(copy(), x)
    of = y.cpu().numpy()
    hits, sizes = np.bincount(of[right], minlength=n_classes), np.bincount(of, minlength=n_classes)
    attribute = np.ones(len(of), dtype=np.int64)
    if (y_hat := pivot(hits, sizes - hits)) is not None:
        attribute = _attributes(copy, x, of == y_hat, right, recipe, rng)
    return np.bincount(2 * of + attribute, minlength=2 * n_classes).reshape(n_classes, 2)


def judge_biased(
    copy: Callable[[], nn.Module], x: Tensor, y: Tensor, recipe: Recipe, rng: np.random.Generator
) -> np.ndarray:
    """Train biased models, and return whether they get each sample right, bool [n]."""

    def loss(logits: Tensor, labels: Tensor) -> Tensor:
        return gce(F.log_softmax(logits, 1), labels, recipe.q).mean()

    if _classes(copy(), x) == 2:
        network = fit(copy(), x, y, loss, recipe, rng)
        return (predict(network, x) == y).cpu().numpy()
    right = np.zeros(len(y), dtype=bool)
    for c in np.unique(y.cpu().numpy()).tolist():
        mine = y == c
        network = fit(two_way(copy(), x), x, mine.long(), loss, recipe, rng)
        right[mine.cpu().numpy()] = (predict(network, x[mine]) == 1).cpu().numpy()
    return right


def pivot(G: Int64[np.ndarray, "classes"], g: Int64[np.ndarray, "classes"]) -> int | None:
    """The class whose majority and minority are nearest in size; None where no class has both."""
    gap = np.where((G > 0) & (g > 0), np.abs(G - g).astype(np.float64), np.inf)
    return int(gap.argmin()) if np.isfinite(gap).any() else None


def _attributes(
    copy: Callable[[], nn.Module],
    x: Tensor,
    of_pivot: np.ndarray,
    right: np.ndarray,
    recipe: Recipe,
    rng: np.random.Generator,
) -> Int64[np.ndarray, "n"]:
    """The attribute of each sample, learnt on the pivot's."""
    labels = torch.from_numpy(right[of_pivot].astype(np.int64)).to(x.device)
    rows = torch.from_numpy(np.flatnonzero(of_pivot)).to(x.device)
    network = fit(two_way(copy(), x), x[rows], labels, F.cross_entropy, recipe, rng)
    return predict(network, x).cpu().numpy()


def two_way(network: nn.Module, x: Tensor) -> nn.Module:
    """`network` with a head of two outputs that starts from zero, in place of its last layer."""
    n_classes = _classes(network, x)
    heads = [
        (name, layer)
        for name, layer in network.named_modules()
        if isinstance(layer, nn.Linear) and layer.out_features == n_classes
    ]
    if not heads:
        raise FedcohortError(
            f"dht needs a network that ends in a linear layer of {n_classes} outputs, one a class, to put a head of "
            "two there: choose another model"
        )
    name, old = heads[-1]
    head = nn.Linear(old.in_features, 2, device=old.weight.device, dtype=old.weight.dtype)
    nn.init.zeros_(head.weight)
    nn.init.zeros_(head.bias)
    path, _, leaf = name.rpartition(".")
    if not leaf:
        return head
    setattr(network.get_submodule(path), leaf, head)
    return network


def fit(
    network: nn.Module,
    x: Tensor,
    labels: Tensor,
    loss: Callable[[Tensor, Tensor], Tensor],
    recipe: Recipe,
    rng: np.random.Generator,
) -> nn.Module:
    """`network` after plain SGD on all of its parameters; loss(logits, labels) is a batch's mean."""
    network.requires_grad_(True)
    optimizer = torch.optim.SGD(network.parameters(), lr=recipe.lr)
    network.train(len(labels) > 1)  # a single sample has no batch statistics
    for _ in range(recipe.epochs):
        for rows in batches(len(labels), recipe.batch, rng):
            piece = torch.from_numpy(rows).to(x.device)
            optimizer.zero_grad()
            loss(network(x[piece]), labels[piece]).backward()
            optimizer.step()
    return network


def batches(n: int, size: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Yield the mini-batches of one pass in a random order.

    A last batch of one joins the one before it, as batch norm needs two.
    """
    order = rng.permutation(n)
    cuts = [cut for cut in range(size, n, size) if n - cut > 1]
    yield from np.split(order, cuts)


@torch.no_grad()
def predict(network: nn.Module, x: Tensor) -> Tensor:
    """Return the class of each sample, int64 [n], in eval mode."""
    network.eval()
    return torch.cat([network(piece).argmax(1) for piece in torch.split(x, PIECE)])


@torch.no_grad()
def _classes(network: nn.Module, x: Tensor) -> int:
    network.eval()
    return int(network(x[:1]).shape[1])
