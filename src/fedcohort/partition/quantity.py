"""Quantity skew over another partition: who has how many samples is drawn, what they are is that partition's business.

    n_k = min_samples + (N - K min_samples) w_k / sum_j w_j,   to within one sample, and sum_k n_k = N
    lognormal:   w_k = exp(spread z_k),      z_k ~ N(0, 1)
    power_law:   w_k = rank_k^-spread,       ranks 1 to K dealt at random

spread = 0 leaves clients alike. lognormal is the law of Synthetic(a, b) (there exp(N(4, 2^2)) + 50 samples) and of many
natural populations; a spread of 1 makes the largest of 50 clients some nine times the median. power_law with a spread
of 1 is Zipf's: the largest has as much as the second, the third and the sixth together. Sizes are the same under every
`base` that deals all samples: iid (quantity skew alone), dominant_class, label_shards, dirichlet, attribute with
margins=data. Where attribute leaves samples over (margins=even) sizes have the same proportions. It doesn't go over
natural, nor over attribute's `counts`, which say themselves who has how many.

Departures from the paper: there is none. NIID-Bench (Li et al. 2022) draws w from a Dirichlet distribution.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedcohort import ranges
from fedcohort.component import Requirement
from fedcohort.errors import OptionError
from fedcohort.partition.base import Partition, Stock
from fedcohort.partition.sizes import proportional, require
from fedcohort.types import Ids, Values


@dataclass(frozen=True)
class Quantity(Partition):
    """The partition, with its options.

    Attributes:
        base: the partition that deals the samples.
        law: of the sizes, "lognormal" or "power_law".
        spread: of lognormal the standard deviation of log w, of power_law the exponent; 0: all alike.
        min_samples: every client gets at least so many, of training and validation together.
    """

    base: Partition
    law: str
    spread: float
    min_samples: int

    def __post_init__(self) -> None:
        ranges.choice("law", self.law, "lognormal", "power_law")
        ranges.number("spread", self.spread, "[0, 20]")
        ranges.integer("min_samples", self.min_samples, "[1, inf)")
        if not getattr(self.base, "takes_sizes", False):
            allowed = "a partition that deals parts of any size, as in partition@partition.base=dirichlet"
            raise ranges.refuse("base", allowed, self.base)

    @property
    def takes_all(self) -> bool:
        return self.base.takes_all

    @property
    def requirements(self) -> frozenset[Requirement]:
        return self.base.requirements

    def split(self, stock: Stock, n_clients: int | None, rng: np.random.Generator) -> Sequence[Ids]:
        """Deal the samples: sorted positions of each client; disjoint and exhaustive.

        Raises `OptionError` without enough samples.
        """
        K, N = require("quantity", n_clients, len(stock)), len(stock)
        if self.min_samples > N // K:
            raise OptionError(
                f"partition.min_samples={self.min_samples} is more than {N} training samples give each of {K} clients; "
                f"feasible: partition.min_samples<={N // K}"
            )
        sizes = proportional(N, self.weights(K, rng), self.min_samples)
        try:
            parts = self.base.deal(stock, sizes, rng)
        except OptionError as error:  # it knows its options as those of a partition by itself
            raise OptionError(str(error).replace("partition.", "partition.base.")) from error
        if (least := min(len(part) for part in parts)) < self.min_samples:
            raise OptionError(
                f"partition.min_samples={self.min_samples} is more than the {least} samples of the smallest of {K} "
                f"clients, since the partition deals {sum(len(part) for part in parts)} of {N}; feasible: "
                f"partition.min_samples<={least}, a smaller partition.spread, or fewer clients"
            )
        return parts

    def weights(self, n_clients: int, rng: np.random.Generator) -> Values:
        """Draw each client's weight, [n_clients], of which the largest is 1."""
        if self.law == "power_law":
            log_weights = -self.spread * np.log(1.0 + rng.permutation(n_clients))
        else:
            log_weights = self.spread * rng.standard_normal(n_clients)
        weights: Values = np.exp(log_weights - log_weights.max())
        return weights
