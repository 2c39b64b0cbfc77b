"""Label shards (McMahan et al. 2017, Sec. 3, "pathological non-IID"): most clients see one or two classes.

    samples sorted by label, cut into K * shards pieces of equal size, dealt at random, `shards` to each client

Departures from the paper:
- within a class the samples are shuffled first, so that shards of one class are alike;
- sizes differ by at most one a shard where K * shards does not divide the samples.
"""

from dataclasses import dataclass

import numpy as np

from fedcohort import ranges
from fedcohort.errors import OptionError
from fedcohort.partition.base import Partition
from fedcohort.partition.sizes import even, require
from fedcohort.types import Ids


@dataclass(frozen=True)
class LabelShards(Partition):
    """Each client gets some shards of the data sorted by class.

    Attributes:
        shards: of each client; 2 in McMahan et al. and in FedMABA.
    """

    shards: int

    def __post_init__(self) -> None:
        ranges.integer("shards", self.shards, "[1, inf)")

    def split(
        self, labels: Ids, n_classes: int, n_clients: int | None, owner: Ids | None, rng: np.random.Generator
    ) -> list[Ids]:
        """Deal the samples: sorted positions of each client; disjoint and exhaustive.

        Raises `OptionError` without enough samples.
        """
        K, N = require("label_shards", n_clients, len(labels)), len(labels)
        if K * self.shards > N:
            raise OptionError(
                f"partition.shards={self.shards} for {K} clients is more than the {N} training samples; "
                f"feasible: partition.shards<={N // K}"
            )
        shuffled = rng.permutation(N)
        by_label = shuffled[np.argsort(labels[shuffled], kind="stable")]
        pieces = np.split(by_label, np.cumsum(even(N, K * self.shards))[:-1])
        hands = rng.permutation(K * self.shards).reshape(K, self.shards)
        return [np.sort(np.concatenate([pieces[i] for i in mine])) for mine in hands]
