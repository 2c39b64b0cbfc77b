"""Split samples by class and attribute: the federations of FedDiverse (Nemeth et al., Sec. V-A), or user-given tables.

A table N_k[y, a] holds the number of samples of client k with class y and attribute a. The option `counts` gives the
tables. If it is empty, a rule makes them with s = `share`, the C classes and A attributes of the data, and three kinds
of clients:

    ci   class imbalance        round(ci K) clients   P(y) = s if y = c, else (1 - s) / (C - 1)
    ai   attribute imbalance    round(ai K) clients   P(a) = s if a = b, else (1 - s) / (A - 1)
    sc   spurious correlation   all other clients     P(a | y) = s if a = y + d mod A, else (1 - s) / (A - 1)

    margins=even   The other distribution is uniform: P(a | y) = 1 / A for ci, P(y | a) = 1 / C for ai. Every client has
                   n samples, and N_k is n P, rounded. n is the largest number for which the data hold both sum_k n P
                   and sum_k N_k. The remaining samples are not used.
    margins=data   The other distribution is that of the data, and every client has N / K samples. The sc clients share
                   the samples that the ci and ai clients do not take. They have the correlation of the data, and every
                   sample is used.

c, b and d advance by one from client to client of a kind, so that the skew of single clients cancels in the pooled
data. The option `left` names the one kind for which they stay at 0, so that its skew remains in the pooled data. The
other kinds cancel exactly if their numbers of clients are multiples of C and of A, and C is a multiple of A. The
clients of each kind are drawn at random.

Under partition=quantity with drawn sizes n_k, margins=even gives t n_k samples with the largest feasible t, and
margins=data gives n_k samples.

Departures from the paper: it prints neither tables nor the values of its six metrics (Fig. 3 has a plot). For Spawrious
it states which metric is above zero in the pooled data, for WaterBirds how many clients have which dominant group. The
rule reproduces these statements. The numbers of clients of each kind for Spawrious, and the shares, are our choice.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedcohort import ranges
from fedcohort.errors import DataError, OptionError
from fedcohort.partition.attribute_tables import (
    CountTables,
    GroupSizes,
    check_group_sizes,
    make_data_margin_tables,
    make_even_margin_tables,
)
from fedcohort.partition.base import Partition, SamplePool
from fedcohort.partition.tables import draw_samples_by_table, equal_sizes, require_samples_for_clients
from fedcohort.types import Ids


@dataclass(frozen=True)
class Attribute(Partition):
    """A partition that gives each client the numbers of samples by class and attribute that a table states.

    Attributes:
        counts: one table per client, numbers of samples by class and attribute, [n_clients][C][A]; empty if the other
            options determine the tables.
        ci: fraction of the clients with class imbalance.
        ai: fraction of the clients with attribute imbalance.
        share: fraction of a skewed client's samples that have its dominant class, its dominant attribute, or its pairs
            of class and attribute.
        left: type of skew that remains in the data of all clients together: class imbalance ("ci"), attribute imbalance
            ("ai"), or spurious correlation ("sc").
        margins: distribution of the attribute in clients with class imbalance, and of the class in clients with
            attribute imbalance: "even" for uniform, with clients of equal sizes and unused samples, or "data" for that
            in the data, with all samples used.
    """

    counts: Sequence[Sequence[Sequence[int]]]
    ci: float
    ai: float
    share: float
    left: str
    margins: str

    def __post_init__(self) -> None:
        if self.counts:
            self._check_counts_option()
        ranges.number("ci", self.ci, "[0, 1]")
        ranges.number("ai", self.ai, "[0, 1]")
        if self.ci + self.ai > 1:
            raise ranges.range_error("ai", f"at most 1 - ci = {1 - self.ci:.6g}", self.ai)
        ranges.number("share", self.share, "[0.5, 1]")
        ranges.choice("left", self.left, "ci", "ai", "sc")
        ranges.choice("margins", self.margins, "even", "data")

    @property
    def takes_all(self) -> bool:
        return self.margins == "data" and not self.counts and self.ci + self.ai < 1

    @property
    def takes_sizes(self) -> bool:
        return not self.counts

    def split(self, sample_pool: SamplePool, n_clients: int | None, rng: np.random.Generator) -> list[Ids]:
        """Return sorted, disjoint positions of each client's samples, with its table's numbers by class and attribute.

        Arguments are those of `Partition.split`. Raises `DataError` if the data have no attributes, `OptionError` if
        they have too few samples of a group.
        """
        group_of_sample, group_sizes = count_samples_by_group(sample_pool)
        if self.counts:
            count_tables = self._read_count_tables(group_sizes, n_clients)
        else:
            K = require_samples_for_clients("attribute", n_clients, len(sample_pool))
            count_tables = self._make_count_tables(
                group_sizes, self.default_sizes(len(sample_pool), K), rng.permutation(K)
            )
        return draw_samples_by_table(group_of_sample, count_tables, rng)

    def deal(self, sample_pool: SamplePool, sizes: Ids, rng: np.random.Generator) -> list[Ids]:
        """Return sorted positions of each client's samples: sizes[k] of client k, or fewer under margins=even.

        Arguments are those of `Partition.deal`. Raises `DataError` if the data have no attributes, `OptionError` if
        they have too few samples of a group.
        """
        group_of_sample, group_sizes = count_samples_by_group(sample_pool)
        client_order = rng.permutation(len(sizes))
        count_tables = self._make_count_tables(group_sizes, sizes[client_order], client_order)
        return draw_samples_by_table(group_of_sample, count_tables, rng)

    def default_sizes(self, n_samples: int, n_clients: int) -> Ids:
        """Return the clients' sizes, int64 [n_clients].

        With margins=even all are 1, as only their proportions count. With margins=data the clients with correlation,
        which come last, share the samples that those with class or attribute imbalance leave.

        Args:
            n_samples: number of samples that the partition distributes.
            n_clients: number of clients.
        """
        if self.margins == "even":
            return np.ones(n_clients, dtype=np.int64)
        n_class_imbalanced, n_attribute_imbalanced, n_correlated_clients = self._count_skewed_clients(n_clients)
        client_size, n_skewed_clients = n_samples // n_clients, n_class_imbalanced + n_attribute_imbalanced
        sizes = np.full(n_clients, client_size)
        if n_correlated_clients:
            sizes[n_skewed_clients:] = equal_sizes(n_samples - client_size * n_skewed_clients, n_correlated_clients)
        return sizes

    def _read_count_tables(self, group_sizes: GroupSizes, n_clients: int | None) -> CountTables:
        """Return each client's sample numbers by class and attribute from the option `counts`, [n_clients, C, A].

        Args:
            group_sizes: number of samples in the data by class and attribute, [C, A].
            n_clients: value of the option `clients`; None if it is not set.

        Raises:
            OptionError: the tables are of another number of clients, classes or attributes, or need more samples.
        """
        count_tables = np.array(self.counts, dtype=np.int64)
        if n_clients not in (None, len(count_tables)):
            raise OptionError(
                f"clients={n_clients}, but partition.counts has tables for {len(count_tables)} clients; feasible: "
                f"clients={len(count_tables)}"
            )
        if count_tables.shape[1:] != group_sizes.shape:
            shape_texts = [f"{C} classes and {A} attributes" for C, A in (count_tables.shape[1:], group_sizes.shape)]
            raise OptionError(
                f"partition.counts must have tables of {shape_texts[1]}, but has tables of {shape_texts[0]}"
            )
        categories = (np.arange(group_sizes.shape[0]), np.arange(group_sizes.shape[1]))
        check_group_sizes(count_tables.sum(0), group_sizes, "fewer of them in partition.counts", categories)
        return count_tables

    def _make_count_tables(self, group_sizes: GroupSizes, sizes: Ids, client_ids: Ids) -> CountTables:
        """Return each client's number of samples by class and attribute, from `share` and `margins`, [n_clients, C, A].

        Args:
            group_sizes: number of samples in the data by class and attribute, [C, A].
            sizes: number of samples of each client, [n_clients]: first the clients with class imbalance, then those
                with attribute imbalance, then those with spurious correlation.
            client_ids: id of the client that each of `sizes` belongs to, [n_clients].
        """
        categories = (np.flatnonzero(group_sizes.sum(1)), np.flatnonzero(group_sizes.sum(0)))
        C, A = (len(category_ids) for category_ids in categories)
        dominant_values: list[list[int]] = []
        for skew_type, n, n_values in zip(
            ("ci", "ai", "sc"), self._count_skewed_clients(len(sizes)), (C, A, A), strict=True
        ):
            dominant_values.append([0 if self.left == skew_type else j % n_values for j in range(n)])
        make_margin_tables = make_even_margin_tables if self.margins == "even" else make_data_margin_tables
        count_tables: CountTables = np.zeros((len(sizes), *group_sizes.shape), dtype=np.int64)
        present_group_sizes = group_sizes[np.ix_(*categories)]
        count_tables[np.ix_(client_ids, *categories)] = make_margin_tables(
            present_group_sizes, sizes, dominant_values, self.share, categories
        )
        return count_tables

    def _count_skewed_clients(self, n_clients: int) -> tuple[int, int, int]:
        """Return how many of `n_clients` have class imbalance, attribute imbalance and spurious correlation."""
        n_class_imbalanced = round(self.ci * n_clients)
        n_attribute_imbalanced = min(round(self.ai * n_clients), n_clients - n_class_imbalanced)
        return n_class_imbalanced, n_attribute_imbalanced, n_clients - n_class_imbalanced - n_attribute_imbalanced

    def _check_counts_option(self) -> None:
        """Raise `OptionError` if the option `counts` is no list of tables [n_clients, C, A] of sample numbers."""
        allowed_text = "a list of tables, one per client, of whole numbers by class and attribute, as [[[9,1],[5,5]]]"
        try:
            count_tables = np.array(self.counts)
        except ValueError as error:
            raise ranges.range_error("counts", allowed_text, self.counts) from error
        if count_tables.ndim != 3 or count_tables.dtype.kind != "i" or (count_tables < 0).any():
            raise ranges.range_error("counts", allowed_text, self.counts)


def count_samples_by_group(sample_pool: SamplePool) -> tuple[Ids, GroupSizes]:
    """Return each sample's group, class x n_attributes + attribute, int64 [N], and the group sizes, [C, A].

    Raises `DataError` if the data have no attributes.
    """
    if sample_pool.attribute is None:
        raise DataError(
            "partition=attribute splits samples by class and attribute, but these data have no attributes; choose "
            "dataset=waterbirds, dataset=spawrious or dataset=celeba (dataset.attribute=Male), or another partition"
        )
    table_shape = (sample_pool.n_classes, sample_pool.n_attributes)
    group_of_sample = sample_pool.labels * sample_pool.n_attributes + sample_pool.attribute
    return group_of_sample, np.bincount(group_of_sample, minlength=table_shape[0] * table_shape[1]).reshape(table_shape)
