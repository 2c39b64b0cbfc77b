"""Sizes of clients, tables of the samples of each kind that every client has, and splits by such a table.

A kind is a class, or a pair of class and attribute.
"""

import numpy as np
from jaxtyping import Float64, Int64

from fedcohort.errors import OptionError
from fedcohort.types import Ids, Values

MAX_STEPS = 200  # of `fit`; `round_to_margins` then corrects the margins by whole samples
MIN_WEIGHT = 1e-30  # of a kind relative to the client's largest weight, so that no column is zero


def require_samples_for_clients(partition: str, n_clients: int | None, n_samples: int) -> int:
    """Return `n_clients`; raise `OptionError` if `partition` can't split `n_samples` among as many clients."""
    if n_clients is None:
        what = f"clients=null takes all natural clients (partition=natural), but partition={partition} makes them"
        raise OptionError(f"{what}: clients must be an integer in [1, {n_samples}], got null")
    if n_clients > n_samples:
        raise OptionError(
            f"clients={n_clients} exceeds the {n_samples} training samples; feasible: clients<={n_samples}"
        )
    return n_clients


def require_min_samples(min_samples: int, n_samples: int, n_clients: int) -> None:
    """Raise `OptionError` if `n_samples` are too few for `min_samples` per client."""
    if min_samples > n_samples // n_clients:
        raise OptionError(
            f"partition.min_samples={min_samples} is too large: {n_samples} training samples are fewer than that for "
            f"each of {n_clients} clients; feasible: partition.min_samples<={n_samples // n_clients}"
        )


def equal_sizes(n_samples: int, n_clients: int) -> Ids:
    """Return equal sizes that sum to `n_samples`, int64 [n_clients]; the first clients have one more if necessary."""
    return n_samples // n_clients + (np.arange(n_clients) < n_samples % n_clients)


def proportional_sizes(n_samples: int, weights: Values, min_size: int) -> Ids:
    """Return sizes that sum to `n_samples`, int64 [n_clients].

    Every client has `min_size` samples and a share of the remaining ones in proportion to its weight, rounded to one of
    the two nearest integers. `n_samples` must be at least least * len(weights).
    """
    weight_sums = np.cumsum(weights)
    stop_positions = np.rint((n_samples - min_size * len(weights)) * (weight_sums / weight_sums[-1])).astype(np.int64)
    return np.asarray(min_size + np.diff(stop_positions, prepend=0))


def enlarge_small_parts(client_samples: list[Ids], min_samples: int) -> list[Ids]:
    """Move the last samples of the largest parts to parts of fewer than `min_samples` samples.

    The sizes must sum to at least `min_samples` * len(client_samples). While a part is too small, the largest one is
    above the mean, so that it never becomes too small itself.
    """
    sizes = np.array([len(positions) for positions in client_samples])
    n_original = sizes.copy()  # samples of the original part that stay in it
    received: list[list[int]] = [[] for _ in client_samples]
    for small_client in np.flatnonzero(sizes < min_samples):
        while sizes[small_client] < min_samples:
            largest_client = int(sizes.argmax())
            sizes[largest_client] -= 1
            n_original[largest_client] -= 1
            sizes[small_client] += 1
            received[small_client].append(client_samples[largest_client][n_original[largest_client]])
    return [
        np.concatenate([positions[:n], np.array(samples, dtype=np.int64)])
        for positions, n, samples in zip(client_samples, n_original, received, strict=True)
    ]


def apportion_counts(
    sizes: Ids | Values, P: Float64[np.ndarray, "clients classes attributes"]
) -> Int64[np.ndarray, "clients classes attributes"]:
    """Return integers near sizes[k] * P[k] with the sum sizes[k] for each client k, by largest remainders.

    Ties are broken by another pair for each client, so that no pair gets all of the remaining samples.
    """
    K, pairs = len(P), P[0].size
    exact_counts = sizes[:, None] * P.reshape(K, pairs)
    table = np.floor(exact_counts + 1e-9).astype(np.int64)
    tie_order = (np.arange(pairs)[None] - np.arange(K)[:, None]) % pairs
    order = np.lexsort((tie_order, -np.round(exact_counts - table, 9)), axis=1)
    rank = np.argsort(order, axis=1)
    table += rank < (sizes - table.sum(1))[:, None]
    return np.asarray(table.reshape(P.shape))


