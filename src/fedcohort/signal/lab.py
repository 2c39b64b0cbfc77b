"""Access to w_t and the clients' data, with which signals are measured."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

import numpy as np
from jaxtyping import Float64

from fedcohort.types import ClientUpdate, Ids, Values

if TYPE_CHECKING:
    from torch import Tensor, nn

# function of clients, and of start and end of a time slot in seconds from now: its share in which each is ready, [n]
ReadyShare = Callable[[Ids, float, float], Values]


class Lab(Protocol):
    """The global model w_t with the clients' data, for the computation of signals.

    Attributes:
        server_passes: forward passes of `server_loss_after` so far, in samples.
    """

    server_passes: int

    def mean_over_samples(self, split: str, clients: Ids, per_sample: "Callable[[Tensor, Tensor], Tensor]") -> Values:
        """Return the mean of a function over the samples of each client, [len(clients)]; NaN for a client without any.

        Where samples have several targets, the mean over them is taken first.

        Args:
            split: "train" (T_i) or "val" (V_i).
            clients: ids.
            per_sample: function of log-probabilities [B, C] and labels [B] that returns [B].
        """
        ...

    def sum_over_samples(
        self, clients: Ids, per_sample: "Callable[[Tensor, Tensor], Tensor]", width: int
    ) -> Float64[np.ndarray, "_n _width"]:
        """Return the sums of a function over the training samples of each client, float64 [len(clients), width].

        Args:
            clients: ids.
            per_sample: function of log-probabilities [B, C] and labels [B] that returns [B, width].
            width: number of columns.
        """
        ...

    def per_sample_losses(self, client: int) -> Values:
        """Return the cross-entropy of w_t on each sample of T_k, in nats, [n_k]."""
        ...

    def samples(self, client: int) -> "tuple[Tensor, Tensor]":
        """Return the inputs and labels of a client's training set T_k."""
        ...

    def loss(self, network: "nn.Module", x: "Tensor", y: "Tensor") -> "Tensor":
        """Return the mean cross-entropy of a network on samples, in nats."""
        ...

    def copy(self) -> "nn.Module":
        """Return a copy of the network with the global model w_t, which the caller may change."""
        ...

    def gradient(self, client: int) -> "Tensor":
        """Return the gradient at w_t of the mean cross-entropy over T_k, [P]."""
        ...

    def train(self, round: int, client: int) -> ClientUpdate:
        """Return the update that a client would send after training from w_t in this round; it is not used otherwise.

        It trains on the samples that the run's sample selection takes, where these can be foreseen
        (`component.FORESEEN_SAMPLES`), without the hooks of aggregator and regulariser.
        """
        ...

    def losses_after(self, update: "Tensor", clients: Ids) -> Values:
        """Return the mean cross-entropy over each T_k of w_t + update, in nats, [len(clients)]."""
        ...

    def server_loss(self) -> float:
        """Return the mean cross-entropy of w_t on the server's validation set, in nats."""
        ...

    def server_loss_after(self, update: "Tensor") -> float:
        """Return the mean cross-entropy of w_t + update on the server's validation set, in nats."""
        ...
