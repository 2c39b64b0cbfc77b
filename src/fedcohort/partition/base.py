"""The contract of a partition: which training sample belongs to which client."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from fedcohort.data.ragged import Ragged
from fedcohort.errors import OptionError
from fedcohort.part import Part
from fedcohort.types import Ids


@dataclass(frozen=True)
class Stock:
    """The training samples that are dealt, and what is known of each.

    Attributes:
        labels: int64 [N], in [0, n_classes).
        n_classes: how many there are.
        owner: the natural client of each sample, int64 [N], or None where the dataset has none.
        attribute: what each sample has besides its class, int64 [N] in [0, n_attributes), or None where nobody knows.
        n_attributes: how many there are; 0 where they are not known.
    """

    labels: Ids
    n_classes: int
    owner: Ids | None = None
    attribute: Ids | None = None
    n_attributes: int = 0

    def __len__(self) -> int:
        """N."""
        return len(self.labels)


class Partition(Part, Protocol):
    """Who gets which samples.

    Attributes:
        takes_owners: whether clients are the dataset's own.
        takes_sizes: whether `deal` gives clients the sizes that it is told.
        takes_all: whether every sample is some client's, where all clients take part.
    """

    @property
    def takes_owners(self) -> bool:
        return False

    @property
    def takes_sizes(self) -> bool:
        return False

    @property
    def takes_all(self) -> bool:
        return True

    @abstractmethod
    def split(self, stock: Stock, n_clients: int | None, rng: np.random.Generator) -> Sequence[Ids] | Ragged:
        """Positions of each client's samples, sorted; disjoint; one array a client, or all in one where many are.

        Args:
            stock: N samples.
            n_clients: None where the partition decides (natural).
            rng: for whatever is drawn.

        Raises `DataError` or `OptionError` where the split is impossible, naming what would be feasible.
        """

    def deal(self, stock: Stock, sizes: Ids, rng: np.random.Generator) -> Sequence[Ids]:
        """Return sorted positions of each client's samples, disjoint: sizes[k] for client k, all samples together.

        Where not every sample can be some client's (`takes_all` is false), sizes are in these proportions, each to
        within one sample, and as large as the partition allows. A partition writes it where `takes_sizes`: for
        `partition=quantity`, which chooses the sizes.

        Args:
            stock: N samples.
            sizes: of each client, positive, int64 [K] that sums to N.
            rng: for whatever is drawn.

        Raises `OptionError` where the split is impossible.
        """
        raise OptionError(f"{type(self).__name__} chooses the sizes of its {len(sizes)} clients itself")
