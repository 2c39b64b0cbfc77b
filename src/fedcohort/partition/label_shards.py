"""Label shards (McMahan et al. 2017, Sec. 3, "pathological non-IID"): most clients see one or two classes.

    samples sorted by label, cut into K * shards pieces of equal size, dealt at random, `shards` to each client

Departures from the paper:
- within a class the samples are shuffled first, so that shards of one class are alike;
- sizes differ by at most one a shard where K * shards does not divide the samples.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedcohort import ranges
from fedcohort.component import CLASSES, Requirement
from fedcohort.errors import OptionError
from fedcohort.partition.base import Partition, Stock
from fedcohort.partition.sizes import even, require
from fedcohort.types import Ids


@dataclass(frozen=True)
class LabelShards(Partition):
    """Each client gets some shards of the data sorted by class.

    Attributes:
        shards: of each client; 2 in McMahan et al. and in FedMABA.
    """

    takes_sizes: ClassVar[bool] = True
    requirements: ClassVar[frozenset[Requirement]] = frozenset({CLASSES})

    shards: int

    def __post_init__(self) -> None:
        ranges.integer("shards", self.shards, "[1, inf)")

    def split(self, stock: Stock, n_clients: int | None, rng: np.random.Generator) -> list[Ids]:
        """Deal the samples: sorted positions of each client; disjoint and exhaustive.

        Raises `OptionError` without enough samples.
        """
        K, N = require("label_shards", n_clients, len(stock)), len(stock)
        if K * self.shards > N:
            raise OptionError(
                f"partition.shards={self.shards} for {K} clients is more than the {N} training samples; "
                f"feasible: partition.shards<={N // K}"
            )
        by_label = _sort(stock.labels, rng)
        hands = rng.permutation(K * self.shards).reshape(K, self.shards)
        return _hand_out(by_label, even(N, K * self.shards), hands)

    def deal(self, stock: Stock, sizes: Ids, rng: np.random.Generator) -> list[Ids]:
        """Return sorted positions of each client's samples: `shards` pieces, each a share of its sizes[k] samples.

        Raises `OptionError` where a client has fewer samples than pieces.
        """
        K, least = len(sizes), int(sizes.min())
        if least < self.shards:
            raise OptionError(
                f"partition.shards={self.shards} is more than the {least} samples of the smallest of {K} clients; "
                f"feasible: partition.shards<={least}"
            )
        by_label = _sort(stock.labels, rng)
        hands = rng.permutation(K * self.shards).reshape(K, self.shards)
        pieces = np.empty(K * self.shards, dtype=np.int64)
        pieces[hands] = np.stack([even(size, self.shards) for size in sizes.tolist()])
        return _hand_out(by_label, pieces, hands)


def _sort(labels: Ids, rng: np.random.Generator) -> Ids:
    """Return all positions by label, in a random order within a class."""
    shuffled = rng.permutation(len(labels))
    return shuffled[np.argsort(labels[shuffled], kind="stable")]


def _hand_out(by_label: Ids, sizes: Ids, hands: np.ndarray) -> list[Ids]:
    """Cut positions into pieces of `sizes`, and return those of each row of `hands`, sorted."""
    pieces = np.split(by_label, np.cumsum(sizes)[:-1])
    return [np.sort(np.concatenate([pieces[i] for i in mine])) for mine in hands]
