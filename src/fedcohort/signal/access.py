"""Access to w_t and the clients' data, with which signals are measured."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

import numpy as np
from jaxtyping import Float64

from fedcohort.types import ClientUpdate, Ids, Values

if TYPE_CHECKING:
    from torch import Tensor, nn

# function of clients, and of start and end of a time slot in seconds from now: its share in which each is ready, [n]
ReadyShareFunction = Callable[[Ids, float, float], Values]


class SignalAccess(Protocol):
    """The global model w_t with the clients' data, for the computation of signals.

    Attributes:
        server_passes: number of samples in all forward passes of `server_loss_after` and `server_accuracy_after` so
            far.
    """

    server_passes: int

    def mean_over_samples(self, split: str, clients: Ids, per_sample: "Callable[[Tensor, Tensor], Tensor]") -> Values:
        """Return the mean of a function over each client's samples, [len(clients)]; NaN for a client without samples.

        If samples have several targets, the mean over a sample's targets is taken first.

        Args:
            split: samples of the client's training set ("train") or of its validation set ("val").
            clients: ids of the clients.
            per_sample: function of log-probabilities [B, C] and labels [B] that returns [B].
        """
        ...

    def sum_over_samples(
        self, clients: Ids, per_sample: "Callable[[Tensor, Tensor], Tensor]", n_values: int
    ) -> Float64[np.ndarray, "_n _width"]:
        """Return the sums of a function over the training samples of each client, float64 [len(clients), n_values].

        Args:
            clients: ids of the clients.
            per_sample: function of log-probabilities [B, C] and labels [B] that returns [B, n_values].
            n_values: number of values that the function returns for a sample.
        """
        ...

    def per_sample_losses(self, client: int) -> Values:
        """Return the cross-entropy of w_t on each training sample of the client `client`, in nats, [n_k]."""
        ...

    def samples(self, client: int) -> "tuple[Tensor, Tensor]":
        """Return the inputs [n_k, ...] and labels [n_k] of the training set of the client `client`."""
        ...

    def loss(self, network: "nn.Module", x: "Tensor", y: "Tensor") -> "Tensor":
        """Return the mean cross-entropy of `network` on inputs `x` [n, ...] with labels `y` [n], in nats."""
        ...

    def copy(self) -> "nn.Module":
        """Return a copy of the network with the global model w_t, which the caller may change."""
        ...

    def gradient(self, client: int) -> "Tensor":
        """Return the gradient at w_t of the mean cross-entropy over the training set of the client `client`, [P]."""
        ...

    def train(self, round: int, client: int) -> ClientUpdate:
        """Return the update that a client would send after training from w_t in this round.

        The training uses the samples that the run's sample selection takes, if they are known before the round, and
        none of the hooks of aggregator and regulariser.
        """
        ...

    def losses_after(self, update: "Tensor", clients: Ids) -> Values:
        """Return each client's mean cross-entropy of w_t + `update` [P] on its training set, nats, [len(clients)]."""
        ...

    def server_loss(self) -> float:
        """Return the mean cross-entropy of w_t on the server's validation set, in nats."""
        ...

    def server_loss_after(self, update: "Tensor") -> float:
        """Return the mean cross-entropy of w_t + `update` [P] on the server's validation set, in nats."""
        ...

    def server_accuracy_after(self, update: "Tensor") -> tuple[float, float]:
        """Return accuracy, from 0 to 1, and mean cross-entropy in nats of w_t + `update` [P] on the server's data.

        The server's data are its validation set; the loss is that of `server_loss_after`.
        """
        ...
