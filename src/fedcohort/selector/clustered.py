"""Clustered sampling: one client is drawn from each of m distributions over the clients (Fraboni et al. 2021).

Fraboni, Vidal, Kameni, Lorenzi, "Clustered Sampling: Low-Variance and Improved Representativity for Clients Selection
in Federated Learning", ICML 2021, arXiv 2105.05883.

    distributions:  W_1 .. W_m over the clients, W_u(k) = P(draw u is client k)
    sums:  sum_k W_u(k) = 1,  sum_u W_u(k) = m n_k / n, the mass of client k
    S:  the distinct clients of m independent draws, one from each W_u;  weight of k: its number of draws / m

Algorithm 1 (criterion=size) fills W_1, then W_2 and so on with the clients by decreasing n_k; a client may spill into
the next one. In Algorithm 2 (criterion=similarity) clients with similar updates share a distribution:

    1. A client with mass of at least 1 gets floor(mass) distributions without other clients; its remainder is below 1.
    2. Ward's tree of the angles between the clients' last updates is cut into the largest subtrees of mass <= 1.
    3. The heaviest subtrees begin the other distributions. Clients of the lighter subtrees fill them up, from the
       lightest subtree and the lightest distribution on.

The mean over draws of the weights is n_k / n, as in full participation, and their variance is at most that of m draws
in proportion to n_k. The number of distinct clients depends on the draws, so that a cohort may have fewer than m.

The abstract and two implementations of Algorithm 2 in public code of other methods were read, the full text was not.
Step 1 of Algorithm 2 is in neither of them; without it the sums do not hold.

Departures from the paper:
- Masses are integers, m n_k out of n. The code scales them by 1e10 and truncates: rows miss 1e-10, and Algorithm 1 then
  fails for some sizes.
- Equal sizes, masses and angles are ordered at random in each round. The code orders them by id.
- Clients that never trained have an update of zero, and an angle of zero with all clients, as in the code.
- The tree is of the rows of the matrix of angles, as in the code. tree=condensed takes the angles as distances.
- The distributions are those of the available clients, so that the mean is over these. Where at most m are available,
  all train, under the aggregator's weights.
- The weights of failed clients go to the others: the estimate is then biased.
- A client that failed three times in a row is withheld for some rounds (`round/backoff.py`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from jaxtyping import Float32, Float64

from fedcohort import ranges
from fedcohort.selector.base import Selector
from fedcohort.types import Advice, Ids, Population, ProbeResult, RoundContext, RoundOutcome, Selection

LARGEST = float(np.finfo(np.float32).max)
Urns = tuple[Ids, Ids, Ids]  # client, distribution and mass of each positive entry of W, one row after the other


@dataclass(frozen=True)
class State:
    """State of clustered sampling that is kept between rounds.

    Attributes:
        draws: number of draws of each client of the cohort, [K]; zeros where all available clients train.
        updates: each client's last update, zeros before it, [K, P]; [K, 0] before the first round, or criterion=size.
        angles: angles between these in radians, [K, K], or [0, 0] with criterion=size.
    """

    draws: Ids
    updates: Float32[np.ndarray, "K P"]
    angles: Float64[np.ndarray, "A A"]


@dataclass(frozen=True)
class Clustered(Selector[State]):
    """Clustered sampling, a client selector.

    Attributes:
        criterion: "size" or "similarity".
        tree: "rows" or "condensed".
        limit: largest population with criterion=similarity.
        tie: "random" or "id".
    """

    criterion: str
    tree: str
    limit: int
    tie: str

    backs_off: ClassVar[bool] = True
    may_choose_fewer: ClassVar[bool] = True
    advises: ClassVar[bool] = True

    def __post_init__(self) -> None:
        ranges.choice("criterion", self.criterion, "size", "similarity")
        ranges.choice("tree", self.tree, "rows", "condensed")
        ranges.integer("limit", self.limit, "[1, inf)")
        ranges.choice("tie", self.tie, "random", "id")

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"n_train"} if self.criterion == "size" else {"n_train", "update"})

    def memory_bytes(self, n_clients: int, n_params: int) -> float:
        """Return the bytes of the stored updates and the angles, of a copy of each, and of the updates in float64."""
        return 0.0 if self.criterion == "size" else 16.0 * n_clients * n_params + 16.0 * n_clients**2

    def init(self, population: Population) -> State:
        """Return the state before round 0.

        Raises:
            OptionError: the population exceeds `limit` with criterion=similarity.
        """
        K = population.n_clients
        if self.criterion == "similarity" and self.limit < K:
            allowed = f"an integer of at least {K}, the number of clients, whose updates are compared in every round"
            raise ranges.range_error("limit", allowed, self.limit)
        n_rows = 0 if self.criterion == "size" else K
        return State(np.zeros(K, np.int64), np.zeros((K, 0), np.float32), np.zeros((n_rows, n_rows)))

    def select(self, state: State, ctx: RoundContext, probes: Mapping[str, ProbeResult]) -> tuple[Selection, State]:
        K, m, available = ctx.n_clients, ctx.cohort, ctx.available
        order_noise = ctx.rng.random(K)
        if len(available) <= m:
            everyone = np.zeros(K)
            everyone[available] = 1.0
            return Selection(available, probability=everyone), replace(state, draws=np.zeros(K, np.int64))
        if self.tie == "random":
            available = available[np.argsort(order_noise[available])]
        n = ctx.signals["n_train"][available]
        n = n if n.any() else np.ones(len(n), np.int64)
        if self.criterion == "size":
            rows = by_size(n, m)
        else:
            rows = by_similarity(n, m, ward_tree(state.angles[np.ix_(available, available)], self.tree))
        position, _, mass = rows
        tickets = np.arange(m) * n.sum() + ctx.rng.integers(n.sum(), size=m)
        chosen = available[position[np.searchsorted(np.cumsum(mass), tickets, side="right")]]
        absence = np.ones(K)
        np.multiply.at(absence, available[position], 1 - mass / n.sum())
        draws = np.bincount(chosen, minlength=K)
        return Selection(np.flatnonzero(draws), probability=1 - absence), replace(state, draws=draws)

    def observe(self, state: State, outcome: RoundOutcome) -> tuple[Advice | None, State]:
        if self.criterion == "similarity":
            state = store_updates(state, outcome.clients, outcome.signals["update"])
        weights = state.draws[outcome.clients].astype(np.float64)
        return (Advice(weights=weights) if weights.any() else None), state


def pour(mass: Ids, room: Ids) -> Urns:
    """Fill urns with items, in order; an item that does not fit spills into the next urn.

    Args:
        mass: mass of each item; the sum is that of `room`.
        room: mass that each urn takes.

    Returns:
        Item, urn and mass of each part, [parts] each, in the order of the urns.
    """
    ends, edges = np.cumsum(mass), np.cumsum(room)
    cuts = np.union1d(ends, edges)
    cuts = cuts[cuts > 0]
    return np.searchsorted(ends, cuts), np.searchsorted(edges, cuts), np.diff(cuts, prepend=0)


def by_size(n: Ids, m: int) -> Urns:
    """Return the distributions of Algorithm 1, of clients with n samples; equal sizes keep their order."""
    order = np.argsort(-n, kind="stable")
    position, urn, mass = pour(m * n[order], np.full(m, n.sum()))
    return order[position], urn, mass


def ward_tree(angles: Float64[np.ndarray, "a a"], tree: str) -> Float64[np.ndarray, "merges 4"]:
    """Return Ward's tree as in `scipy.cluster.hierarchy.linkage`; tree: see `Clustered`."""
    from scipy.cluster.hierarchy import linkage
    from scipy.spatial.distance import pdist, squareform

    distances = pdist(angles) if tree == "rows" else squareform(angles, checks=False)
    return np.asarray(linkage(distances, "ward"))


