"""Copies between host and device, one for many clients, because each copy from a GPU waits for the GPU."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from fedcohort.training.client_task import LossStorageFunction
from fedcohort.training.passes import PassOrders, summarise_losses
from fedcohort.types import ClientUpdate, Values

MAX_WAITING_BYTES_BY_DEVICE = {
    "cpu": 0,
    "cuda": 2**28,
}  # updates that wait for the copy of their losses and norms, by kind of device


def copy_to_device(index_arrays: Sequence[np.ndarray], device: torch.device) -> Iterator[Tensor]:
    """Copy `index_arrays`, indices or counts, to `device` at once, and yield them in their shapes as int32 tensors."""
    flat_indices = np.concatenate([np.empty(0, np.int32), *(a.astype(np.int32).ravel() for a in index_arrays)])
    device_tensors = torch.from_numpy(flat_indices).to(device).split([a.size for a in index_arrays])
    return (p.view(a.shape) for p, a in zip(device_tensors, index_arrays, strict=True))


@dataclass(frozen=True)
class TrainingResult:
    """The result of one client's training, before its losses and norms are copied to the host.

    Attributes:
        n_samples: number of samples that mini-batches are drawn from.
        pass_orders: order of the samples and mini-batches of each pass.
        losses: cross-entropies of all steps' samples before their step, in nats, on the device, [samples].
        vector_norms: norms of the vectors that the client sends (`ClientUpdate.norms`), scalars on the device.
        hook_vectors: vectors that hooks keep at the client, by name.
        store_losses: function of the first losses of the samples, `ClientTask.store_losses`; None without it.
        n_bytes: bytes of the vectors on the device.
        make_update: function that returns the client's update, given the fields that depend on the losses and norms.
    """

    n_samples: int
    pass_orders: PassOrders
    losses: Tensor
    vector_norms: Sequence[Tensor]
    hook_vectors: Mapping[str, Tensor]
    store_losses: LossStorageFunction | None
    n_bytes: int
    make_update: Callable[..., ClientUpdate]

    def make_client_update(self, losses: Values, vector_norms: Values) -> ClientUpdate:
        """Return the client's update, given the values of the attributes `losses` and `vector_norms` on the host."""
        batch_loss, batch_size, first_losses = summarise_losses(self.n_samples, self.pass_orders, losses)
        loss_vectors, loss_metrics = ({}, {}) if self.store_losses is None else self.store_losses(first_losses)
        return self.make_update(
            n_used=self.n_samples,
            stored={**loss_vectors, **self.hook_vectors},
            batch_loss=batch_loss,
            batch_size=batch_size,
            sample_loss=first_losses,
            norms=vector_norms.tolist(),
            loss_report=loss_metrics,
        )


GroupResults = Sequence[TrainingResult]  # of clients that were trained at once


def yield_updates_in_blocks(result_groups: Iterable[GroupResults], device: torch.device) -> Iterator[ClientUpdate]:
    """Yield the updates of `result_groups`, results of clients that were trained at once on `device`, in their order.

    On a GPU, results wait until they hold `MAX_WAITING_BYTES_BY_DEVICE`. Then their losses and norms are copied.
    On a CPU, each group is finished immediately, so that its updates are added up in the processor's cache.
    """
    uncopied_results: list[TrainingResult] = []
    for group_results in result_groups:
        uncopied_results += group_results
        if sum(result.n_bytes for result in uncopied_results) >= MAX_WAITING_BYTES_BY_DEVICE[device.type]:
            yield from _copy_results_to_host(uncopied_results)
            uncopied_results = []
    yield from _copy_results_to_host(uncopied_results)


def _copy_results_to_host(training_results: GroupResults) -> Iterator[ClientUpdate]:
    """Copy the losses and norms of all `training_results` to the host at once, and yield the updates."""
    if not training_results:
        return
    losses_and_norms = [t for r in training_results for t in (r.losses, torch.stack(list(r.vector_norms)))]
    stop_positions = np.cumsum([len(t) for t in losses_and_norms])
    host_arrays = np.split(torch.cat(losses_and_norms).double().cpu().numpy(), stop_positions[:-1])
    yield from (
        r.make_client_update(a, b)
        for r, a, b in zip(training_results, host_arrays[::2], host_arrays[1::2], strict=True)
    )
