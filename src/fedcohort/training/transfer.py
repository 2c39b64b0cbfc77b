"""Copies between host and device, one for many clients, because each copy from a GPU waits for the GPU."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from fedcohort.training.client_task import RememberLosses
from fedcohort.training.passes import PassOrders, summarise_losses
from fedcohort.types import ClientUpdate, Values

WAITING_BYTES = {"cpu": 0, "cuda": 2**28}  # updates that wait for the copy of their losses and norms, by kind of device


def to_device(index_arrays: Sequence[np.ndarray], device: torch.device) -> Iterator[Tensor]:
    """Copy `index_arrays`, indices or counts, to `device` at once, and yield them in their shapes as int32 tensors."""
    flat_indices = np.concatenate([np.empty(0, np.int32), *(a.astype(np.int32).ravel() for a in index_arrays)])
    tensor_parts = torch.from_numpy(flat_indices).to(device).split([a.size for a in index_arrays])
    return (p.view(a.shape) for p, a in zip(tensor_parts, index_arrays, strict=True))


@dataclass(frozen=True)
class TrainingResult:
    """The result of one client's training, before its losses and norms are copied to the host.

    Attributes:
        n_samples: number of samples that mini-batches are drawn from.
        pass_orders: order of the samples and mini-batches of each pass.
        losses: cross-entropies of all steps' samples before their step, in nats, on the device, [samples].
        vector_norms: norms of the vectors that the client sends (`ClientUpdate.norms`), scalars on the device.
        hook_vectors: vectors that hooks keep at the client, by name.
        remember_losses: function of the first losses of the samples, `ClientTask.remember_losses`; None without it.
        n_bytes: bytes of the vectors on the device.
        make_update: function that returns the client's update, given the fields that depend on the losses and norms.
    """

    n_samples: int
    pass_orders: PassOrders
    losses: Tensor
    vector_norms: Sequence[Tensor]
    hook_vectors: Mapping[str, Tensor]
    remember_losses: RememberLosses | None
    n_bytes: int
    make_update: Callable[..., ClientUpdate]

    def finish_update(self, losses: Values, vector_norms: Values) -> ClientUpdate:
        """Return the client's update, given the values of the attributes `losses` and `vector_norms` on the host."""
        batch_loss, batch_size, first_losses = summarise_losses(self.n_samples, self.pass_orders, losses)
        kept_vectors, loss_report = ({}, {}) if self.remember_losses is None else self.remember_losses(first_losses)
        return self.make_update(
            n_used=self.n_samples,
            stored={**kept_vectors, **self.hook_vectors},
            batch_loss=batch_loss,
            batch_size=batch_size,
            sample_loss=first_losses,
            norms=vector_norms.tolist(),
            loss_report=loss_report,
        )


GroupResults = Sequence[TrainingResult]  # of clients that were trained at once


def yield_updates_in_blocks(result_groups: Iterable[GroupResults], device: torch.device) -> Iterator[ClientUpdate]:
    """Yield the updates of `result_groups`, results of clients that were trained at once on `device`, in their order.

    On a GPU, results wait until they hold `WAITING_BYTES`. Their losses and norms are then copied at once.
    On a CPU, each group is finished immediately, so that its updates are added up in the processor's cache.
    """
    waiting_results: list[TrainingResult] = []
    for group_results in result_groups:
        waiting_results += group_results
        if sum(result.n_bytes for result in waiting_results) >= WAITING_BYTES[device.type]:
            yield from _finish_results(waiting_results)
            waiting_results = []
    yield from _finish_results(waiting_results)


def _finish_results(training_results: GroupResults) -> Iterator[ClientUpdate]:
    """Copy the losses and norms of all `training_results` to the host at once, and yield the updates."""
    if not training_results:
        return
    losses_and_norms = [t for r in training_results for t in (r.losses, torch.stack(list(r.vector_norms)))]
    array_ends = np.cumsum([len(t) for t in losses_and_norms])
    arrays = np.split(torch.cat(losses_and_norms).double().cpu().numpy(), array_ends[:-1])
    yield from (r.finish_update(a, b) for r, a, b in zip(training_results, arrays[::2], arrays[1::2], strict=True))
