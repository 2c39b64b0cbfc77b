"""Tables of how many samples of each kind every client has, and dealing by them."""

import numpy as np
from jaxtyping import Float64, Int64

from fedcohort.types import Ids, Values

STEPS = 200  # of fitting; what is left of the margins then is made up by whole samples
LEAST = 1e-30  # weight of a pair beside the client's largest: rarer ones are alike


def apportion(
    sizes: Ids | Values, P: Float64[np.ndarray, "clients classes attributes"]
) -> Int64[np.ndarray, "clients classes attributes"]:
    """Whole numbers that sum to sizes[k] in table k, each within one of sizes[k] P: by largest remainders.

    Ties go to another pair for each client, so that no pair has all of the odd samples.
    """
    K, pairs = len(P), P[0].size
    exact = sizes[:, None] * P.reshape(K, pairs)
    table = np.floor(exact + 1e-9).astype(np.int64)
    turn = (np.arange(pairs)[None] - np.arange(K)[:, None]) % pairs
    order = np.lexsort((turn, -np.round(exact - table, 9)), axis=1)
    rank = np.argsort(order, axis=1)
    table += rank < (sizes - table.sum(1))[:, None]
    found: Int64[np.ndarray, "clients classes attributes"] = table.reshape(P.shape)
    return found


def deal_pairs(pair: Ids, table: Int64[np.ndarray, "clients *kinds"], rng: np.random.Generator) -> list[Ids]:
    """Random samples of each kind, table[k] of them for client k: sorted positions. pair: of each sample, int64 [N]."""
    wanted = table.reshape(len(table), -1)
    parts: list[list[Ids]] = [[] for _ in wanted]
    for each, sizes in enumerate(wanted.T):
        rows = rng.permutation(np.flatnonzero(pair == each))
        for k, own in enumerate(np.split(rows, np.cumsum(sizes))[:-1]):
            parts[k].append(own)
    return [np.sort(np.concatenate(own)) for own in parts]


def deal_cards(sizes: Ids) -> list[Ids]:
    """Return which of sum(sizes) cards each player gets, sizes[k] for player k: evenly over the whole deck.

    Card j of player k is wanted at (j + 1/2) / sizes[k] of the deck; of equal hands it is one round after the other.
    """
    player = np.repeat(np.arange(len(sizes)), sizes)
    nth = np.arange(len(player)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    turn = np.argsort((nth + 0.5) / sizes[player], kind="stable")
    place = np.empty(len(player), dtype=np.int64)
    place[turn] = np.arange(len(player))
    return np.split(place, np.cumsum(sizes)[:-1]) if len(sizes) else []


def fit(
    log_weights: Float64[np.ndarray, "clients kinds"], sizes: Ids, pools: Ids
) -> Float64[np.ndarray, "clients kinds"]:
    """Scale rows and columns of the weights until they have the margins: rows exactly, columns after STEPS or before.

    Iterative proportional fitting (Deming & Stephan 1940): what a client has of one kind rather than another, beside
    what others have of them, stays as the weights say.

    Args:
        log_weights: logarithms of the weights.
        sizes: positive sums of the rows.
        pools: sums of the columns, of the same total.
    """
    weights = np.maximum(np.exp(log_weights - log_weights.max(1, keepdims=True)), LEAST)
    column: Values = np.ones(weights.shape[1])
    for _ in range(STEPS):
        row = sizes / (weights @ column)
        found = row @ weights
        if np.abs(found * column - pools).max() < 0.5:
            break
        column = pools / found
    table: Float64[np.ndarray, "clients kinds"] = (sizes / (weights @ column))[:, None] * weights * column
    return table


def in_whole_samples(
    wanted: Float64[np.ndarray, "clients kinds"], sizes: Ids, pools: Ids
) -> Int64[np.ndarray, "clients kinds"]:
    """Whole numbers near `wanted`, with exactly the margins: client by client, what was rounded off goes to the next.

    Args:
        wanted: its rows sum to `sizes`, and its columns to about `pools`.
        sizes: sums of the rows.
        pools: sums of the columns, of the same total.
    """
    table, left, owed = np.zeros(wanted.shape, dtype=np.int64), pools.copy(), np.zeros(len(pools))
    for k, size in enumerate(sizes.tolist()):
        owed += wanted[k]
        own = np.minimum(np.floor(np.maximum(owed, 0) + 1e-9).astype(np.int64), left)
        while own.sum() > size:  # what others weren't given yet is more than this one has
            own[np.argmax(np.where(own > 0, own - owed, -np.inf))] -= 1
        for _ in range(size - int(own.sum())):
            own[np.argmax(np.where(own < left, owed - own, -np.inf))] += 1
        table[k] = own
        left -= own
        owed -= own
    return table
