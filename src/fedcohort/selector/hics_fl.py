"""HiCS-FL: clusters of clients with similar output layers, drawn by the entropy of their data (Chen and Vikalo 2024).

H. Chen, H. Vikalo, "Heterogeneity-Guided Client Sampling: Towards Fast and Efficient Non-IID Federated Learning",
NeurIPS 2024, arXiv 2310.00198. Delta b_i and Delta W_i are the update of the biases and weights of the output layer.

    entropy:  H_i = H(softmax(Delta b_i / temperature)), an estimate of the entropy of client i's classes
    distance:  arccos(cos(Delta b_i, Delta b_j)) + scale |H_i - H_j|
    clusters:  Ward's tree of the distances, cut into `clusters` clusters
    S:  m times a cluster c, in proportion to exp(gamma (1 - t / T) mean of H_i over c), and then a client of it

The entropy guides early rounds; with t = T all clusters are equally probable. Within a cluster clients are drawn
uniformly, without repetition, and a cluster without clients left is not drawn.

The abstract and the authors' code were read, the full text was not; the biases are those of the paper as recalled. The
code, which source=layer follows, takes the mean over F of Delta W_i instead of Delta b_i for H_i, and the whole layer
for the angle. It clusters by entropy only where the entropies have a variance below 0.1, and uses Algorithm 2 of
clustered sampling elsewhere (`clustered.py`); this is left out.

Departures from the paper:
- Clients that never trained come first, in random order. The code visits clients by id, and may leave out the last.
- The tree is of the rows of the matrix of distances, as in the code.
- An update of zero, or one that is not finite, has the largest entropy, ln C, and an angle of zero to all clients.
- T is the option `horizon`; a run that another limit ends has a smaller t at its end.
- The clusters are those of the available clients. The temperature depends on the length of local training: values
  of 0.001 and 0.0015 are in the code, for Adam with a step of 0.001.
- A client that failed three times in a row is withheld for some rounds (`round/backoff.py`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from jaxtyping import Bool, Float64

from fedcohort import ranges
from fedcohort.arrays import Ids, Values
from fedcohort.selector.base import Selector, draw, reject_large_population
from fedcohort.types import AggregationOverride, Population, ProbeResult, RoundContext, RoundOutcome, Selection

MAX_UPDATE_ENTRY = 1e100  # of the numbers of an update, whose squares are added


@dataclass(frozen=True)
class State:
    """State of HiCS-FL that is kept between rounds.

    Attributes:
        entropy: estimated entropy of each client's classes in nats, ln C before its first update, [n_clients].
        vectors: the part of each client's last update whose angles are compared, scaled to length 1, [n_clients, d];
            zeros before its first update, [n_clients, 0] before the first round.
        has_trained: whether a client has sent an update, [n_clients].
        n_classes: number of classes, C.
        n_clusters: number of clusters to form, at most.
    """

    entropy: Values
    vectors: Float64[np.ndarray, "K d"]
    has_trained: Bool[np.ndarray, "K"]
    n_classes: int
    n_clusters: int


@dataclass(frozen=True)
class HicsFl(Selector[State]):
    """HiCS-FL, a client selector: it clusters clients by the output layer of their updates.

    Attributes:
        source: part of an update that is read: "bias", the biases of the output layer, or "layer", its weights and
            biases.
        temperature: divisor of the updates in the softmax that estimates the shares of a client's classes.
        scale: weight of the difference of two clients' entropies in their distance, in radians per nat.
        gamma: weight of a cluster's mean entropy in the exponent of its probability, per nat.
        clusters: number of clusters; None for the cohort's size.
        horizon: round from which all clusters are equally probable.
        limit: largest number of clients that the method accepts, since all pairs are compared.
    """

    source: str
    temperature: float
    scale: float
    gamma: float
    clusters: int | None
    horizon: int
    limit: int

    backs_off: ClassVar[bool] = True
    needs: ClassVar[frozenset[str]] = frozenset({"output_layer"})

    def __post_init__(self) -> None:
        ranges.choice("source", self.source, "bias", "layer")
        ranges.number("temperature", self.temperature, "(0, inf)")
        ranges.number("scale", self.scale, "[0, inf)")
        ranges.number("gamma", self.gamma, "[0, inf)")
        ranges.integer("clusters", self.clusters, "[1, inf)", allow_null=True)
        ranges.integer("horizon", self.horizon, "[1, inf)")
        ranges.integer("limit", self.limit, "[1, inf)")

    def memory_bytes(self, n_clients: int, n_params: int) -> float:
        """Return the bytes of three float64 numbers for each pair of clients, the distances that clustering needs.

        Args:
            n_clients: number of clients.
            n_params: number of trainable parameters.
        """
        return 24.0 * n_clients**2

    def init(self, population: Population) -> State:
        """Return the state before round 0, for the clients of `population`.

        Raises:
            OptionError: the population exceeds `limit`.
        """
        K, C = population.n_clients, population.n_classes
        reject_large_population(self.limit, K, "which are compared in every round")
        return State(np.full(K, np.log(C)), np.zeros((K, 0)), np.zeros(K, bool), C, self.clusters or population.cohort)

    def select(self, state: State, ctx: RoundContext, probes: Mapping[str, ProbeResult]) -> tuple[Selection, State]:
        K, available_ids = ctx.n_clients, ctx.available
        has_trained = state.has_trained[available_ids]
        untrained_ids = draw(np.ones(K), available_ids[~has_trained], ctx.cohort, ctx.rng)
        candidate_ids = available_ids[has_trained]
        n_drawn = min(ctx.cohort - len(untrained_ids), len(candidate_ids))
        if not n_drawn:
            return Selection(untrained_ids), state
        cluster_ids = self.cluster_clients(state, candidate_ids, state.n_clusters)
        mean_entropy = np.bincount(cluster_ids, state.entropy[candidate_ids]) / np.bincount(cluster_ids)
        cluster_probability = cluster_probabilities(mean_entropy, self.gamma, ctx.round, self.horizon)
        drawn_ids = candidate_ids[draw_by_cluster(cluster_probability, cluster_ids, n_drawn, ctx.rng)]
        scores = np.full(K, np.nan)
        scores[candidate_ids] = mean_entropy[cluster_ids]
        score_terms = {"entropy": np.where(state.has_trained, state.entropy, np.nan)}
        return Selection(np.sort(np.concatenate([untrained_ids, drawn_ids])), scores, score_terms), state

    def observe(self, state: State, outcome: RoundOutcome) -> tuple[AggregationOverride | None, State]:
        clients, C = outcome.clients, state.n_classes
        updates = outcome.signals["output_layer"]
        updates = np.where((np.abs(updates) <= MAX_UPDATE_ENTRY).all(axis=1, keepdims=True), updates, 0.0)
        update_by_class = updates[:, -C:]
        if self.source == "layer":
            update_by_class = updates[:, :-C].reshape(len(updates), C, updates.shape[1] // C - 1).mean(axis=2)
        vectors = updates if self.source == "layer" else updates[:, -C:]
        update_norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        stored_vectors = state.vectors.copy()
        if not stored_vectors.shape[1]:
            stored_vectors = np.zeros((len(stored_vectors), vectors.shape[1]))
        stored_vectors[clients] = np.divide(vectors, update_norms, out=np.zeros_like(vectors), where=update_norms > 0)
        entropy, has_trained = state.entropy.copy(), state.has_trained.copy()
        entropy[clients], has_trained[clients] = softmax_entropy(update_by_class / self.temperature), True
        return None, replace(state, entropy=entropy, vectors=stored_vectors, has_trained=has_trained)

    def cluster_clients(self, state: State, clients: Ids, n_clusters: int) -> Ids:
        """Return the number of each client's cluster, from 0, int64 [n].

        Args:
            state: the selector's state, with vectors and entropies.
            clients: ids of the clients to cluster, [n].
            n_clusters: largest number of clusters.
        """
        from scipy.cluster.hierarchy import fcluster, linkage
        from scipy.spatial.distance import pdist

        if len(clients) == 1:
            return np.zeros(1, np.int64)
        distances = client_distances(state.vectors[clients], state.entropy[clients], self.scale)
        cluster_labels = fcluster(linkage(pdist(distances), "ward"), n_clusters, "maxclust")
        return np.asarray(np.unique(cluster_labels, return_inverse=True)[1].astype(np.int64))


def softmax_entropy(logits: Float64[np.ndarray, "_n C"]) -> Values:
    """Return the entropy of the softmax of each row of `logits` [n, n_classes], in nats, [n]."""
    shifted_logits = logits - logits.max(axis=1, keepdims=True, initial=-np.inf)
    exp_logits = np.exp(shifted_logits)
    class_probs = exp_logits / exp_logits.sum(axis=1, keepdims=True)
    return np.asarray(-(class_probs * np.log(np.where(class_probs > 0, class_probs, 1.0))).sum(axis=1))


def client_distances(vectors: Float64[np.ndarray, "a d"], entropy: Values, scale: float) -> Float64[np.ndarray, "a a"]:
    """Return the distance arccos(cos(v_i, v_j)) + scale |H_i - H_j| of all pairs of clients, [a, a].

    Args:
        vectors: a vector of length 1 or 0 for each client, [a, d]; one of length 0 has an angle of 0 to all clients.
        entropy: label entropy H of each client in nats, [a].
        scale: weight of the difference of two entropies, in radians per nat.
    """
    is_nonzero_vector = vectors.any(axis=1)
    cosines = np.where(np.outer(is_nonzero_vector, is_nonzero_vector), np.clip(vectors @ vectors.T, -1.0, 1.0), 1.0)
    np.fill_diagonal(cosines, 1.0)
    return np.asarray(np.arccos(cosines) + scale * np.abs(entropy[:, None] - entropy))


def cluster_probabilities(mean_entropy: Values, gamma: float, round: int, n_rounds: int) -> Values:
    """Return the probability of each cluster, in proportion to exp(gamma (1 - round / n_rounds) entropy), [c].

    Args:
        mean_entropy: mean label entropy of each cluster's clients in nats, [c].
        gamma: weight of the entropy, per nat.
        round: number of the round, from 0.
        n_rounds: round from which all clusters are equally probable.
    """
    cluster_exponents = gamma * max(1 - round / n_rounds, 0.0) * mean_entropy
    cluster_weights = np.exp(cluster_exponents - cluster_exponents.max())
    return np.asarray(cluster_weights / cluster_weights.sum())


def draw_by_cluster(p: Values, cluster_of_client: Ids, n_drawn: int, rng: np.random.Generator) -> Ids:
    """Draw clients without replacement, each by drawing a cluster and then one of its clients; return sorted positions.

    Args:
        p: probability of each cluster, [c]; an empty cluster is not drawn.
        cluster_of_client: cluster of each client, from 0, [a].
        n_drawn: number of clients to draw, at most a.
        rng: random generator of the draws.
    """
    remaining_positions_by_cluster = [
        rng.permutation(np.flatnonzero(cluster_of_client == c)).tolist() for c in range(len(p))
    ]
    drawn_positions = []
    for u in rng.random(n_drawn):
        cluster_has_clients = np.array(
            [len(cluster_positions) > 0 for cluster_positions in remaining_positions_by_cluster]
        )
        cluster_weights = np.where(cluster_has_clients, p, 0.0)
        weight_sums = np.cumsum(cluster_weights if cluster_weights.any() else cluster_has_clients)
        drawn_positions.append(
            remaining_positions_by_cluster[int(np.searchsorted(weight_sums / weight_sums[-1], u, side="right"))].pop()
        )
    return np.sort(np.array(drawn_positions, np.int64))
