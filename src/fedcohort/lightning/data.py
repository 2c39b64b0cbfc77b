"""CohortDataModule: a training batch is a slice of the cohort, the validation batch all of the server's data."""

import itertools
from collections.abc import Iterator, Sequence

import lightning.pytorch as pl
from torch import Tensor

from fedcohort.data.federation import Federation, Rows
from fedcohort.ranks import count_processes, rank_of_process
from fedcohort.training.client_task import ClientTask

EVAL_BATCH = 1000


class Slices:
    """The slices of a round, whose number is constant, as Lightning sets an epoch's length before the cohort is known.

    `deal` fills them with groups in the order of the tasks, so that results do not depend on the number of slices.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._slices: list[list[ClientTask]] = [[] for _ in range(count)]

    def deal(self, groups: Sequence[Sequence[ClientTask]]) -> None:
        """Distribute the groups of tasks, each of which an engine trains at once, over the slices."""
        bounds = [len(groups) * i // self.count for i in range(self.count + 1)]
        self._slices = [list(itertools.chain(*groups[a:b])) for a, b in itertools.pairwise(bounds)]

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[list[ClientTask]]:
        for index in range(self.count):
            yield self._slices[index]


class ServerData:
    """All data on which the server evaluates the model, as one batch.

    Lightning's work between two batches takes longer than a small model's forward pass, and a DataLoader would copy the
    samples one by one.
    """

    def __init__(self, *parts: Rows) -> None:
        self.parts = parts

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Iterator[list[Iterator[tuple[Tensor, Tensor]]]]:
        yield [share_of_rank(part) for part in self.parts]


def share_of_rank(rows: Rows, batch: int = EVAL_BATCH) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield this rank's samples in parts of at most `batch`; they may be empty."""
    n, per_rank = len(rows.y), max(1, -(-len(rows.y) // (batch * count_processes())))
    parts = per_rank * count_processes()
    bounds = [min(i * batch, n) if count_processes() == 1 else n * i // parts for i in range(parts + 1)]
    for start, stop in itertools.pairwise(
        bounds[rank_of_process() * per_rank : (rank_of_process() + 1) * per_rank + 1]
    ):
        yield rows.x[start:stop], rows.y[start:stop]


class CohortDataModule(pl.LightningDataModule):
    def __init__(self, federation: Federation, slices: int) -> None:
        super().__init__()
        self.federation = federation
        self.slices = Slices(slices)

    def train_dataloader(self) -> Slices:
        return self.slices

    def val_dataloader(self) -> ServerData:
        return ServerData(self.federation.server_val, self.federation.server_test)
