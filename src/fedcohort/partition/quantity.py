"""Quantity skew: the clients' sizes are drawn, and another partition (`base`) chooses samples for these sizes.

    n_k = min_samples + (N - K min_samples) w_k / sum_j w_j,   to within one sample, and sum_k n_k = N
    lognormal:   w_k = exp(spread z_k),      z_k ~ N(0, 1)
    power_law:   w_k = rank_k^-spread,       ranks 1 to K are a random permutation

With spread = 0 all clients have equal sizes. Synthetic(a, b) uses the lognormal law (exp(N(4, 2^2)) + 50 samples); with
a spread of 1 the largest of 50 clients has about nine times the median. The power law with a spread of 1 is Zipf's law:
the largest client has as many samples as the second, third and sixth together.

Sizes are the same under every `base` that distributes all samples: iid (quantity skew only), dominant_class,
label_shards, dirichlet, inner_dirichlet, and attribute with margins=data. Under attribute with margins=even they have
the same proportions. natural, extended_dirichlet, and attribute with `counts`, set the sizes themselves and are not a
valid `base`.

Departures from the paper: there is no paper. NIID-Bench (Li et al. 2022) draws w from a Dirichlet distribution.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedcohort import ranges
from fedcohort.component import Requirement
from fedcohort.errors import OptionError
from fedcohort.partition.base import Partition, SamplePool
from fedcohort.partition.tables import make_proportional_sizes, require_min_samples, require_samples_for_clients
from fedcohort.types import Ids, Values


@dataclass(frozen=True)
class Quantity(Partition):
    """A partition that draws the clients' sizes, and lets another partition choose the samples.

    Attributes:
        base: partition that chooses the samples, given the clients' sizes.
        law: distribution of the sizes: "lognormal", or "power_law", in which sizes fall with the clients' ranks.
        spread: standard deviation of the logarithm of the sizes with law=lognormal, exponent of the rank with
            law=power_law; 0 for equal sizes.
        min_samples: smallest number of samples of a client, training and validation together.
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
            raise ranges.range_error(
                "base", "a partition that supports drawn sizes, as in partition@partition.base=dirichlet", self.base
            )

    @property
    def takes_all(self) -> bool:
        return self.base.takes_all

    @property
    def requirements(self) -> frozenset[Requirement]:
        return self.base.requirements

    def split(self, sample_pool: SamplePool, n_clients: int | None, rng: np.random.Generator) -> Sequence[Ids]:
        """Return sorted positions of each client's samples: disjoint, all samples together if `takes_all`.

        Arguments are those of `Partition.split`. Raises `OptionError` if there are too few samples.
        """
        K, N = require_samples_for_clients("quantity", n_clients, len(sample_pool)), len(sample_pool)
        require_min_samples(self.min_samples, N, K)
        client_sizes = make_proportional_sizes(N, self.draw_size_weights(K, rng), self.min_samples)
        try:
            client_samples = self.base.deal(sample_pool, client_sizes, rng)
        except OptionError as error:  # the base names its options without the prefix that they have here
            raise OptionError(str(error).replace("partition.", "partition.base.")) from error
        if (smallest_size := min(len(sample_ids) for sample_ids in client_samples)) < self.min_samples:
            raise OptionError(
                f"partition.min_samples={self.min_samples} is more than the {smallest_size} samples of the smallest "
                f"of {K} clients, because the base partition uses {sum(map(len, client_samples))} of {N}; "
                f"feasible: partition.min_samples<={smallest_size}, a smaller partition.spread, or fewer clients"
            )
        return client_samples

    def draw_size_weights(self, n_clients: int, rng: np.random.Generator) -> Values:
        """Draw a weight for each of `n_clients` clients, proportional to its size, [n_clients]; the largest is 1."""
        log_weights = self.spread * (
            -np.log(1.0 + rng.permutation(n_clients)) if self.law == "power_law" else rng.standard_normal(n_clients)
        )
        return np.asarray(np.exp(log_weights - log_weights.max()))
