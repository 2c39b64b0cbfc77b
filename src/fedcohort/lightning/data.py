"""CohortDataModule: a training batch is a slice of the cohort, the validation batch all of the server's data."""

import itertools
from collections.abc import Iterator, Sequence

import lightning.pytorch as pl
from torch import Tensor

from fedcohort.data.federation import Federation, ServerSamples
from fedcohort.process_ranks import count_processes, rank_of_process
from fedcohort.training.client_task import ClientTask

EVAL_BATCH_SIZE = 1000


class CohortSlices:
    """The `n_slices` parts of a cohort, each of which is a training batch of Lightning.

    Lightning sets an epoch's length before the cohort is known. `distribute_tasks` fills the slices with the training
    tasks of the clients, in their order, so that results do not depend on the number of slices.
    """

    def __init__(self, n_slices: int) -> None:
        self.n_slices = n_slices
        self._slices: list[list[ClientTask]] = [[] for _ in range(n_slices)]

    def distribute_tasks(self, task_groups: Sequence[Sequence[ClientTask]]) -> None:
        """Distribute `task_groups`, groups of clients that are trained at the same time, over the training batches."""
        slice_bounds = [len(task_groups) * i // self.n_slices for i in range(self.n_slices + 1)]
        self._slices = [list(itertools.chain(*task_groups[i:j])) for i, j in itertools.pairwise(slice_bounds)]

    def __len__(self) -> int:
        return self.n_slices

    def __iter__(self) -> Iterator[list[ClientTask]]:
        for slice_index in range(self.n_slices):  # the slices are filled after the iterator is made
            yield self._slices[slice_index]


class ServerEvaluationData:
    """The data on which the server evaluates the model, as one batch.

    Lightning's work between two batches takes longer than a small model's forward pass, and a DataLoader would copy the
    samples one by one.
    """

    def __init__(self, *sample_sets: ServerSamples) -> None:
        self.sample_sets = sample_sets

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Iterator[list[Iterator[tuple[Tensor, Tensor]]]]:
        yield [yield_rank_batches(sample_set) for sample_set in self.sample_sets]


def yield_rank_batches(samples: ServerSamples, max_part_size: int = EVAL_BATCH_SIZE) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield inputs [n, ...] and labels [n] of this process's (rank's) share of `samples`, in parts.

    A part has at most `max_part_size` samples and may be empty; all processes have the same number of parts.
    """
    n_samples, n_ranks = len(samples.y), count_processes()
    parts_per_rank = max(1, -(-n_samples // (max_part_size * n_ranks)))
    n_parts, first_rank_part = parts_per_rank * n_ranks, rank_of_process() * parts_per_rank
    part_bounds = [n_samples * i // n_parts for i in range(n_parts + 1)]
    if n_ranks == 1:
        part_bounds = [min(i * max_part_size, n_samples) for i in range(n_parts + 1)]
    for part_start, part_end in itertools.pairwise(part_bounds[first_rank_part : first_rank_part + parts_per_rank + 1]):
        yield samples.x[part_start:part_end], samples.y[part_start:part_end]


class CohortDataModule(pl.LightningDataModule):
    def __init__(self, federation: Federation, n_slices: int) -> None:
        super().__init__()
        self.federation = federation
        self.slices = CohortSlices(n_slices)

    def train_dataloader(self) -> CohortSlices:
        return self.slices

    def val_dataloader(self) -> ServerEvaluationData:
        return ServerEvaluationData(self.federation.server_val, self.federation.server_test)
