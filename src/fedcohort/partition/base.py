"""The contract of a partition: which training sample belongs to which client."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from fedcohort.data.ragged import Ragged
from fedcohort.errors import OptionError
from fedcohort.part import Part
from fedcohort.types import Ids


class Partition(Part, Protocol):
    """Who gets which samples.

    Attributes:
        takes_owners: whether clients are the dataset's own.
        takes_sizes: whether `deal` gives clients as many samples as it is told.
    """

    @property
    def takes_owners(self) -> bool:
        return False

    @property
    def takes_sizes(self) -> bool:
        return False

    @abstractmethod
    def split(
        self, labels: Ids, n_classes: int, n_clients: int | None, owner: Ids | None, rng: np.random.Generator
    ) -> Sequence[Ids] | Ragged:
        """Positions of each client's samples, sorted; disjoint; one array a client, or all in one where many are.

        Args:
            labels: int64 [N].
            n_classes: how many there are.
            n_clients: None where the partition decides (natural).
            owner: int64 [N], the natural client of each sample, or None where the dataset has none.
            rng: for whatever is drawn.

        Raises `DataError` or `OptionError` where the split is impossible, naming what would be feasible.
        """

    def deal(self, labels: Ids, n_classes: int, sizes: Ids, rng: np.random.Generator) -> Sequence[Ids]:
        """Return sorted positions of each client's samples: sizes[k] for client k, disjoint and exhaustive.

        A partition writes it where `takes_sizes`: for `partition=quantity`, which chooses the sizes.

        Args:
            labels: int64 [N].
            n_classes: how many there are.
            sizes: of each client, positive, int64 [K] that sums to N.
            rng: for whatever is drawn.

        Raises `OptionError` where the split is impossible.
        """
        raise OptionError(f"{type(self).__name__} chooses the sizes of its {len(sizes)} clients itself")
