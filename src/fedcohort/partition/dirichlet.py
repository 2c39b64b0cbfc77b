"""Dirichlet label skew (Li et al. 2022, NIID-Bench, "distribution-based label imbalance"; Yurochkin et al. 2019).

    for each class c:  p_c ~ Dir_K(alpha, ..., alpha),  client k gets the share p_{c,k} of the samples of class c

With a small alpha clients have few classes and unequal sizes; with a large alpha clients are similar. (Hsu et al. 2019
draw a Dirichlet distribution over classes for each client instead, with equal sizes.)

Under partition=quantity with drawn sizes n_k:   g_{k,c} ~ Gamma(alpha),   N_{k,c} = r_k g_{k,c} s_c, where r and s are
such that sum_c N_{k,c} = n_k and sum_k N_{k,c} is the size of class c. With r = 1, s normalises g to the p_c above;
with s = 1, r normalises g to the clients of Hsu et al. Both draws are this one with one margin free.

Departures from the paper:
- The proportions are drawn once; then clients below `min_samples` get random samples of the largest clients. The
  released codes repeat the draw until every client has 10 samples, which does not end for small alpha or many clients.
- The released codes set a client's share to zero once it has N/K samples, which the paper does not mention. Not here.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedcohort import ranges
from fedcohort.component import ONE_CLASS_PER_SAMPLE, Requirement
from fedcohort.errors import OptionError
from fedcohort.maths.dirichlet import draw_dirichlet, draw_log_gamma
from fedcohort.partition import tables
from fedcohort.partition.base import Partition, SamplePool
from fedcohort.types import Ids


@dataclass(frozen=True)
class Dirichlet(Partition):
    """A partition that draws each class's proportions over clients from a Dirichlet distribution.

    Attributes:
        alpha: concentration parameter; small values give strong label skew.
        min_samples: smallest number of samples of a client, training and validation together.
    """

    takes_sizes: ClassVar[bool] = True

    alpha: float
    min_samples: int

    requirements: ClassVar[frozenset[Requirement]] = frozenset({ONE_CLASS_PER_SAMPLE})

    def __post_init__(self) -> None:
        ranges.number("alpha", self.alpha, "(0, inf)")
        ranges.integer("min_samples", self.min_samples, "[1, inf)")

    def split(self, sample_pool: SamplePool, n_clients: int | None, rng: np.random.Generator) -> list[Ids]:
        """Return sorted positions of each client's samples: disjoint, all samples of `sample_pool` together.

        Arguments are those of `Partition.split`. Raises `OptionError` if there are too few samples.
        """
        K, N = tables.require_samples_for_clients("dirichlet", n_clients, len(sample_pool)), len(sample_pool)
        tables.require_min_samples(self.min_samples, N, K)
        class_samples_of_clients: list[list[Ids]] = [[] for _ in range(K)]
        for c in range(sample_pool.n_classes):
            class_rows = rng.permutation(np.flatnonzero(sample_pool.labels == c))
            cut_points = np.rint(np.cumsum(draw_dirichlet(self.alpha, K, rng))[:-1] * len(class_rows)).astype(np.int64)
            for k, class_samples in enumerate(np.split(class_rows, np.minimum(cut_points, len(class_rows)))):
                class_samples_of_clients[k].append(class_samples)
        client_samples = [rng.permutation(np.concatenate(class_parts)) for class_parts in class_samples_of_clients]
        return [np.sort(sample_ids) for sample_ids in tables.enlarge_small_clients(client_samples, self.min_samples)]

    def deal(self, sample_pool: SamplePool, sizes: Ids, rng: np.random.Generator) -> list[Ids]:
        """Return sorted positions of each client's samples: sizes[k] of client k, with the class shares that are drawn.

        Arguments are those of `Partition.deal`. Raises `OptionError` if a client has fewer than `min_samples` samples.
        """
        K, smallest_size = len(sizes), int(sizes.min())
        if self.min_samples > smallest_size:
            raise OptionError(
                f"partition.min_samples={self.min_samples} is more than the {smallest_size} samples of the smallest "
                f"of {K} clients; feasible: partition.min_samples<={smallest_size}"
            )
        class_sizes = np.bincount(sample_pool.labels, minlength=sample_pool.n_classes)
        present_classes = np.flatnonzero(class_sizes)
        log_weights = draw_log_gamma(self.alpha, (K, len(present_classes)), rng)
        class_shares = tables.scale_table_to_sums(log_weights, sizes, class_sizes[present_classes])
        count_table = tables.round_table_to_sums(class_shares, sizes, class_sizes[present_classes])
        return tables.draw_samples_by_table(np.searchsorted(present_classes, sample_pool.labels), count_table, rng)
