"""DivFL: clients whose last updates represent those of all clients, by facility location (Balakrishnan et al. 2022).

R. Balakrishnan et al., "Diverse Client Selection for Federated Learning via Submodular
Maximization", ICLR 2022, OpenReview nwKXyFvaUm. No DOI or arXiv number was found.

    objective:  min_S sum_i min_{j in S} ||U_i - U_j||,  U_i the last update of client i
    greedy:  S <- S + argmin_j of the objective of S + j, from the empty set to m clients
    aggregation=cluster:  weights gamma_j / a, gamma_j the number of the a clients that are nearest to j

The paper was not read; the rule is that of the authors' code, which selects over stored gradients and leaves the
aggregation as it is. The weights gamma_j are commented out in it. Other public code sums squared distances, which gives
other cohorts.

Departures from the paper:
- Clients that never trained come first, in random order. The code queries a gradient of every client in round 0.
- The stored vectors are the updates, where the code stores gradients of the local solver.
- The sum is over the available clients that have trained. Equal objectives are decided at random, in the code by id.
- An update too large for float32 leaves the stored one as it was.
- A client that failed three times in a row is withheld for some rounds (`round/backoff.py`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from jaxtyping import Bool, Float32, Float64

from fedcohort import ranges
from fedcohort.selector.base import Selector, reject_large_population
from fedcohort.selector.last_updates import store_last_updates
from fedcohort.types import AggregationOverride, Ids, Population, ProbeResult, RoundContext, RoundOutcome, Selection

TIE_TOLERANCE = 1e-9  # relative difference up to which two objectives are equal


@dataclass(frozen=True)
class State:
    """State of DivFL that is kept between rounds.

    Attributes:
        updates: each client's last update, zeros before it, [n_clients, n_params]; [n_clients, 0] before the first
            round.
        distances: Euclidean distances between the clients' last updates, [n_clients, n_clients].
        has_trained: whether a client has sent an update, [n_clients].
        cluster_sizes: number of available clients to which a client of the current cohort is the nearest one in it,
            [n_clients]; zeros if the cohort has clients that never trained.
    """

    updates: Float32[np.ndarray, "K P"]
    distances: Float64[np.ndarray, "K K"]
    has_trained: Bool[np.ndarray, "K"]
    cluster_sizes: Ids


@dataclass(frozen=True)
class DivFL(Selector[State]):
    """DivFL, a client selector: a cohort whose updates represent those of all clients.

    Attributes:
        aggregation: weights of the updates: "own" keeps the aggregator's, "cluster" gives a client the number of
            clients whose updates are nearest to its own.
        limit: largest number of clients that the method accepts, since all pairs of updates are compared.
        tie: which of equally good clients is chosen: a "random" one, or the lowest "id".
    """

    aggregation: str
    limit: int
    tie: str

    backs_off: ClassVar[bool] = True
    needs: ClassVar[frozenset[str]] = frozenset({"update"})

    def __post_init__(self) -> None:
        ranges.choice("aggregation", self.aggregation, "own", "cluster")
        ranges.integer("limit", self.limit, "[1, inf)")
        ranges.choice("tie", self.tie, "random", "id")

    @property
    def advises(self) -> bool:
        return self.aggregation == "cluster"

    def memory_bytes(self, n_clients: int, n_params: int) -> float:
        """Return the memory in bytes of updates and distances with the copies that a round makes of them.

        Args:
            n_clients: number of clients.
            n_params: number of trainable parameters.
        """
        return 16.0 * n_clients * n_params + 24.0 * n_clients**2

    def init(self, population: Population) -> State:
        """Return the state before round 0, for the clients of `population`.

        Raises:
            OptionError: the population exceeds `limit`.
        """
        K = population.n_clients
        reject_large_population(self.limit, K, "whose updates are compared in every round")
        return State(np.zeros((K, 0), np.float32), np.zeros((K, K)), np.zeros(K, bool), np.zeros(K, np.int64))

    def select(self, state: State, ctx: RoundContext, probes: Mapping[str, ProbeResult]) -> tuple[Selection, State]:
        available_ids, random_sort_keys = ctx.available, ctx.rng.random(ctx.n_clients)
        if self.tie == "random":
            available_ids = available_ids[np.argsort(random_sort_keys[available_ids])]
        has_trained = state.has_trained[available_ids]
        untrained_ids, candidate_ids = available_ids[~has_trained][: ctx.cohort], available_ids[has_trained]
        n_facilities = min(ctx.cohort - len(untrained_ids), len(candidate_ids))
        facility_clients, gamma = choose_facilities(state.distances[np.ix_(candidate_ids, candidate_ids)], n_facilities)
        cluster_sizes = np.zeros(ctx.n_clients, np.int64)
        if not len(untrained_ids):
            cluster_sizes[candidate_ids[facility_clients]] = gamma
        clients = np.sort(np.concatenate([untrained_ids, candidate_ids[facility_clients]]))
        return Selection(clients), replace(state, cluster_sizes=cluster_sizes)

    def observe(self, state: State, outcome: RoundOutcome) -> tuple[AggregationOverride | None, State]:
        has_trained = state.has_trained.copy()
        has_trained[outcome.clients] = True
        updates, clients = store_last_updates(state.updates, outcome.clients, outcome.signals["update"])
        distances = state.distances.copy()
        for client_id in clients.tolist():
            update_differences = updates - updates[client_id].astype(np.float64)
            distances[client_id] = distances[:, client_id] = np.linalg.norm(update_differences, axis=1)
        cluster_weights = state.cluster_sizes[outcome.clients].astype(np.float64)
        agg_override = AggregationOverride(weights=cluster_weights) if self.advises and cluster_weights.any() else None
        return agg_override, replace(state, updates=updates, distances=distances, has_trained=has_trained)


def choose_facilities(distances: Float64[np.ndarray, "a a"], n_facilities: int) -> tuple[Ids, Ids]:
    """Return the rows that greedy facility location chooses, in order, and how many rows are nearest to each.

    Args:
        distances: distance between each pair of clients, [a, a]; of equal objectives the first row wins.
        n_facilities: number f of rows to choose, at most a. Both results are int64 [f].
    """
    facility_positions: list[int] = []
    nearest_distances = np.full(len(distances), np.inf)
    for _ in range(n_facilities):
        objective_values = np.minimum(nearest_distances[:, None], distances).sum(axis=0)
        objective_values[facility_positions] = np.inf
        min_objective = objective_values.min()
        facility_positions.append(
            int(np.argmax(objective_values <= min_objective + TIE_TOLERANCE * max(1.0, min_objective)))
        )
        nearest_distances = np.minimum(nearest_distances, distances[:, facility_positions[-1]])
    facility_clients = np.array(facility_positions, np.int64)
    nearest_facility = distances[:, facility_clients].argmin(axis=1) if n_facilities else facility_clients
    return facility_clients, np.bincount(nearest_facility, minlength=n_facilities)
