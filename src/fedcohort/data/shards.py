"""The clients' shares E_k of the test split: rows of the same owner, or rows in the client's class proportions."""

import numpy as np
from jaxtyping import Int64

from fedcohort.data.ragged import RaggedPositions
from fedcohort.types import Ids

ClassCounts = Int64[np.ndarray, "clients classes"]


def owners_of_clients(owner_of_sample: Ids, client_samples: RaggedPositions) -> Ids | None:
    """Return the dataset's owner of each client's samples, int64 [K]; None if they do not correspond one to one.

    Args:
        owner_of_sample: number of the owner of each sample, int64 [N].
        client_samples: positions of each client's samples.
    """
    if (client_samples.sizes == 0).any():
        return None
    owner_of_client, client_starts = owner_of_sample[client_samples.rows], client_samples.offsets[:-1]
    first_owners: Ids = owner_of_client[client_starts]
    has_several_owners = np.minimum.reduceat(owner_of_client, client_starts) != np.maximum.reduceat(
        owner_of_client, client_starts
    )
    return None if has_several_owners.any() or len(np.unique(first_owners)) < len(client_samples) else first_owners


def split_test_rows_by_owner(test_owner: Ids, owner_of_client: Ids) -> RaggedPositions:
    """Return the sorted positions of each owner's test samples.

    Args:
        test_owner: number of the owner of each test sample, int64 [N].
        owner_of_client: number of the owner that corresponds to each client, int64 [K].
    """
    row_order = np.argsort(test_owner, kind="stable")
    sorted_owners = test_owner[row_order]
    owner_starts, owner_stops = (
        np.searchsorted(sorted_owners, owner_of_client),
        np.searchsorted(sorted_owners, owner_of_client, "right"),
    )
    owner_sizes = owner_stops - owner_starts
    owner_offsets = owner_starts - (np.cumsum(owner_sizes) - owner_sizes)
    row_positions = np.arange(owner_sizes.sum()) + np.repeat(owner_offsets, owner_sizes)
    return RaggedPositions.from_sizes(row_order[row_positions], owner_sizes)


def split_by_class(labels: Ids, class_counts: ClassCounts, rng: np.random.Generator) -> RaggedPositions:
    """Distribute the rows of each class in proportion to the clients' training samples of it.

    The result is the sorted, disjoint positions of each client's rows in the test split.

    Args:
        labels: classes of the test split, int64 [N].
        class_counts: training samples of each client by class, [K, C].
        rng: generator for the order of the rows of a class.
    """
    client_quotas = compute_class_quotas(class_counts, np.bincount(labels, minlength=class_counts.shape[1]), rng)
    rows_by_class, clients_by_class = [], []
    for c, quotas_of_class in enumerate(client_quotas.T):
        rows_by_class.append(rng.permutation(np.flatnonzero(labels == c))[: quotas_of_class.sum()])
        clients_by_class.append(np.repeat(np.arange(len(class_counts)), quotas_of_class))
    test_rows, client_of_row = np.concatenate(rows_by_class), np.concatenate(clients_by_class)
    return RaggedPositions.from_sizes(test_rows[np.lexsort((test_rows, client_of_row))], client_quotas.sum(1))


def compute_class_quotas(class_counts: ClassCounts, test_class_sizes: Ids, rng: np.random.Generator) -> ClassCounts:
    """Return the number of test rows of each class for each client, in proportion to its training samples.

        target_kc = pool_c counts_kc / sum_j counts_jc,   rounded by largest remainders so that column c sums to pool_c

    A client's rounding error carries over to its next class, so that its total is proportional to its size, too. Ties
    are broken at random. Test rows of a class that no client holds are not distributed.

    Args:
        class_counts: training samples of each client by class, int64 [K, C].
        test_class_sizes: test rows of each class, int64 [C]; pool_c in the formula.
        rng: generator that breaks ties.
    """
    test_class_quotas = np.zeros_like(class_counts)
    rounding_remainder = rng.random(len(class_counts)) * 1e-6
    for c in np.flatnonzero((class_counts.sum(0) > 0) & (test_class_sizes > 0)):
        clients_with_class = np.flatnonzero(class_counts[:, c])
        exact_quotas = test_class_sizes[c] * class_counts[clients_with_class, c] / class_counts[:, c].sum()
        corrected_quotas = exact_quotas + rounding_remainder[clients_with_class]
        test_class_quotas[clients_with_class, c] = round_to_given_sum(corrected_quotas, int(test_class_sizes[c]))
        rounding_remainder[clients_with_class] += exact_quotas - test_class_quotas[clients_with_class, c]
    return test_class_quotas


def round_to_given_sum(unrounded_numbers: np.ndarray, required_sum: int) -> Ids:
    """Return integers of at least 0 with a given sum that are as near as possible to given numbers, int64 [n].

    Args:
        unrounded_numbers: the numbers, [n].
        required_sum: sum of the integers.
    """
    rounded_counts: Ids = np.maximum(np.floor(unrounded_numbers), 0).astype(np.int64)
    while (missing_amount := required_sum - int(rounded_counts.sum())) != 0:
        unit_correction = int(np.sign(missing_amount))
        correctable_positions = np.flatnonzero(rounded_counts + unit_correction >= 0)
        correction_order = correctable_positions[
            np.argsort(unit_correction * (rounded_counts - unrounded_numbers)[correctable_positions], kind="stable")
        ]
        rounded_counts[correction_order[: abs(missing_amount)]] += unit_correction
    return rounded_counts
