"""Sizes of clients, tables of the samples of each stratum that every client has, and splits by such a table.

A stratum is a class, or a pair of class and attribute.
"""

import numpy as np
from jaxtyping import Float64, Int64

from fedcohort.errors import OptionError
from fedcohort.types import Ids, Values

MAX_SCALING_STEPS = 200  # of `scale_table_to_sums`; `round_table_to_sums` then corrects the margins by whole samples
MIN_STRATUM_WEIGHT = 1e-30  # of a stratum relative to the client's largest weight, so that no column is zero


def require_samples_for_clients(partition: str, n_clients: int | None, n_samples: int) -> int:
    """Return `n_clients`; raise `OptionError` if it is None, or exceeds the number of samples.

    Args:
        partition: name of the partition, for the message.
        n_clients: value of the option `clients`; None if it is not set.
        n_samples: number of training samples.
    """
    if n_clients is None:
        raise OptionError(
            f"clients=null needs natural clients (partition=natural), and partition={partition} has none: clients must "
            f"be an integer in [1, {n_samples}], got null"
        )
    if n_clients > n_samples:
        raise OptionError(
            f"clients={n_clients} exceeds the {n_samples} training samples; feasible: clients<={n_samples}"
        )
    return n_clients


def require_min_samples(min_samples: int, n_samples: int, n_clients: int) -> None:
    """Raise `OptionError` if `n_samples` are too few for `n_clients` clients with at least `min_samples` each."""
    if min_samples > n_samples // n_clients:
        raise OptionError(
            f"partition.min_samples={min_samples} is too large for {n_samples} training samples and {n_clients} "
            f"clients; feasible: partition.min_samples<={n_samples // n_clients}"
        )


def equal_sizes(n_samples: int, n_clients: int) -> Ids:
    """Return sizes that sum to `n_samples`, int64 [n_clients]; the first clients have one more if necessary."""
    return n_samples // n_clients + (np.arange(n_clients) < n_samples % n_clients)


def make_proportional_sizes(n_samples: int, size_weights: Values, min_client_size: int) -> Ids:
    """Return sizes that sum to `n_samples`, one for each of `size_weights` [n_clients], int64 [n_clients].

    Every client has `min_client_size` samples and a share of the remaining ones in proportion to its weight, rounded to
    one of the two nearest integers. `n_samples` must be at least min_client_size * n_clients.
    """
    cumulative_weights = np.cumsum(size_weights)
    n_shared_samples = n_samples - min_client_size * len(size_weights)
    cumulative_sizes = np.rint(n_shared_samples * (cumulative_weights / cumulative_weights[-1])).astype(np.int64)
    return np.asarray(min_client_size + np.diff(cumulative_sizes, prepend=0))


def enlarge_small_clients(client_samples: list[Ids], min_samples: int) -> list[Ids]:
    """Return each client's samples after moving the last ones of large clients to clients with too few samples.

    Args:
        client_samples: positions of each client's samples, [n_k] each; at least `min_samples` per client on average.
        min_samples: smallest number of samples of a client in the result.
    """
    client_sizes = np.array([len(sample_ids) for sample_ids in client_samples])
    n_kept_samples = client_sizes.copy()  # samples of the original part that stay in it
    samples_to_add: list[list[int]] = [[] for _ in client_samples]
    for small_client in np.flatnonzero(client_sizes < min_samples):
        while client_sizes[small_client] < min_samples:
            largest_client = int(client_sizes.argmax())
            client_sizes[largest_client] -= 1
            n_kept_samples[largest_client] -= 1
            client_sizes[small_client] += 1
            samples_to_add[small_client].append(client_samples[largest_client][n_kept_samples[largest_client]])
    return [
        np.concatenate([sample_ids[:n], np.array(added_samples, dtype=np.int64)])
        for sample_ids, n, added_samples in zip(client_samples, n_kept_samples, samples_to_add, strict=True)
    ]


def apportion_samples(
    sizes: Ids | Values, group_shares: Float64[np.ndarray, "clients classes attributes"]
) -> Int64[np.ndarray, "clients classes attributes"]:
    """Return integers near sizes[k] * group_shares[k] with the sum sizes[k], by largest remainders, [n_clients, C, A].

    Among equal remainders the preferred group differs between clients, so that no group gets all remaining samples.

    `sizes` is the number of samples of each client, [n_clients]. `group_shares`, [n_clients, C, A], holds each client's
    shares by class and attribute, with the sum 1.
    """
    K, n_groups = len(group_shares), group_shares[0].size
    exact_counts = sizes[:, None] * group_shares.reshape(K, n_groups)
    count_table = np.floor(exact_counts + 1e-9).astype(np.int64)
    tie_priority = (np.arange(n_groups)[None] - np.arange(K)[:, None]) % n_groups
    remainder_rank = np.argsort(np.lexsort((tie_priority, -np.round(exact_counts - count_table, 9)), axis=1), axis=1)
    count_table += remainder_rank < (sizes - count_table.sum(1))[:, None]
    return np.asarray(count_table.reshape(group_shares.shape))


