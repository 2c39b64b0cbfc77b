"""Every client is a random sample of the whole (McMahan et al. 2017, "IID").

    sizes N/K, the first N mod K clients one more; samples shuffled

Departures from the paper: none.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedcohort.partition.base import Partition
from fedcohort.partition.sizes import even, require
from fedcohort.types import Ids


@dataclass(frozen=True)
class Iid(Partition):
    takes_sizes: ClassVar[bool] = True

    def split(
        self, labels: Ids, n_classes: int, n_clients: int | None, owner: Ids | None, rng: np.random.Generator
    ) -> list[Ids]:
        """Deal the samples: sorted positions of each client; disjoint and exhaustive.

        Raises `OptionError` without enough samples.
        """
        K = require("iid", n_clients, len(labels))
        return self.deal(labels, n_classes, even(len(labels), K), rng)

    def deal(self, labels: Ids, n_classes: int, sizes: Ids, rng: np.random.Generator) -> list[Ids]:
        """Return sorted positions of each client's samples, sizes[k] for client k."""
        return [np.sort(part) for part in np.split(rng.permutation(len(labels)), np.cumsum(sizes)[:-1])]
