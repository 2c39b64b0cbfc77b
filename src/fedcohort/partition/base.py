"""The contract of a partition: which training sample belongs to which client."""

from typing import Protocol

import numpy as np

from fedcohort.types import Ids


class Partition(Protocol):
    """A partition whose clients are the dataset's own says so in a ClassVar `takes_owners`; others need none."""

    def split(
        self, labels: Ids, n_classes: int, n_clients: int | None, owner: Ids | None, rng: np.random.Generator
    ) -> list[Ids]:
        """Positions of each client's samples, sorted; disjoint.

        labels: int64 [N]. n_clients: None where the partition decides (natural).
        owner: int64 [N], the natural client of each sample, or None where the dataset has none.
        Raises `DataError` or `OptionError` where the split is impossible, naming what would be feasible.
        """
        ...
