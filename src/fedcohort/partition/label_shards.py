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
from fedcohort.partition.base import Partition, Stock
from fedcohort.partition.sizes import equal_sizes, require_samples_for_clients
from fedcohort.types import Ids


@dataclass(frozen=True)
class LabelShards(Partition):
    """Gives each client some shards of the data, which are sorted by class.

    Attributes:
        shards: number of shards per client; 2 in McMahan et al. and in FedMABA.
    """

    takes_sizes: ClassVar[bool] = True
    requirements: ClassVar[frozenset[Requirement]] = frozenset({ONE_CLASS_PER_SAMPLE})

    shards: int

    def __post_init__(self) -> None:
        ranges.integer("shards", self.shards, "[1, inf)")

    def split(self, stock: Stock, n_clients: int | None, rng: np.random.Generator) -> list[Ids]:
        """Return sorted positions of each client's samples: disjoint, all samples together.

        Raises `OptionError` if there are fewer samples than shards.
        """
        K, N = require_samples_for_clients("label_shards", n_clients, len(stock)), len(stock)
        if K * self.shards > N:
            raise OptionError(
                f"partition.shards={self.shards} for {K} clients is more than the {N} training samples; "
                f"feasible: partition.shards<={N // K}"
            )
        by_label = _sort(stock.labels, rng)
        shards = rng.permutation(K * self.shards).reshape(K, self.shards)
        return _cut(by_label, equal_sizes(N, K * self.shards), shards)

    def deal(self, stock: Stock, sizes: Ids, rng: np.random.Generator) -> list[Ids]:
        """Return sorted positions of each client's samples: sizes[k] of client k, in `shards` pieces of equal size.

        Raises `OptionError` if a client has fewer samples than pieces.
        """
        K, least = len(sizes), int(sizes.min())
        if least < self.shards:
            raise OptionError(
                f"partition.shards={self.shards} is more than the {least} samples of the smallest of {K} clients; "
                f"feasible: partition.shards<={least}"
            )
        by_label = _sort(stock.labels, rng)
        shards = rng.permutation(K * self.shards).reshape(K, self.shards)
        shard_sizes = np.empty(K * self.shards, dtype=np.int64)
        shard_sizes[shards] = np.stack([equal_sizes(size, self.shards) for size in sizes.tolist()])
        return _cut(by_label, shard_sizes, shards)


def _sort(labels: Ids, rng: np.random.Generator) -> Ids:
    """Return all positions sorted by label, in random order within a class."""
    shuffled = rng.permutation(len(labels))
    return shuffled[np.argsort(labels[shuffled], kind="stable")]


def _cut(by_label: Ids, shard_sizes: Ids, shards: np.ndarray) -> list[Ids]:
    """Cut positions into shards and return each client's, sorted; shards: the clients' shard numbers [K, shards]."""
    pieces = np.split(by_label, np.cumsum(shard_sizes)[:-1])
    return [np.sort(np.concatenate([pieces[i] for i in client_shards])) for client_shards in shards]