def by_similarity(n: Ids, m: int, tree: Float64[np.ndarray, "merges 4"]) -> Urns:
    """Return the distributions of Algorithm 2.

    Args:
        n: samples of each client, [a].
        m: number of distributions.
        tree: tree of the clients, as from `ward_tree`.
    """
    capacity = int(n.sum())
    n_single, remainder = np.divmod(m * n, capacity)  # distributions without other clients, and the mass left over
    cluster = cut_tree(remainder, tree, capacity)
    members = np.flatnonzero(remainder)
    total = np.bincount(cluster, weights=remainder, minlength=len(cluster)).astype(np.int64)
    lowest = np.full(len(total), len(n))
    np.minimum.at(lowest, cluster[members], members)
    clusters = np.unique(cluster[members])
    clusters = clusters[np.lexsort((lowest[clusters], total[clusters]))]
    n_filled = len(clusters) - (
        m - int(n_single.sum())
    )  # clusters whose clients fill up the distributions of the others
    rank = np.empty(len(total), np.int64)
    rank[clusters] = np.arange(len(clusters))
    order = members[np.lexsort((members, rank[cluster[members]]))]
    first, light = order[rank[cluster[order]] >= n_filled], order[rank[cluster[order]] < n_filled]
    spilled, spill_urn, spill_mass = pour(remainder[light], capacity - total[clusters[n_filled:]])
    position = np.concatenate([np.repeat(np.arange(len(n)), n_single), first, light[spilled]])
    first_urn = rank[cluster[first]] - n_filled
    urn = np.concatenate([np.arange(n_single.sum()), n_single.sum() + first_urn, n_single.sum() + spill_urn])
    mass = np.concatenate([np.full(n_single.sum(), capacity), remainder[first], spill_mass])
    by_urn = np.argsort(urn, kind="stable")
    return position[by_urn], urn[by_urn], mass[by_urn]


def cut_tree(mass: Ids, tree: Float64[np.ndarray, "merges 4"], capacity: int) -> Ids:
    """Return the number of each client's cluster, [a]: the largest subtree whose total is at most `capacity`.

    Args:
        mass: samples of each client times the number of draws, [a].
        tree: scipy's linkage matrix of the clients.
        capacity: samples of all clients.
    """
    merges = tree[:, :2].astype(np.int64)
    total = np.concatenate([mass, np.zeros(len(merges), np.int64)])
    for node, children in enumerate(merges, len(mass)):
        total[node] = total[children].sum()
    cluster = np.arange(len(total))
    for node in range(len(total) - 1, len(mass) - 1, -1):
        if total[node] <= capacity:
            cluster[merges[node - len(mass)]] = cluster[node]
    return cluster[: len(mass)]


def store_updates(state: State, clients: Ids, values: Float64[np.ndarray, "_n P"]) -> State:
    """Return the state with these updates and the angles between them and all others."""
    is_valid = (np.abs(values) <= LARGEST).all(1)
    clients, values = clients[is_valid], values[is_valid]
    updates = state.updates.copy() if state.updates.shape[1] else np.zeros((len(state.updates), values.shape[1]), "f4")
    updates[clients] = values
    U = updates.astype(np.float64)
    norms = np.linalg.norm(U, axis=1)
    products = U[clients] @ U.T
    scale = np.outer(norms[clients], norms)
    cosines = np.divide(products, scale, out=np.ones_like(products), where=scale > 0)
    angles = state.angles.copy()
    angles[clients] = np.arccos(np.clip(cosines, -1.0, 1.0))
    angles[:, clients] = angles[clients].T
    angles[clients, clients] = 0.0
    return replace(state, updates=updates, angles=angles)
