"""CohortDataModule: a training batch is a slice of the cohort, a validation batch a piece of the server's data."""

import itertools
from collections.abc import Iterator, Sequence

import lightning.pytorch as pl
from torch import Tensor

from fedcohort.data.federation import Federation
from fedcohort.ranks import rank, ranks
from fedcohort.training.local import ClientTask

EVAL_BATCH = 1000


class Slices:
    """Always the same number of slices a round: Lightning fixes an epoch's length before the cohort is known.

    `deal` fills them in the order of the tasks, group by group, so that nothing depends on the number of slices.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._slices: list[list[ClientTask]] = [[] for _ in range(count)]

    def deal(self, groups: Sequence[Sequence[ClientTask]]) -> None:
        """groups: what an engine trains at once."""
        bounds = [len(groups) * i // self.count for i in range(self.count + 1)]
        self._slices = [list(itertools.chain(*groups[a:b])) for a, b in itertools.pairwise(bounds)]

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[list[ClientTask]]:
        for index in range(self.count):
            yield self._slices[index]


class Pieces:
    """This rank's share of tensors in memory, in batches; a DataLoader would copy them row by row.

    Always the same number of batches on every rank (Lightning asks for one at least): the last may be empty.
    """

    def __init__(self, x: Tensor, y: Tensor, batch: int = EVAL_BATCH) -> None:
        self.x, self.y, self.batch = x, y, batch

    def __len__(self) -> int:
        return max(1, -(-len(self.y) // (self.batch * ranks())))

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        parts = len(self) * ranks()
        bounds = [len(self.y) * i // parts for i in range(parts + 1)] if ranks() > 1 else self._plain()
        for i in range(rank() * len(self), (rank() + 1) * len(self)):
            yield self.x[bounds[i] : bounds[i + 1]], self.y[bounds[i] : bounds[i + 1]]

    def _plain(self) -> list[int]:
        return [min(i * self.batch, len(self.y)) for i in range(len(self) + 1)]


class CohortDataModule(pl.LightningDataModule):
    def __init__(self, federation: Federation, slices: int) -> None:
        super().__init__()
        self.federation = federation
        self.slices = Slices(slices)

    def train_dataloader(self) -> Slices:
        return self.slices

    def val_dataloader(self) -> list[Pieces]:
        held = self.federation
        return [Pieces(held.server_val.x, held.server_val.y), Pieces(held.server_test.x, held.server_test.y)]
