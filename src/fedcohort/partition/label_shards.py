"""Label shards (McMahan et al. 2017, Sec. 3, "pathological non-IID"): most clients have one or two classes.

    samples are sorted by label and cut into K * shards pieces of equal size; each client gets `shards` random pieces

Departures from the paper:
- Samples are shuffled within a class first, so that all shards of a class have the same distribution.
- If K * shards does not divide the number of samples, the sizes of shards differ by one.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedcohort import ranges
from fedcohort.component import ONE_CLASS_PER_SAMPLE, Requirement
from fedcohort.errors import OptionError
from fedcohort.partition.base import Partition, SamplePool
from fedcohort.partition.tables import equal_sizes, require_samples_for_clients
from fedcohort.types import Ids


@dataclass(frozen=True)
class LabelShards(Partition):
    """A partition that sorts the samples by class, cuts them into shards, and gives each client some shards.

    Attributes:
        shards: number of shards per client.
    """

    takes_sizes: ClassVar[bool] = True
    requirements: ClassVar[frozenset[Requirement]] = frozenset({ONE_CLASS_PER_SAMPLE})

    shards: int

    def __post_init__(self) -> None:
        ranges.integer("shards", self.shards, "[1, inf)")

    def split(self, sample_pool: SamplePool, n_clients: int | None, rng: np.random.Generator) -> list[Ids]:
        """Return sorted positions of each client's samples: disjoint, all samples of `sample_pool` together.

        Arguments are those of `Partition.split`. Raises `OptionError` if there are fewer samples than shards.
        """
        K = require_samples_for_clients("label_shards", n_clients, N := len(sample_pool))
        # More than N // K shards are rejected, and their sizes need no memory.
        return self._cut_label_shards(
            sample_pool, equal_sizes(N, K), equal_sizes(N, K * min(self.shards, N // K + 1)), rng
        )

    def deal(self, sample_pool: SamplePool, sizes: Ids, rng: np.random.Generator) -> list[Ids]:
        """Return sorted positions of each client's samples: sizes[k] of client k, in `shards` shards of equal size.

        Arguments are those of `Partition.deal`. Raises `OptionError` if a client has fewer samples than shards.
        """
        return self._cut_label_shards(sample_pool, sizes, None, rng)

    def _cut_label_shards(
        self, sample_pool: SamplePool, sizes: Ids, shard_sizes: Ids | None, rng: np.random.Generator
    ) -> list[Ids]:
        """Return the sorted positions of each client's samples, in shards of the samples sorted by class.

        Args:
            sample_pool: the N samples to distribute.
            sizes: number of samples of each client, [n_clients].
            shard_sizes: number of samples of each shard, [n_clients x shards]; None to cut each of `sizes` into equal
                shards.
            rng: random generator of the order of samples within a class, and of the shards.
        """
        K, smallest_size = len(sizes), int(sizes.min())
        if smallest_size < self.shards:
            raise OptionError(
                f"partition.shards={self.shards} is more than the {smallest_size} samples of the smallest of {K} "
                f"clients; feasible: partition.shards<={smallest_size}"
            )
        shuffled_rows = rng.permutation(len(sample_pool))
        rows_sorted_by_label = shuffled_rows[np.argsort(sample_pool.labels[shuffled_rows], kind="stable")]
        shards_of_client = rng.permutation(K * self.shards).reshape(K, self.shards)
        if shard_sizes is None:
            shard_sizes = np.empty(K * self.shards, dtype=np.int64)
            shard_sizes[shards_of_client] = np.stack([equal_sizes(n, self.shards) for n in sizes.tolist()])
        rows_by_shard = np.split(rows_sorted_by_label, np.cumsum(shard_sizes)[:-1])
        return [
            np.sort(np.concatenate([rows_by_shard[i] for i in client_shards])) for client_shards in shards_of_client
        ]