def draw_samples_by_table(
    stratum_of_sample: Ids, count_table: Int64[np.ndarray, "clients *kinds"], rng: np.random.Generator
) -> list[Ids]:
    """Draw each client's samples by a table of numbers; return the sorted positions of each client's samples.

    Args:
        stratum_of_sample: number of each sample's stratum, a flat index into a row of the table, int64 [N].
        count_table: number of samples of each stratum (class, or class and attribute) that each client gets,
            [n_clients, ...].
        rng: random generator that shuffles the samples of a stratum.
    """
    counts_by_stratum = count_table.reshape(len(count_table), -1)
    samples_by_client: list[list[Ids]] = [[] for _ in counts_by_stratum]
    for stratum_number, client_counts in enumerate(counts_by_stratum.T):
        stratum_rows = rng.permutation(np.flatnonzero(stratum_of_sample == stratum_number))
        for k, client_rows in enumerate(np.split(stratum_rows, np.cumsum(client_counts))[:-1]):
            samples_by_client[k].append(client_rows)
    return [np.sort(np.concatenate(client_samples)) for client_samples in samples_by_client]


def interleave_positions(sizes: Ids) -> list[Ids]:
    """Divide the positions 0 to sum(sizes) - 1 among clients, sizes[k] to client k; return each client's positions.

    Position j of client k is near the fraction (j + 1/2) / sizes[k]. With equal sizes the clients take turns.
    """
    client_of_position = np.repeat(np.arange(len(sizes)), sizes)
    position_within_client = np.arange(len(client_of_position)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    position_order = np.argsort((position_within_client + 0.5) / sizes[client_of_position], kind="stable")
    assigned_positions = np.empty(len(client_of_position), dtype=np.int64)
    assigned_positions[position_order] = np.arange(len(client_of_position))
    return np.split(assigned_positions, np.cumsum(sizes)[:-1]) if len(sizes) else []


def scale_table_to_sums(
    log_weights: Float64[np.ndarray, "clients kinds"], sizes: Ids, stratum_sizes: Ids
) -> Float64[np.ndarray, "clients kinds"]:
    """Return weights whose rows and columns have the given sums, [n_clients, strata], by proportional fitting.

    Source: Deming and Stephan 1940. Odds ratios between clients and strata stay those of the weights. Sums of rows are
    exact; sums of columns are within half a sample, unless that takes more than `MAX_SCALING_STEPS` steps.

    Args:
        log_weights: logarithm of each client's weight of each stratum (class), [n_clients, strata].
        sizes: positive sums of the rows, [n_clients].
        stratum_sizes: sums of the columns, [strata], with the same total.
    """
    stratum_weights = np.maximum(np.exp(log_weights - log_weights.max(1, keepdims=True)), MIN_STRATUM_WEIGHT)
    stratum_factors: Values = np.ones(stratum_weights.shape[1])
    for _ in range(MAX_SCALING_STEPS):
        client_factors = sizes / (stratum_weights @ stratum_factors)
        stratum_totals = client_factors @ stratum_weights
        if np.abs(stratum_totals * stratum_factors - stratum_sizes).max() < 0.5:
            break
        stratum_factors = stratum_sizes / stratum_totals
    return np.asarray((sizes / (stratum_weights @ stratum_factors))[:, None] * stratum_weights * stratum_factors)


def round_table_to_sums(
    stratum_counts: Float64[np.ndarray, "clients kinds"], sizes: Ids, stratum_sizes: Ids
) -> Int64[np.ndarray, "clients kinds"]:
    """Return integers near `stratum_counts` with exactly the given sums, int64 [n_clients, strata].

    Args:
        stratum_counts: numbers to round, [n_clients, strata]; rows sum to `sizes`, columns approximately to
            `stratum_sizes`.
        sizes: sums of the rows, [n_clients].
        stratum_sizes: sums of the columns, [strata], with the same total.
    """
    count_table = np.zeros(stratum_counts.shape, dtype=np.int64)
    n_unassigned = stratum_sizes.copy()
    rounding_error = np.zeros(len(stratum_sizes))
    for k, n in enumerate(sizes.tolist()):
        rounding_error += stratum_counts[k]
        client_counts = np.minimum(np.floor(np.maximum(rounding_error, 0) + 1e-9).astype(np.int64), n_unassigned)
        while client_counts.sum() > n:  # earlier clients' rounding errors add up to more than this client's size
            client_counts[np.argmax(np.where(client_counts > 0, client_counts - rounding_error, -np.inf))] -= 1
        for _ in range(n - int(client_counts.sum())):
            client_counts[
                np.argmax(np.where(client_counts < n_unassigned, rounding_error - client_counts, -np.inf))
            ] += 1
        count_table[k] = client_counts
        n_unassigned -= client_counts
        rounding_error -= client_counts
    return count_table
