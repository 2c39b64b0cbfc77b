"""The contract of a partition: which training sample belongs to which client."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np

from fedcohort.component import Component
from fedcohort.data.ragged import Ragged
from fedcohort.errors import OptionError
from fedcohort.types import Ids, ReadOnly, read_only


@dataclass(frozen=True)
class Stock(ReadOnly):
    """The N training samples that are dealt, and what is known of each.

    What a partition doesn't ask for is never taken out of all samples' arrays: those are as large as a tenth of them.

    Attributes:
        all_labels: of all training samples, int64, in [0, n_classes).
        n_classes: how many there are.
        all_owners: the natural client of each sample, or None where the dataset has none.
        all_attributes: what each has besides its class, in [0, n_attributes), or None where nobody knows.
        n_attributes: how many there are; 0 where they are not known.
        held: positions of the samples that aren't dealt, sorted.
    """

    all_labels: Ids
    n_classes: int
    all_owners: Ids | None = None
    all_attributes: Ids | None = None
    n_attributes: int = 0
    held: Ids = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def __len__(self) -> int:
        """N."""
        return len(self.all_labels) - len(self.held)

    @cached_property
    def labels(self) -> Ids:
        """Of those that are dealt, [N]."""
        return self._dealt(self.all_labels)

    @cached_property
    def owner(self) -> Ids | None:
        """Of those that are dealt, [N], or None."""
        return None if self.all_owners is None else self._dealt(self.all_owners)

    @cached_property
    def attribute(self) -> Ids | None:
        """Of those that are dealt, [N], or None."""
        return None if self.all_attributes is None else self._dealt(self.all_attributes)

    def _dealt(self, values: Ids) -> Ids:
        dealt: Ids = read_only(np.delete(values, self.held) if len(self.held) else values)
        return dealt


class Partition(Component, Protocol):
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
