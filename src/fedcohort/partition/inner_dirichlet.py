"""Inner Dirichlet: each client has a given size, and class proportions from a Dirichlet distribution.

Source: Acar et al., "Federated Learning Based on Dynamic Regularization" (FedDyn), ICLR 2021, arXiv 2111.04263. The
rule was read in FedLab's implementation (`client_inner_dirichlet_partition`), which names FedDyn as its source.

    client k:  p_k ~ Dir(alpha, ..., alpha) over the classes;  n_k samples, each of a class that is drawn from p_k

A class that has no sample left is drawn by no client any more: p_k is then normalised over the other classes. Thus all
samples are distributed, and clients of few classes get other ones if these run out. Sizes n_k are N/K, one more for
the first N mod K clients, unless partition=quantity draws them. Hsu et al. 2019 (arXiv 1909.06335) have the same p_k.

partition=dirichlet under partition=quantity fits a table to both margins instead: there a class that many clients want
is shared by all of them, and here the clients that draw first have it.

Departures from the paper:
- FedLab draws the client of each sample at random among those that are not full. Here the order of all N draws is a
  uniform permutation, in which large clients draw more often. With equal sizes the two differ at the end only.
- Classes that have no samples at all are left out at the start.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float64

from fedcohort import ranges
from fedcohort.component import ONE_CLASS_PER_SAMPLE, Requirement
from fedcohort.maths.dirichlet import draw_log_gamma
from fedcohort.partition.base import Partition, SamplePool
from fedcohort.partition.tables import draw_samples_by_table, equal_sizes, require_samples_for_clients
from fedcohort.types import Ids

MAX_UNIFORM_DRAW = 1 - 1e-9  # so that the sum with a client's number stays below the next one, up to a million clients


@dataclass(frozen=True)
class InnerDirichlet(Partition):
    """A partition that draws each client's class proportions from a Dirichlet distribution, for given client sizes.

    Attributes:
        alpha: concentration parameter; small values give few classes per client.
    """

    takes_sizes: ClassVar[bool] = True
    requirements: ClassVar[frozenset[Requirement]] = frozenset({ONE_CLASS_PER_SAMPLE})

    alpha: float

    def __post_init__(self) -> None:
        ranges.number("alpha", self.alpha, "(0, inf)")

    def split(self, sample_pool: SamplePool, n_clients: int | None, rng: np.random.Generator) -> list[Ids]:
        """Return sorted positions of each client's samples: disjoint, all samples of `sample_pool` together.

        Arguments are those of `Partition.split`. Raises `OptionError` if there are fewer samples than clients.
        """
        K = require_samples_for_clients("inner_dirichlet", n_clients, len(sample_pool))
        return self.deal(sample_pool, equal_sizes(len(sample_pool), K), rng)

    def deal(self, sample_pool: SamplePool, sizes: Ids, rng: np.random.Generator) -> list[Ids]:
        """Return sorted positions of each client's samples: sizes[k] of client k, with the classes that it draws.

        Arguments are those of `Partition.deal`.
        """
        class_sizes = np.bincount(sample_pool.labels, minlength=sample_pool.n_classes)
        present_classes = np.flatnonzero(class_sizes)
        log_weights = draw_log_gamma(self.alpha, (len(sizes), len(present_classes)), rng)
        count_table = draw_class_counts(log_weights, sizes, class_sizes[present_classes], rng)
        return draw_samples_by_table(np.searchsorted(present_classes, sample_pool.labels), count_table, rng)


def draw_class_counts(
    log_weights: Float64[np.ndarray, "clients classes"], sizes: Ids, class_sizes: Ids, rng: np.random.Generator
) -> np.ndarray:
    """Return the number of samples of each class that every client draws, int64 [n_clients, n_classes].

    The clients' draws of single samples are in a random order. If a class runs out of samples, the draws up to its last
    sample are kept, and all later ones are repeated without this class. The distribution is that of one draw at a time.

    Args:
        log_weights: logarithm of each client's weight of each class, [n_clients, n_classes].
        sizes: number of samples that each client draws, [n_clients].
        class_sizes: number of samples of each class, positive, [n_classes]; their sum is at least that of `sizes`.
        rng: random generator of the draws.
    """
    remaining_samples, count_table = class_sizes.copy(), np.zeros(log_weights.shape, dtype=np.int64)
    client_of_draw = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))  # client of each draw that is to be made
    while len(client_of_draw):
        available_log_weights = np.where(remaining_samples > 0, log_weights, -np.inf)
        cumulative_weights = np.cumsum(
            np.exp(available_log_weights - available_log_weights.max(1, keepdims=True)), axis=1
        )
        # Client k has the numbers in (k, k + 1].
        cumulative_weights = cumulative_weights / cumulative_weights[:, -1:] + np.arange(len(sizes))[:, None]
        uniform_draws = client_of_draw + rng.random(len(client_of_draw)) * MAX_UNIFORM_DRAW
        drawn_classes = np.searchsorted(cumulative_weights.ravel(), uniform_draws, side="right") % len(class_sizes)
        exhausting_draw_ends = [
            int(drawn_positions[n - 1]) + 1
            for c, n in enumerate(remaining_samples.tolist())
            if n and len(drawn_positions := np.flatnonzero(drawn_classes == c)) >= n
        ]
        n_kept_draws = min(exhausting_draw_ends, default=len(client_of_draw))
        np.add.at(count_table, (client_of_draw[:n_kept_draws], drawn_classes[:n_kept_draws]), 1)
        remaining_samples -= np.bincount(drawn_classes[:n_kept_draws], minlength=len(class_sizes))
        client_of_draw = client_of_draw[n_kept_draws:]
    return count_table
