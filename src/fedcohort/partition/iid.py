"""Every client has a random sample of the data (McMahan et al. 2017, "IID").

    samples are shuffled; client k gets N/K of them, the first N mod K clients one more

Departures from the paper: none.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedcohort.partition.base import Partition, SamplePool
from fedcohort.partition.tables import equal_sizes, require_samples_for_clients
from fedcohort.types import Ids


@dataclass(frozen=True)
class Iid(Partition):
    """A partition that distributes the samples at random, with equal sizes."""

    takes_sizes: ClassVar[bool] = True

    def split(self, sample_pool: SamplePool, n_clients: int | None, rng: np.random.Generator) -> list[Ids]:
        """Return sorted positions of each client's samples: disjoint, all samples of `sample_pool` together.

        Arguments are those of `Partition.split`. Raises `OptionError` if there are fewer samples than clients.
        """
        K = require_samples_for_clients("iid", n_clients, len(sample_pool))
        return self.deal(sample_pool, equal_sizes(len(sample_pool), K), rng)

    def deal(self, sample_pool: SamplePool, sizes: Ids, rng: np.random.Generator) -> list[Ids]:
        """Return sorted positions of each client's samples: sizes[k] random samples of `sample_pool` for client k.

        Arguments are those of `Partition.deal`.
        """
        sample_order = rng.permutation(len(sample_pool))
        return [np.sort(sample_ids) for sample_ids in np.split(sample_order, np.cumsum(sizes)[:-1])]
