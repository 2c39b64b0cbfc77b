"""Tables of samples by client, class and attribute for the rule of `partition/attribute.py`."""

from collections.abc import Sequence

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
# The dominant value of each client: the class of those with class imbalance, the attribute of those with attribute
# imbalance, and the shift d of those with spurious correlation, whose dominant attribute of class y is y + d mod A
Dominant = Sequence[Sequence[int]]


def even_tables(pools: Pools, sizes: Ids, dominant: Dominant, p_dominant: float, categories: Categories) -> Counts:
    """Return the tables of margins=even, [K, C, A], ordered by kind.

    Args:
        pools: samples of the data by class and attribute, [C, A].
        sizes: proportions of the clients' sizes, [K].
        dominant: the dominant values of the clients.
        p_dominant: fraction of a skewed client's samples with its class, its attribute, or its class and attribute.
        categories: ids of the rows and columns of `pools`, for messages.

    Raises:
        OptionError: the data have too few samples of a pair.
    """
    (C, A), n_clients, relative_sizes = pools.shape, len(sizes), sizes / sizes.max()
    classes, attributes, shifts = dominant
    ci = [np.outer(peaked_probabilities(C, c, p_dominant), np.full(A, 1 / A)) for c in classes]
    ai = [np.outer(np.full(C, 1 / C), peaked_probabilities(A, b, p_dominant)) for b in attributes]
    sc = [np.stack([peaked_probabilities(A, (y + d) % A, p_dominant) for y in range(C)]) / C for d in shifts]
    P = np.stack([*ci, *ai, *sc])
    demand = (relative_sizes[:, None, None] * P).sum(0)
    feasible = np.divide(pools, demand, out=np.full(pools.shape, np.inf), where=demand > 0)
    size = int(feasible.min())
    # Rounding may ask for one sample more of a pair than the exact shares: the size shrinks until the tables fit.
    while size > 0 and ((table := apportion_counts(np.floor(size * relative_sizes + 1e-9), P)).sum(0) > pools).any():
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


def data_tables(pools: Pools, sizes: Ids, dominant: Dominant, p_dominant: float, categories: Categories) -> Counts:
    """Return the tables of margins=data, [K, C, A], ordered by kind.

    Args:
        pools: samples of the data by class and attribute, [C, A].
        sizes: samples of each client, [K].
        dominant: the dominant values of the clients.
        p_dominant: fraction of a skewed client's samples with its class, its attribute, or its class and attribute.
        categories: ids of the rows and columns of `pools`, for messages.

    Raises:
        OptionError: the ci and ai clients need more samples of a pair than the data have.
    """
    classes, attributes, _ = dominant
    shares, n_skewed = pools / pools.sum(), len(classes) + len(attributes)
    ci = [_skew_row(shares, c, p_dominant) for c in classes]
    ai = [_skew_row(shares.T, b, p_dominant).T for b in attributes]
    tables: Counts = np.zeros((len(sizes), *pools.shape), dtype=np.int64)
    if n_skewed:
        tables[:n_skewed] = apportion_counts(sizes[:n_skewed], np.stack([*ci, *ai]))
    skewed_sum = tables.sum(0)
    check_pools(skewed_sum, pools, "a smaller partition.share, partition.ci or partition.ai", categories)
    # The sc clients share the remaining samples evenly, pair by pair; the largest of them choose first.
    remaining_kinds = np.repeat(np.arange(pools.size), (pools - skewed_sum).ravel())
    largest_first = n_skewed + np.argsort(-sizes[n_skewed:], kind="stable")
    for k, positions in zip(largest_first, spread_evenly(sizes[largest_first]), strict=True):
        tables[k] = np.bincount(remaining_kinds[positions], minlength=pools.size).reshape(pools.shape)
    return tables


def _skew_row(shares: Shares, row: int, p_dominant: float) -> Shares:
    """Return `shares` with a total of `p_dominant` in one row; proportions between and within the other rows stay."""
    totals = shares.sum(1)
    other_totals = np.where(np.arange(len(totals)) == row, 0.0, totals)
    weights = (1 - p_dominant) * other_totals / other_totals.sum() if other_totals.any() else np.zeros(len(totals))
    weights[row] = 1 - weights.sum()
    return np.asarray(shares * (weights / totals)[:, None])


def peaked_probabilities(n: int, index: int, p_dominant: float) -> Values:
    """Return n probabilities: `p_dominant` at `index`, and equal probabilities at all other positions."""
    weights = np.full(n, (1 - p_dominant) / max(1, n - 1))
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
