"""A client is whoever made the samples: a writer, a subject, a speaking role.

    client k = the k-th owner in the order of the owners' ids

`clients=null` takes all owners; `clients=n` the first n, and the others' samples stay unused.

Departures from the paper: none (LEAF, Caldas et al. 2018, splits so).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedcohort.data.ragged import Ragged
from fedcohort.errors import DataError, OptionError
from fedcohort.partition.base import Partition, Stock


@dataclass(frozen=True)
class Natural(Partition):
    takes_owners: ClassVar[bool] = True

    def split(self, stock: Stock, n_clients: int | None, rng: np.random.Generator) -> Ragged:
        """Return the sorted positions of each owner's samples; disjoint, exhaustive where all owners take part.

        Raises `DataError` where the dataset has no owners and `OptionError` where it has too few.
        """
        owner = stock.owner
        if owner is None:
            raise DataError(
                "no client column, which partition=natural needs; choose another partition (heterogeneity=iid)"
                " or name the column (dataset=folder dataset.client=...)"
            )
        sizes = np.bincount(owner)
        starts = np.concatenate([[0], np.cumsum(sizes[sizes > 0])])
        found = len(starts) - 1
        if n_clients is not None and n_clients > found:
            raise OptionError(
                f"clients={n_clients} exceeds the {found} natural clients; feasible: clients<={found} or clients=null"
            )
        offsets = starts if n_clients is None else starts[: n_clients + 1]
        order = np.argsort(owner, kind="stable")
        return Ragged(order[: offsets[-1]], offsets)
