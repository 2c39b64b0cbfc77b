"""Each natural client of the dataset is a client: a writer, a subject, a speaking role.

    client k = the k-th owner in the order of the owners' ids

With `clients=null` all owners are clients. With `clients=n` the first n are, and the samples of the others are unused.

Departures from the paper: none (LEAF, Caldas et al. 2018, has the same partition).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedcohort.data.ragged import RaggedPositions
from fedcohort.errors import DataError, OptionError
from fedcohort.partition.base import Partition, SamplePool


@dataclass(frozen=True)
class Natural(Partition):
    """A partition by the natural clients of the dataset, such as writers or subjects."""

    takes_owners: ClassVar[bool] = True

    def split(self, sample_pool: SamplePool, n_clients: int | None, rng: np.random.Generator) -> RaggedPositions:
        """Return the sorted positions of the samples of the first `n_clients` natural clients, or of all for None.

        Arguments are those of `Partition.split`. Raises `DataError` if the dataset has no natural clients,
        `OptionError` if it has too few.
        """
        owner_of_sample = sample_pool.owner
        if owner_of_sample is None:
            raise DataError(
                "partition=natural needs a client column, but the data have no such column: choose another partition "
                "(heterogeneity=iid), or name the column (dataset=folder dataset.client=...)"
            )
        owner_sizes = np.bincount(owner_of_sample)
        owner_offsets = np.concatenate([[0], np.cumsum(owner_sizes[owner_sizes > 0])])
        n_owners = len(owner_offsets) - 1
        if n_clients is not None and n_clients > n_owners:
            raise OptionError(
                f"clients={n_clients} exceeds the {n_owners} natural clients; feasible: clients<={n_owners} or "
                "clients=null"
            )
        client_offsets = owner_offsets if n_clients is None else owner_offsets[: n_clients + 1]
        return RaggedPositions(np.argsort(owner_of_sample, kind="stable")[: client_offsets[-1]], client_offsets)