def draw_by_table(sample_kind: Ids, table: Int64[np.ndarray, "clients *kinds"], rng: np.random.Generator) -> list[Ids]:
    """Draw samples of each kind, table[k] of them for client k, and return sorted positions.

    sample_kind: flat index of each sample's kind in a row of the table, int64 [N].
    """
    counts = table.reshape(len(table), -1)
    samples_by_client: list[list[Ids]] = [[] for _ in counts]
    for kind, client_counts in enumerate(counts.T):
        rows = rng.permutation(np.flatnonzero(sample_kind == kind))
        for k, client_rows in enumerate(np.split(rows, np.cumsum(client_counts))[:-1]):
            samples_by_client[k].append(client_rows)
    return [np.sort(np.concatenate(client_samples)) for client_samples in samples_by_client]


def spread_evenly(sizes: Ids) -> list[Ids]:
    """Return which of sum(sizes) positions each client gets: sizes[k] for client k, spread evenly over all positions.

    Position j of client k is aimed at the fraction (j + 1/2) / sizes[k]. With equal sizes the clients take turns.
    """
    client = np.repeat(np.arange(len(sizes)), sizes)
    position_in_client = np.arange(len(client)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    order = np.argsort((position_in_client + 0.5) / sizes[client], kind="stable")
    position = np.empty(len(client), dtype=np.int64)
    position[order] = np.arange(len(client))
    return np.split(position, np.cumsum(sizes)[:-1]) if len(sizes) else []


def scale_to_margins(
    log_weights: Float64[np.ndarray, "clients kinds"], sizes: Ids, pools: Ids
) -> Float64[np.ndarray, "clients kinds"]:
    """Scale rows and columns of the weights to the given sums, by iterative proportional fitting.

    Source: Deming and Stephan 1940. Odds ratios between clients and kinds stay those of the weights. Sums of rows are
    exact; sums of columns are within half a sample, unless that takes more than `MAX_STEPS` steps.

    Args:
        log_weights: logarithms of the weights.
        sizes: positive sums of the rows.
        pools: sums of the columns, with the same total.
    """
    weights = np.maximum(np.exp(log_weights - log_weights.max(1, keepdims=True)), MIN_WEIGHT)
    column: Values = np.ones(weights.shape[1])
    for _ in range(MAX_STEPS):
        row = sizes / (weights @ column)
        column_sums = row @ weights
        if np.abs(column_sums * column - pools).max() < 0.5:
            break
        column = pools / column_sums
    return np.asarray((sizes / (weights @ column))[:, None] * weights * column)


def round_to_margins(
    kind_shares: Float64[np.ndarray, "clients kinds"], sizes: Ids, pools: Ids
) -> Int64[np.ndarray, "clients kinds"]:
    """Return integers near `kind_shares` with exactly the given sums; rounding errors carry over to the next client.

    Args:
        kind_shares: exact numbers; rows sum to `sizes`, columns approximately to `pools`.
        sizes: sums of the rows.
        pools: sums of the columns, with the same total.
    """
    table, n_free, rounding_error = np.zeros(kind_shares.shape, dtype=np.int64), pools.copy(), np.zeros(len(pools))
    for k, size in enumerate(sizes.tolist()):
        rounding_error += kind_shares[k]
        counts = np.minimum(np.floor(np.maximum(rounding_error, 0) + 1e-9).astype(np.int64), n_free)
        while counts.sum() > size:  # earlier clients' rounding errors add up to more than this client's size
            counts[np.argmax(np.where(counts > 0, counts - rounding_error, -np.inf))] -= 1
        for _ in range(size - int(counts.sum())):
            counts[np.argmax(np.where(counts < n_free, rounding_error - counts, -np.inf))] += 1
        table[k] = counts
        n_free -= counts
        rounding_error -= counts
    return table
