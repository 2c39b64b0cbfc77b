"""The record that a client's local training returns. `fedcohort.types` exports it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from fedcohort.arrays import Ids, ReadOnly, Values
from fedcohort.errors import renamed_attribute

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class UpdateGroup:
    """A group of clients that were trained in one batch, whose weighted updates can be summed without forming each.

    Attributes:
        n_clients: number of clients in the group.
        weighted_sum: function of the weights by client id that returns the sum of weight times update over the group,
            [P].
    """

    n_clients: int
    weighted_sum: "Callable[[Mapping[int, float]], Tensor]"


@dataclass(frozen=True)
class ClientUpdate(ReadOnly):
    """The result of one client's local training that the server receives.

    Attributes:
        client: id of the client.
        n_train: number of training samples of the client.
        n_used: number of samples that the client's mini-batches are drawn from: n_train, or those that the component
            `samples` has selected. A client that trains a fixed number of steps may see fewer of them.
        steps: number of optimizer steps done.
        response: displacement of the model after these steps under a constant gradient of 1, in units of the local
            learning rate; optimizer and weight decay determine it (`training/response.py`).
        units_done: number of local epochs done, or of steps if the client trains a fixed number.
        units_asked: number of epochs or steps that the server requested.
        lr: local learning rate of the round.
        vector: the update, local model minus received model, float [P], or a function that returns it: see `delta`.
        buffers: the network's float buffers and frozen parameters after training, [B].
        counters: the network's integer buffers after training, int64 [I].
        uploads: vectors that the hooks send in addition to the update, by name, [P] each.
        stored: vectors that the hooks keep at the client once the server has acknowledged the update, by name.
        batch_loss: mean cross-entropy of each mini-batch before its step, in nats, float64 [steps].
        batch_size: number of samples in each mini-batch, int64 [steps].
        sample_loss: cross-entropy of each sample when it was first trained on, in nats, float64 [n_used]; NaN for a
            sample that was not trained on.
        norms: L2 norms of the update, of each of `uploads` in their order, and of the buffers if there are any.
        duration: virtual seconds from the broadcast to the arrival of the update.
        loss_after: mean cross-entropy of the local model on all n_train samples, in nats; NaN if no component reads it.
        group: the clients that were trained in one batch with this one; None if its update must be formed.
        loss_report: statistics of the losses of the client's samples, by signal (`samples.base.Samples.report_losses`).
    """

    client: int
    n_train: int
    n_used: int
    steps: int
    response: float
    units_done: int
    units_asked: int
    lr: float
    vector: "Tensor | Callable[[], Tensor]"
    buffers: "Tensor"
    counters: "Tensor"
    uploads: Mapping[str, "Tensor"]
    stored: Mapping[str, "Tensor"]
    batch_loss: Values
    batch_size: Ids
    sample_loss: Values
    norms: Sequence[float]
    duration: float = float("nan")
    loss_after: float = float("nan")
    group: UpdateGroup | None = None
    loss_report: Mapping[str, float] = field(default_factory=dict)

    @cached_property
    def delta(self) -> "Tensor":
        """The update, local model minus received model, [P]; computed on first access if `vector` is a function."""
        return self.vector() if callable(self.vector) else self.vector

    told = renamed_attribute("ClientUpdate.told", "loss_report")
