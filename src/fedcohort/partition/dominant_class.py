"""Some clients have a dominant class, the others are uniform (FLASH, Sec. IV-A; Ortego et al. 2021).

    round(fraction K) clients, at random:  round(share n_k) samples of one class, the others uniform over other classes
    all other clients:                     the classes in the proportions of the remaining samples

"30% non-IIDness" is fraction = .3 and share = .8. Sizes n_k are N/K, one more for the first N mod K clients, unless
partition=quantity draws them. Dominant classes are assigned round robin in a random order; a class without enough
remaining samples is skipped.

Departures from the paper: it states neither which class dominates nor what the uniform clients get. If a class runs
short, skewed clients' other samples and the uniform clients are only as uniform as the remaining samples allow. The
number of skewed clients and their shares are always exact; otherwise the split raises an error.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Int64

from fedcohort import ranges
from fedcohort.component import ONE_CLASS_PER_SAMPLE, Requirement
from fedcohort.errors import OptionError
from fedcohort.partition.base import Partition, SamplePool
from fedcohort.partition.tables import equal_sizes, interleave_positions, require_samples_for_clients
from fedcohort.types import Ids

CountTable = Int64[np.ndarray, "clients classes"]
NO_CLASS = -1  # the "dominant class" of a client that has none


@dataclass(frozen=True)
class SplitPlan:
    """The sizes and random orders from which a split is made.

    Attributes:
        client_sizes: number of samples of each client, [n_clients].
        class_sizes: number of samples of each class, [n_classes]; the sum is that of `client_sizes`.
        client_order: ids of the clients in random order, [n_clients]; the first ones get a dominant class.
        class_order: numbers of the classes in random order, [n_classes].
    """

    client_sizes: Ids
    class_sizes: Ids
    client_order: Ids
    class_order: Ids

    def count_dominant_samples(self, dominant_share: float) -> Ids:
        """Return how many samples of its dominant class each client would have if it were skewed, int64 [n_clients].

        Args:
            dominant_share: fraction of a skewed client's samples that have its dominant class.
        """
        return np.rint(dominant_share * self.client_sizes).astype(np.int64)

    def choose_dominant_classes(self, n_skewed: int, dominant_share: float) -> Ids | None:
        """Return each client's dominant class or NO_CLASS, [n_clients]; None if the classes have too few samples.

        Args:
            n_skewed: number of clients with a dominant class.
            dominant_share: fraction of a skewed client's samples that have its dominant class.
        """
        unassigned_class_counts, dominant_counts = self.class_sizes.copy(), self.count_dominant_samples(dominant_share)
        dominant_classes = np.full(len(self.client_sizes), NO_CLASS)
        class_order_offset = 0
        for k in self.client_order[:n_skewed]:
            rotated_class_order = np.roll(self.class_order, -class_order_offset)
            candidate_positions = np.flatnonzero(unassigned_class_counts[rotated_class_order] >= dominant_counts[k])
            if len(candidate_positions) == 0:
                return None
            dominant_classes[k] = rotated_class_order[candidate_positions[0]]
            unassigned_class_counts[dominant_classes[k]] -= dominant_counts[k]
            class_order_offset = (class_order_offset + int(candidate_positions[0]) + 1) % len(self.class_order)
        needed_other_counts = self.count_other_samples(dominant_classes, dominant_share)
        return (
            dominant_classes
            if (needed_other_counts <= unassigned_class_counts.sum() - unassigned_class_counts).all()
            else None
        )

    def count_other_samples(self, dominant_classes: Ids, dominant_share: float) -> Ids:
        """Return, for each class, how many samples of other classes the clients with this dominant class need.

        `dominant_classes` [n_clients] and `dominant_share` are as in `draw_count_table`.
        """
        is_skewed_client = dominant_classes != NO_CLASS
        needed_other_counts = (self.client_sizes - self.count_dominant_samples(dominant_share))[is_skewed_client]
        return np.bincount(dominant_classes[is_skewed_client], needed_other_counts, len(self.class_sizes)).astype(
            np.int64
        )

    def draw_count_table(self, dominant_classes: Ids, dominant_share: float, rng: np.random.Generator) -> CountTable:
        """Return how many samples of each class every skewed client gets, [n_clients, n_classes]; 0 for other clients.

        Args:
            dominant_classes: dominant class of each client, or NO_CLASS, [n_clients].
            dominant_share: fraction of a skewed client's samples that have its dominant class.
            rng: random generator of the order of clients and of ties.
        """
        count_table = np.zeros((len(self.client_sizes), len(self.class_sizes)), dtype=np.int64)
        skewed_clients = np.flatnonzero(dominant_classes != NO_CLASS)
        dominant_counts = self.count_dominant_samples(dominant_share)
        count_table[skewed_clients, dominant_classes[skewed_clients]] = dominant_counts[skewed_clients]
        remaining_samples = self.class_sizes - count_table.sum(0)
        needed_samples = self.count_other_samples(dominant_classes, dominant_share)
        for k in rng.permutation(skewed_clients):
            n_other_samples, c = self.client_sizes[k] - dominant_counts[k], dominant_classes[k]
            # Clients dominated by another class d can't take d: enough of the other classes must remain for them.
            lower_bounds = np.maximum(needed_samples + remaining_samples + n_other_samples - remaining_samples.sum(), 0)
            upper_bounds = remaining_samples.copy()
            lower_bounds[c] = upper_bounds[c] = 0
            client_class_counts = spread_evenly(
                n_other_samples, lower_bounds, upper_bounds, rng.random(len(remaining_samples))
            )
            count_table[k] += client_class_counts
            remaining_samples -= client_class_counts
            needed_samples[c] -= n_other_samples
        return count_table


def spread_evenly(n_samples: int, lower_bounds: Ids, upper_bounds: Ids, tie_priorities: np.ndarray) -> Ids:
    """Return integers that sum to `n_samples`, within bounds and as equal as possible, [n_classes].

    Args:
        n_samples: sum of the integers, between the sums of the bounds.
        lower_bounds: smallest value of each integer, [n_classes].
        upper_bounds: largest value of each integer, [n_classes].
        tie_priorities: numbers in [0, 1), [n_classes]; among equal integers, the one with the smallest number is raised
            first.
    """
    assigned_counts = lower_bounds.copy()
    for _ in range(n_samples - int(lower_bounds.sum())):
        class_priorities = np.where(assigned_counts < upper_bounds, assigned_counts + tie_priorities, np.inf)
        assigned_counts[class_priorities.argmin()] += 1
    return assigned_counts


@dataclass(frozen=True)
class DominantClass(Partition):
    """A partition that gives a fraction of the clients a dominant class each.

    Attributes:
        fraction: fraction of the clients that have a dominant class.
        share: fraction of such a client's samples that have its dominant class.
    """

    takes_sizes: ClassVar[bool] = True
    requirements: ClassVar[frozenset[Requirement]] = frozenset({ONE_CLASS_PER_SAMPLE})

    fraction: float
    share: float

    def __post_init__(self) -> None:
        ranges.number("fraction", self.fraction, "[0, 1]")
        ranges.number("share", self.share, "(0, 1]")

    def split(self, sample_pool: SamplePool, n_clients: int | None, rng: np.random.Generator) -> list[Ids]:
        """Return sorted positions of each client's samples: disjoint, all samples of `sample_pool` together.

        Arguments are those of `Partition.split`. Raises `OptionError`, with feasible values, if the classes have too
        few samples.
        """
        K = require_samples_for_clients("dominant_class", n_clients, len(sample_pool))
        return self.deal(sample_pool, equal_sizes(len(sample_pool), K), rng)

    def deal(self, sample_pool: SamplePool, sizes: Ids, rng: np.random.Generator) -> list[Ids]:
        """Return sorted positions of each client's samples: sizes[k] of client k.

        Arguments are those of `Partition.deal`. Raises `OptionError`, with feasible values, if the classes have too few
        samples.
        """
        K, class_sizes = len(sizes), np.bincount(sample_pool.labels, minlength=sample_pool.n_classes)
        plan = SplitPlan(sizes, class_sizes, rng.permutation(K), rng.permutation(sample_pool.n_classes))
        dominant_classes = plan.choose_dominant_classes(round(self.fraction * K), self.share)
        if dominant_classes is None:
            raise self._make_infeasible_error(plan)
        count_table = plan.draw_count_table(dominant_classes, self.share, rng)
        client_rows = _assign_client_samples(sample_pool.labels, count_table, plan, dominant_classes == NO_CLASS, rng)
        return [np.sort(sample_ids) for sample_ids in client_rows]

    def _make_infeasible_error(self, plan: SplitPlan) -> OptionError:
        """Return the error for classes of `plan` with too few samples; the message names the nearest feasible options.

        These are the largest smaller `fraction` for the same `share`, and the nearest `share` for the same `fraction`.
        """
        n_skewed, K = round(self.fraction * len(plan.client_sizes)), len(plan.client_sizes)
        feasible_shares = sorted(np.arange(1, 101) / 100, key=lambda share: abs(share - self.share))
        share = next((s for s in feasible_shares if plan.choose_dominant_classes(n_skewed, s) is not None), None)
        fewer_clients = range(n_skewed - 1, -1, -1)
        n_feasible_clients = next(n for n in fewer_clients if plan.choose_dominant_classes(n, self.share) is not None)
        feasible_text = f"partition.fraction={n_feasible_clients / K:.6g}"
        feasible_text += f" or partition.share={share:.6g}" if share else ""
        return OptionError(
            f"partition.fraction={self.fraction} partition.share={self.share}: the classes have "
            f"{plan.class_sizes.min()} to {plan.class_sizes.max()} samples, too few for {n_skewed} clients of about "
            f"{plan.client_sizes.sum() // K} samples with such a share of one class; feasible: {feasible_text}"
        )


def _assign_client_samples(
    labels: Ids, count_table: CountTable, split_plan: SplitPlan, is_uniform_client: np.ndarray, rng: np.random.Generator
) -> list[Ids]:
    """Return the positions of each client's samples, [n_k] each.

    Args:
        labels: class of each sample, [N].
        count_table: number of samples of each class that a skewed client gets, [n_clients, n_classes].
        split_plan: sizes and random orders of the split.
        is_uniform_client: whether each client has no dominant class and gets a share of the remaining samples, bool
            [n_clients].
        rng: random generator that shuffles the samples of each class.
    """
    K, C = count_table.shape
    rows_by_class = [rng.permutation(np.flatnonzero(labels == c)) for c in range(C)]
    stop_positions = count_table.cumsum(0)
    start_positions = stop_positions - count_table
    client_rows = [
        np.concatenate([rows_by_class[c][start_positions[k, c] : stop_positions[k, c]] for c in range(C)])
        for k in range(K)
    ]
    remaining_rows = np.concatenate([rows_by_class[c][stop_positions[-1, c] :] for c in range(C)])
    # `remaining_rows` is sorted by class, so that evenly spread positions give each client its share of every class.
    clients_by_size = split_plan.client_order[is_uniform_client[split_plan.client_order]]
    clients_by_size = clients_by_size[np.argsort(-split_plan.client_sizes[clients_by_size], kind="stable")]
    positions_by_client = interleave_positions(split_plan.client_sizes[clients_by_size])
    for k, client_positions in zip(clients_by_size, positions_by_client, strict=True):
        client_rows[k] = remaining_rows[client_positions]
    return client_rows
