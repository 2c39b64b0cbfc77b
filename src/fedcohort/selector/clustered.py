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
from fedcohort.maths.urns import Urns, cut_ward_tree, fill_urns_in_order, ward_tree
from fedcohort.selector.base import Selector, reject_large_population
from fedcohort.selector.last_updates import store_last_updates
from fedcohort.types import AggregationOverride, Ids, Population, ProbeResult, RoundContext, RoundOutcome, Selection


@dataclass(frozen=True)
class State:
    """State of clustered sampling that is kept between rounds.

    Attributes:
        draws: number of draws of each client for the current cohort, [n_clients]; zeros if all available clients train.
        updates: each client's last update, zeros before it, [n_clients, n_params]; [n_clients, 0] before the first
            round or with criterion=size.
        angles: angles between the clients' last updates in radians, [n_clients, n_clients], or [0, 0] with
            criterion=size.
    """

    draws: Ids
    updates: Float32[np.ndarray, "K P"]
    angles: Float64[np.ndarray, "A A"]


@dataclass(frozen=True)
class Clustered(Selector[State]):
    """Clustered sampling, a client selector: each place of the cohort has its own distribution over clients.

    Attributes:
        criterion: "size" for Algorithm 1, by numbers of samples, or "similarity" for Algorithm 2, by last updates.
        tree: points of Ward's tree with criterion=similarity: the "rows" of the matrix of angles between updates, as in
            the authors' code, or "condensed", which takes the angles as distances.
        limit: largest number of clients with criterion=similarity.
        tie: order of clients with equal numbers of samples or angles: "random" in each round, or by "id".
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
        """Return the memory of updates and angles, 16 bytes for each number in them; 0 with criterion=size.

        Args:
            n_clients: number of clients.
            n_params: number of trainable parameters.
        """
        return 0.0 if self.criterion == "size" else 16.0 * n_clients * n_params + 16.0 * n_clients**2

    def init(self, population: Population) -> State:
        """Return the state before round 0, for the clients of `population`.

        Raises:
            OptionError: the population exceeds `limit` with criterion=similarity.
        """
        K = population.n_clients
        if self.criterion == "similarity":
            reject_large_population(self.limit, K, "whose updates are compared in every round")
        n_angle_rows = 0 if self.criterion == "size" else K
        return State(np.zeros(K, np.int64), np.zeros((K, 0), np.float32), np.zeros((n_angle_rows, n_angle_rows)))

    def select(self, state: State, ctx: RoundContext, probes: Mapping[str, ProbeResult]) -> tuple[Selection, State]:
        K, m, client_ids = ctx.n_clients, ctx.cohort, ctx.available
        random_sort_keys = ctx.rng.random(K)
        if len(client_ids) <= m:
            inclusion_probability = np.zeros(K)
            inclusion_probability[client_ids] = 1.0
            return Selection(client_ids, probability=inclusion_probability), replace(state, draws=np.zeros(K, np.int64))
        if self.tie == "random":
            client_ids = client_ids[np.argsort(random_sort_keys[client_ids])]
        n_train = ctx.signals["n_train"][client_ids]
        n_train = n_train if n_train.any() else np.ones(len(n_train), np.int64)
        urn_clients, _, urn_entry_masses = (
            urns_by_size(n_train, m)
            if self.criterion == "size"
            else urns_by_similarity(n_train, m, ward_tree(state.angles[np.ix_(client_ids, client_ids)], self.tree))
        )
        random_sample_numbers = np.arange(m) * n_train.sum() + ctx.rng.integers(n_train.sum(), size=m)
        drawn_ids = client_ids[
            urn_clients[np.searchsorted(np.cumsum(urn_entry_masses), random_sample_numbers, side="right")]
        ]
        exclusion_probability = np.ones(K)
        np.multiply.at(exclusion_probability, client_ids[urn_clients], 1 - urn_entry_masses / n_train.sum())
        draws = np.bincount(drawn_ids, minlength=K)
        return Selection(np.flatnonzero(draws), probability=1 - exclusion_probability), replace(state, draws=draws)

    def observe(self, state: State, outcome: RoundOutcome) -> tuple[AggregationOverride | None, State]:
        if self.criterion == "similarity":
            state = store_client_updates(state, outcome.clients, outcome.signals["update"])
        draw_counts = state.draws[outcome.clients].astype(np.float64)
        return (AggregationOverride(weights=draw_counts) if draw_counts.any() else None), state


def urns_by_size(n_train: Ids, n_urns: int) -> Urns:
    """Return the sampling distributions (urns) of Algorithm 1, which fills them with clients by decreasing size.

    Args:
        n_train: number of training samples of each client, [n]; equal sizes keep their order.
        n_urns: number of distributions.

    Returns:
        For each pair of a client and an urn that holds samples of it: the client's position, the urn's number from 0,
        and the client's mass in the urn, int64 [entries] each.
    """
    client_order = np.argsort(-n_train, kind="stable")
    urn_clients, urn_of_entry, urn_entry_masses = fill_urns_in_order(
        n_urns * n_train[client_order], np.full(n_urns, n_train.sum())
    )
    return client_order[urn_clients], urn_of_entry, urn_entry_masses


def urns_by_similarity(n_train: Ids, n_urns: int, client_tree: Float64[np.ndarray, "merges 4"]) -> Urns:
    """Return the sampling distributions (urns) of Algorithm 2, which group clients with similar updates.

    Args:
        n_train: number of training samples of each client, [n].
        n_urns: number of distributions.
        client_tree: Ward's tree of the clients as from `ward_tree`, a row for each merge, [n - 1, 4].

    Returns:
        For each pair of a client and an urn that holds samples of it: the client's position, the urn's number from 0,
        and the client's mass in the urn, int64 [entries] each.
    """
    urn_mass = int(n_train.sum())
    n_solo_urns, shared_masses = np.divmod(n_urns * n_train, urn_mass)  # urns of one client, and the mass left over
    cluster_of_client = cut_ward_tree(shared_masses, client_tree, urn_mass)
    shared_clients = np.flatnonzero(shared_masses)
    cluster_masses = np.bincount(cluster_of_client, shared_masses, len(cluster_of_client)).astype(np.int64)
    lowest_client_ids = np.full(len(cluster_masses), len(n_train))
    np.minimum.at(lowest_client_ids, cluster_of_client[shared_clients], shared_clients)
    cluster_numbers = np.unique(cluster_of_client[shared_clients])
    cluster_numbers = cluster_numbers[np.lexsort((lowest_client_ids[cluster_numbers], cluster_masses[cluster_numbers]))]
    n_shared_urns = n_urns - int(n_solo_urns.sum())
    n_light_clusters = len(cluster_numbers) - n_shared_urns  # lighter clusters, which fill up the urns of the others
    cluster_rank = np.empty(len(cluster_masses), np.int64)
    cluster_rank[cluster_numbers] = np.arange(len(cluster_numbers))
    client_order = shared_clients[np.lexsort((shared_clients, cluster_rank[cluster_of_client[shared_clients]]))]
    heavy_clients = client_order[cluster_rank[cluster_of_client[client_order]] >= n_light_clusters]
    light_clients = client_order[cluster_rank[cluster_of_client[client_order]] < n_light_clusters]
    unfilled_urn_masses = urn_mass - cluster_masses[cluster_numbers[n_light_clusters:]]
    light_client_positions, urn_of_light_client, light_client_masses = fill_urns_in_order(
        shared_masses[light_clients], unfilled_urn_masses
    )
    solo_clients = np.repeat(np.arange(len(n_train)), n_solo_urns)
    urn_clients = np.concatenate([solo_clients, heavy_clients, light_clients[light_client_positions]])
    urns_of_heavy_clients = cluster_rank[cluster_of_client[heavy_clients]] - n_light_clusters
    urn_of_entry = np.concatenate(
        [
            np.arange(len(solo_clients)),
            len(solo_clients) + urns_of_heavy_clients,
            len(solo_clients) + urn_of_light_client,
        ]
    )
    urn_entry_masses = np.concatenate(
        [np.full(len(solo_clients), urn_mass), shared_masses[heavy_clients], light_client_masses]
    )
    entry_order = np.argsort(urn_of_entry, kind="stable")
    return urn_clients[entry_order], urn_of_entry[entry_order], urn_entry_masses[entry_order]


def store_client_updates(state: State, clients: Ids, new_updates: Float64[np.ndarray, "_n P"]) -> State:
    """Return the state with new updates of `clients` and the angles of these updates to all stored updates.

    Args:
        state: the selector's state before.
        clients: ids of the clients that arrived, [n].
        new_updates: update of each of `clients`, [n, n_params]; an update that does not fit float32 is left out.
    """
    updates, clients = store_last_updates(state.updates, clients, new_updates)
    update_matrix = updates.astype(np.float64)
    update_norms = np.linalg.norm(update_matrix, axis=1)
    dot_products = update_matrix[clients] @ update_matrix.T
    norm_products = np.outer(update_norms[clients], update_norms)
    update_cosines = np.divide(dot_products, norm_products, out=np.ones_like(dot_products), where=norm_products > 0)
    angles = state.angles.copy()
    angles[clients] = np.arccos(np.clip(update_cosines, -1.0, 1.0))
    angles[:, clients] = angles[clients].T
    angles[clients, clients] = 0.0
    return replace(state, updates=updates, angles=angles)
