"""Tables of samples by client, class and attribute for the rule of `partition/attribute.py`."""

from typing import Protocol

import numpy as np
from jaxtyping import Float64, Int64

from fedcohort.errors import OptionError
from fedcohort.partition.tables import apportion_counts, spread_evenly
from fedcohort.types import Ids, Values

Counts = Int64[np.ndarray, "clients classes attributes"]
Pools = Int64[np.ndarray, "classes attributes"]
Shares = Float64[np.ndarray, "classes attributes"]
Categories = tuple[Ids, Ids]  # ids of the classes and of the attributes that the data contain
MIN_CLIENT_SAMPLES = 3  # smallest number of training samples of a client (`startup/holdout.py`)


class TableRule(Protocol):
    """The options of the partition by class and attribute that its tables depend on.

    Attributes:
        share: fraction of a skewed client's samples that have its class, its attribute, or paired class and attribute.
    """

    @property
    def share(self) -> float: ...

    def count_kinds(self, n_clients: int) -> tuple[int, int]:
        """Return the numbers of clients with class imbalance and with attribute imbalance."""
        ...

    def list_dominant(self, kind: str, n: int, n_values: int) -> list[int]:
        """Return the dominant class, attribute or shift of each of the `n` clients of a kind, in [0, n_values)."""
        ...


def even_tables(pools: Pools, sizes: Ids, rule: TableRule, categories: Categories) -> Counts:
    """Return the tables of margins=even, [K, C, A], ordered by kind.

    Args:
        pools: samples of the data by class and attribute, [C, A].
        sizes: proportions of the clients' sizes, [K].
        rule: the options of the partition.
        categories: ids of the rows and columns of `pools`, for messages.

    Raises:
        OptionError: the data have too few samples of a pair.
    """
    (C, A), n_clients, shares = pools.shape, len(sizes), sizes / sizes.max()
    n_ci, n_ai = rule.count_kinds(n_clients)
    ci = [
        np.outer(peaked_probabilities(C, c, rule.share), np.full(A, 1 / A)) for c in rule.list_dominant("ci", n_ci, C)
    ]
    ai = [
        np.outer(np.full(C, 1 / C), peaked_probabilities(A, b, rule.share)) for b in rule.list_dominant("ai", n_ai, A)
    ]
    shifts = rule.list_dominant("sc", n_clients - n_ci - n_ai, A)
    sc = [np.stack([peaked_probabilities(A, (y + d) % A, rule.share) for y in range(C)]) / C for d in shifts]
    P = np.stack([*ci, *ai, *sc])
    demand = (shares[:, None, None] * P).sum(0)
    feasible = np.divide(pools, demand, out=np.full(pools.shape, np.inf), where=demand > 0)
    size = int(feasible.min())
    # Rounding may ask for one sample more of a pair than the exact shares: the size shrinks until the tables fit.
    while size > 0 and ((table := apportion_counts(np.floor(size * shares + 1e-9), P)).sum(0) > pools).any():
        size -= 1
    if size == 0:
        y, a = divmod(int(feasible.argmin()), A)
        max_clients = int(n_clients * feasible.min() / MIN_CLIENT_SAMPLES)
        raise OptionError(
            f"clients={n_clients} is too many for partition.margins=even: there are {pools[y, a]} training samples of "
            f"class {categories[0][y]} with attribute {categories[1][a]}; feasible: "
            f"{f'clients<={max_clients}, or ' if max_clients else ''}partition.margins=data with "
            f"clients<={pools.sum() // MIN_CLIENT_SAMPLES}"
        )
    return table


def data_tables(pools: Pools, sizes: Ids, rule: TableRule, categories: Categories) -> Counts:
    """Return the tables of margins=data, [K, C, A], ordered by kind.

    Args:
        pools: samples of the data by class and attribute, [C, A].
        sizes: samples of each client, [K].
        rule: the options of the partition.
        categories: ids of the rows and columns of `pools`, for messages.

    Raises:
        OptionError: the ci and ai clients need more samples of a pair than the data have.
    """
    n_ci, n_ai = rule.count_kinds(len(sizes))
    shares, n_skewed = pools / pools.sum(), n_ci + n_ai
    ci = [_skew_row(shares, c, rule.share) for c in rule.list_dominant("ci", n_ci, len(pools))]
    ai = [_skew_row(shares.T, b, rule.share).T for b in rule.list_dominant("ai", n_ai, pools.shape[1])]
    tables: Counts = np.zeros((len(sizes), *pools.shape), dtype=np.int64)
    if n_skewed:
        tables[:n_skewed] = apportion_counts(sizes[:n_skewed], np.stack([*ci, *ai]))
    skewed_sum = tables.sum(0)
    check_pools(skewed_sum, pools, "a smaller partition.share, partition.ci or partition.ai", categories)
    # The sc clients share the remaining samples evenly, pair by pair; the largest of them choose first.
    remaining = np.repeat(np.arange(pools.size), (pools - skewed_sum).ravel())
    largest_first = n_skewed + np.argsort(-sizes[n_skewed:], kind="stable")
    for k, positions in zip(largest_first, spread_evenly(sizes[largest_first]), strict=True):
        tables[k] = np.bincount(remaining[positions], minlength=pools.size).reshape(pools.shape)
    return tables


def _skew_row(shares: Shares, row: int, share: float) -> Shares:
    """Return `shares` with a total of `share` in one row; proportions between and within the other rows stay."""
    totals = shares.sum(1)
    other_totals = np.where(np.arange(len(totals)) == row, 0.0, totals)
    weights = (1 - share) * other_totals / other_totals.sum() if other_totals.any() else np.zeros(len(totals))
    weights[row] = 1 - weights.sum()
    skewed: Shares = shares * (weights / totals)[:, None]
    return skewed


def peaked_probabilities(n: int, index: int, share: float) -> Values:
    """Return n probabilities: `share` at `index`, equal ones elsewhere."""
    weights = np.full(n, (1 - share) / max(1, n - 1))
    weights[index] = 1 - weights.sum() + weights[index]
    return weights


def check_pools(demand: Pools, pools: Pools, feasible: str, categories: Categories) -> None:
    """Raise `OptionError` if clients need more samples of a pair than the data have.

    Args:
        demand: samples that clients need by class and attribute, [C, A].
        pools: samples of the data, [C, A].
        feasible: what the message recommends.
        categories: ids of the rows and columns, for the message.
    """
    if (demand > pools).any():
        y, a = (int(index[0]) for index in np.nonzero(demand > pools))
        raise OptionError(
            f"the clients need {demand[y, a]} training samples of class {categories[0][y]} with attribute "
            f"{categories[1][a]}, but there are {pools[y, a]} apart from server_val; feasible: {feasible}"
        )
