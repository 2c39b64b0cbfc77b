"""Copies between host and device, one for many clients, because each copy from a GPU waits for the GPU."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from fedcohort.training.client_task import RememberLosses
from fedcohort.training.passes import PassOrders, summarise_losses
from fedcohort.types import ClientUpdate, Values

HELD_BYTES = {"cpu": 0, "cuda": 2**28}  # updates that wait for the copy of their losses and norms, by kind of device


def to_device(arrays: Sequence[np.ndarray], device: torch.device) -> Iterator[Tensor]:
    """Copy arrays of indices or counts to `device` at once, and yield them in their shapes as int32 tensors."""
    flat_array = np.concatenate([np.empty(0, np.int32), *(a.astype(np.int32).ravel() for a in arrays)])
    flat_parts = torch.from_numpy(flat_array).to(device).split([a.size for a in arrays])
    return (p.view(a.shape) for p, a in zip(flat_parts, arrays, strict=True))


@dataclass(frozen=True)
class TrainingResult:
    """The result of one client's training, before its losses and norms are copied to the host.

    Attributes:
        n_used: number of samples that mini-batches are drawn from.
        passes: order of the samples and mini-batches of each pass.
        losses: cross-entropies of all steps' samples before their step, in nats, on the device, [samples].
        norms: norms of the vectors that the client sends (`ClientUpdate.norms`), scalars on the device.
        stored: vectors that hooks keep at the client, by name.
        remember_losses: function of the first losses of the samples, `ClientTask.remember_losses`; None without it.
        n_bytes: bytes of the vectors on the device.
        make_update: function that returns the client's update, given the fields that depend on the losses and norms.
    """

    n_used: int
    passes: PassOrders
    losses: Tensor
    norms: Sequence[Tensor]
    stored: Mapping[str, Tensor]
    remember_losses: RememberLosses | None
    n_bytes: int
    make_update: Callable[..., ClientUpdate]

    def finish(self, losses: Values, norms: Values) -> ClientUpdate:
        """Return the client's update, given the values of the attributes `losses` and `norms` on the host."""
        batch_loss, batch_size, first_losses = summarise_losses(self.n_used, self.passes, losses)
        kept_vectors, loss_report = ({}, {}) if self.remember_losses is None else self.remember_losses(first_losses)
        return self.make_update(
            n_used=self.n_used,
            stored={**kept_vectors, **self.stored},
            batch_loss=batch_loss,
            batch_size=batch_size,
            sample_loss=first_losses,
            norms=norms.tolist(),
            loss_report=loss_report,
        )


GroupResults = Sequence[TrainingResult]  # of clients that were trained at once


def finish_in_blocks(groups: Iterable[GroupResults], device: torch.device) -> Iterator[ClientUpdate]:
    """Yield the updates of `groups`, results of clients that were trained at once on `device`, in their order.

    On a GPU, results wait until they hold `HELD_BYTES`, and their losses and norms are then copied at once. On a CPU,
    each group is finished immediately, so that its updates are added up while they are in the processor's cache.
    """
    held_results: list[TrainingResult] = []
    for group_results in groups:
        held_results += group_results
        if sum(result.n_bytes for result in held_results) >= HELD_BYTES[device.type]:
            yield from _finish_results(held_results)
            held_results = []
    yield from _finish_results(held_results)


def _finish_results(results: GroupResults) -> Iterator[ClientUpdate]:
    """Copy the losses and norms of all `results` to the host at once, and yield the updates."""
    if not results:
        return
    tensors = [t for result in results for t in (result.losses, torch.stack(list(result.norms)))]
    values_by_tensor = np.split(torch.cat(tensors).double().cpu().numpy(), np.cumsum([len(t) for t in tensors])[:-1])
    for result, losses, norms in zip(results, values_by_tensor[::2], values_by_tensor[1::2], strict=True):
        yield result.finish(losses, norms)
