"""The contract of a partition, which assigns training samples to clients."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Protocol

import numpy as np

from fedcohort.component import Component
from fedcohort.data.ragged import RaggedPositions
from fedcohort.errors import OptionError
from fedcohort.types import Ids, ReadOnly, read_only


@dataclass(frozen=True)
class SamplePool(ReadOnly):
    """The N training samples that a partition distributes, with their classes, natural clients and attributes.

    The properties select these samples from the arrays of all samples. They are computed on first use, as a copy of a
    large dataset's array takes memory that most partitions do not need.

    Attributes:
        all_labels: class of each training sample of the dataset, int64 [all], in [0, n_classes).
        n_classes: number of classes.
        all_owners: natural client of each training sample, int64 [all], or None if the dataset has no natural clients.
        all_attributes: attribute of each training sample (such as its background), int64 [all], in [0, n_attributes),
            or None if the dataset has none.
        n_attributes: number of attributes; 0 without attributes.
        server_positions: sorted positions of the samples that the server holds, which are not distributed.
    """

    all_labels: Ids
    n_classes: int
    all_owners: Ids | None = None
    all_attributes: Ids | None = None
    n_attributes: int = 0
    server_positions: Ids = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def __len__(self) -> int:
        """Return the number of samples that the partition distributes."""
        return len(self.all_labels) - len(self.server_positions)

    @cached_property
    def labels(self) -> Ids:
        """Class of each sample that the partition distributes, int64 [N]."""
        return self._keep_distributed_samples(self.all_labels)

    @cached_property
    def owner(self) -> Ids | None:
        """Natural client of each sample that the partition distributes, int64 [N]; None without natural clients."""
        return None if self.all_owners is None else self._keep_distributed_samples(self.all_owners)

    @cached_property
    def attribute(self) -> Ids | None:
        """Attribute of each sample that the partition distributes, int64 [N]; None without attributes."""
        return None if self.all_attributes is None else self._keep_distributed_samples(self.all_attributes)

    def _keep_distributed_samples(self, sample_column: Ids) -> Ids:
        return read_only(
            np.delete(sample_column, self.server_positions) if len(self.server_positions) else sample_column
        )


class Partition(Component, Protocol):
    """A component that distributes training samples among clients.

    Attributes:
        takes_owners: whether the clients are the natural clients of the dataset.
        takes_sizes: whether `deal` is implemented, so that partition=quantity can draw the clients' sizes.
        takes_all: whether each sample goes to a client if all clients take part.
    """

    takes_owners: ClassVar[bool] = False

    @property
    def takes_sizes(self) -> bool:
        return False

    @property
    def takes_all(self) -> bool:
        return True

    @abstractmethod
    def split(
        self, sample_pool: SamplePool, n_clients: int | None, rng: np.random.Generator
    ) -> Sequence[Ids] | RaggedPositions:
        """Return sorted, disjoint positions of each client's samples: one array per client, or a `RaggedPositions`.

        Args:
            sample_pool: the N samples to distribute.
            n_clients: number of clients; None for all natural clients.
            rng: random generator for all choices.

        Raises:
            DataError, OptionError: the split is impossible; the message names feasible values.
        """

    def deal(self, sample_pool: SamplePool, sizes: Ids, rng: np.random.Generator) -> Sequence[Ids]:
        """Return sorted, disjoint positions of each client's samples: sizes[k] of client k.

        A partition with `takes_sizes` implements this method, which partition=quantity calls with the sizes that it
        draws. If `takes_all` is false, the clients' sizes are only proportional to `sizes`, each to within one sample,
        and as large as the partition allows.

        Args:
            sample_pool: the N samples to distribute.
            sizes: positive number of samples of each client, int64 [n_clients], with sum N.
            rng: random generator for all choices.

        Raises:
            OptionError: the split is impossible.
            DataError: the data lack a property that the partition needs.
        """
        raise OptionError(
            f"partition.base: {type(self).__name__} can't use the {len(sizes)} sizes that partition=quantity draws: "
            "choose another partition@partition.base"
        )
