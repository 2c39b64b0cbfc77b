"""Tables of samples by client, class and attribute for the rule of `partition/attribute.py`."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float64, Int64

from fedcohort.errors import OptionError
from fedcohort.partition.tables import apportion_samples, interleave_positions
from fedcohort.types import Ids, Values

CountTables = Int64[np.ndarray, "clients classes attributes"]
GroupSizes = Int64[np.ndarray, "classes attributes"]
GroupShares = Float64[np.ndarray, "classes attributes"]
CategoryIds = tuple[Ids, Ids]  # ids of the classes and of the attributes that the data contain
MIN_CLIENT_SAMPLES = 3  # smallest number of training samples of a client (`startup/server_rows.py`)
# The dominant value of each client: the class of those with class imbalance, the attribute of those with attribute
# imbalance, and the shift d of those with spurious correlation, whose dominant attribute of class y is y + d mod A
DominantValueLists = Sequence[Sequence[int]]


def make_even_margin_tables(
    group_sizes: GroupSizes, sizes: Ids, dominant_values: DominantValueLists, p_dominant: float, categories: CategoryIds
) -> CountTables:
    """Return the number of samples of each client by class and attribute with margins=even, [n_clients, C, A].

    Args:
        group_sizes: number of samples in the data by class and attribute, [C, A].
        sizes: proportions of the clients' sizes, [n_clients].
        dominant_values: for the three types of skew in turn, each client's dominant class, dominant attribute, or shift
            between class and attribute.
        p_dominant: fraction of a skewed client's samples with its dominant class, attribute, or pair of both.
        categories: names of the rows and of the columns of `group_sizes`, for messages.

    Raises:
        OptionError: the data have too few samples of a group.
    """
    (C, A), n_clients, relative_sizes = group_sizes.shape, len(sizes), sizes / sizes.max()
    dominant_classes, dominant_attributes, attribute_shifts = dominant_values
    class_imbalance_shares = [
        np.outer(dominant_probabilities(C, c, p_dominant), np.full(A, 1 / A)) for c in dominant_classes
    ]
    attribute_imbalance_shares = [
        np.outer(np.full(C, 1 / C), dominant_probabilities(A, b, p_dominant)) for b in dominant_attributes
    ]
    correlation_shares = [
        np.stack([dominant_probabilities(A, (class_position + d) % A, p_dominant) for class_position in range(C)]) / C
        for d in attribute_shifts
    ]
    group_shares = np.stack([*class_imbalance_shares, *attribute_imbalance_shares, *correlation_shares])
    demand_per_size = (relative_sizes[:, None, None] * group_shares).sum(0)
    max_client_sizes = np.divide(
        group_sizes, demand_per_size, out=np.full(group_sizes.shape, np.inf), where=demand_per_size > 0
    )
    client_size = int(max_client_sizes.min())
    # Rounding may ask for one sample more of a pair than the exact shares: the size shrinks until the count_tables fit.
    while (
        client_size > 0
        and (
            (count_tables := apportion_samples(np.floor(client_size * relative_sizes + 1e-9), group_shares)).sum(0)
            > group_sizes
        ).any()
    ):
        client_size -= 1
    if client_size == 0:
        class_position, attribute_position = divmod(int(max_client_sizes.argmin()), A)
        max_clients = int(n_clients * max_client_sizes.min() / MIN_CLIENT_SAMPLES)
        raise OptionError(
            f"clients={n_clients} is too many for partition.margins=even: there are "
            f"{group_sizes[class_position, attribute_position]} samples of class {categories[0][class_position]} with "
            f"attribute {categories[1][attribute_position]}; feasible: "
            f"{f'clients<={max_clients}, or ' if max_clients else ''}partition.margins=data with "
            f"clients<={group_sizes.sum() // MIN_CLIENT_SAMPLES}"
        )
    return count_tables


def make_data_margin_tables(
    group_sizes: GroupSizes, sizes: Ids, dominant_values: DominantValueLists, p_dominant: float, categories: CategoryIds
) -> CountTables:
    """Return the number of samples of each client by class and attribute with margins=data, [n_clients, C, A].

    Args:
        group_sizes: number of samples in the data by class and attribute, [C, A].
        sizes: number of samples of each client, [n_clients].
        dominant_values: for the three types of skew in turn, each client's dominant class, dominant attribute, or shift
            between class and attribute.
        p_dominant: fraction of a skewed client's samples with its dominant class, attribute, or pair of both.
        categories: names of the rows and of the columns of `group_sizes`, for messages.

    Raises:
        OptionError: the clients with class or attribute imbalance need more samples of a group than the data have.
    """
    dominant_classes, dominant_attributes, _ = dominant_values
    group_shares, n_skewed_clients = group_sizes / group_sizes.sum(), len(dominant_classes) + len(dominant_attributes)
    class_imbalance_shares = [_make_skewed_shares(group_shares, c, p_dominant) for c in dominant_classes]
    attribute_imbalance_shares = [_make_skewed_shares(group_shares.T, b, p_dominant).T for b in dominant_attributes]
    count_tables: CountTables = np.zeros((len(sizes), *group_sizes.shape), dtype=np.int64)
    if n_skewed_clients:
        count_tables[:n_skewed_clients] = apportion_samples(
            sizes[:n_skewed_clients], np.stack([*class_imbalance_shares, *attribute_imbalance_shares])
        )
    skewed_counts = count_tables.sum(0)
    check_group_sizes(skewed_counts, group_sizes, "a smaller partition.share, partition.ci or partition.ai", categories)
    # The sc clients share the remaining samples evenly, pair by pair; the largest of them choose first.
    group_of_remaining_sample = np.repeat(np.arange(group_sizes.size), (group_sizes - skewed_counts).ravel())
    clients_by_size = n_skewed_clients + np.argsort(-sizes[n_skewed_clients:], kind="stable")
    for k, client_positions in zip(clients_by_size, interleave_positions(sizes[clients_by_size]), strict=True):
        count_tables[k] = np.bincount(group_of_remaining_sample[client_positions], minlength=group_sizes.size).reshape(
            group_sizes.shape
        )
    return count_tables


def _make_skewed_shares(group_shares: GroupShares, dominant_row: int, p_dominant: float) -> GroupShares:
    """Return shares of which one row sums to `p_dominant` and the others keep their proportions, [rows, columns].

    Args:
        group_shares: share of the data in each group, [rows, columns].
        dominant_row: number of the row whose sum is set.
        p_dominant: sum of this row in the result.
    """
    row_shares = group_shares.sum(1)
    other_shares = np.where(np.arange(len(row_shares)) == dominant_row, 0.0, row_shares)
    new_row_shares = (
        (1 - p_dominant) * other_shares / other_shares.sum() if other_shares.any() else np.zeros(len(row_shares))
    )
    new_row_shares[dominant_row] = 1 - new_row_shares.sum()
    return np.asarray(group_shares * (new_row_shares / row_shares)[:, None])


def dominant_probabilities(n: int, dominant_index: int, p_dominant: float) -> Values:
    """Return n probabilities, [n]: `p_dominant` at `dominant_index`, equal ones elsewhere; [1.0] for n = 1."""
    probabilities = np.full(n, (1 - p_dominant) / max(1, n - 1))
    probabilities[dominant_index] = 1 - probabilities.sum() + probabilities[dominant_index]
    return probabilities


def check_group_sizes(
    needed_counts: GroupSizes, group_sizes: GroupSizes, remedy_text: str, categories: CategoryIds
) -> None:
    """Raise `OptionError` if clients need more samples of a group than the data have.

    Args:
        needed_counts: number of samples that clients need by class and attribute, [C, A].
        group_sizes: number of samples in the data by class and attribute, [C, A].
        remedy_text: feasible options, for the message.
        categories: names of the rows and of the columns, for the message.
    """
    if (needed_counts > group_sizes).any():
        class_position, attribute_position = (
            int(axis_positions[0]) for axis_positions in np.nonzero(needed_counts > group_sizes)
        )
        raise OptionError(
            f"the clients need {needed_counts[class_position, attribute_position]} training samples of class "
            f"{categories[0][class_position]} with attribute {categories[1][attribute_position]}, but there are "
            f"{group_sizes[class_position, attribute_position]} outside split.server_val; feasible: {remedy_text}"
        )
