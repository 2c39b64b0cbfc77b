"""Every client is a random sample of the whole (McMahan et al. 2017, "IID").

    sizes N/K, the first N mod K clients one more; samples shuffled

Departures from the paper: none.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedcohort.partition.base import Partition, Stock
from fedcohort.partition.sizes import even, require
from fedcohort.types import Ids


@dataclass(frozen=True)
class Iid(Partition):
    takes_sizes: ClassVar[bool] = True

    def split(self, stock: Stock, n_clients: int | None, rng: np.random.Generator) -> list[Ids]:
        """Deal the samples: sorted positions of each client; disjoint and exhaustive.

        Raises `OptionError` without enough samples.
        """
        K = require("iid", n_clients, len(stock))
        return self.deal(stock, even(len(stock), K), rng)

    def deal(self, stock: Stock, sizes: Ids, rng: np.random.Generator) -> list[Ids]:
        """Return sorted positions of each client's samples, sizes[k] for client k."""
        return [np.sort(part) for part in np.split(rng.permutation(len(stock)), np.cumsum(sizes)[:-1])]
