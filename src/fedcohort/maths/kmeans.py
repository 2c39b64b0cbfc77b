"""Lloyd's k-means with k-means++ starts (Arthur and Vassilvitskii 2007), of numbers and of vectors.

scikit-learn is not used because selections depend on the clusters: here sums have the same order with any number of
threads, no cluster becomes empty, and equal points cause no warning.
"""

import numpy as np
from jaxtyping import Float64, Int64

PointMatrix = Float64[np.ndarray, "_n d"]

MIN_RELATIVE_IMPROVEMENT = 1e-12  # relative improvement below which a run ends
MAX_LLOYD_STEPS = 300  # largest number of steps of a run, as in scikit-learn


def cluster_scalars(
    scalars: Float64[np.ndarray, "n"], n_clusters: int, rng: np.random.Generator, max_steps: int = 50
) -> np.ndarray:
    """Return the sorted means of `n_clusters` clusters of numbers by k-means, [n_clusters].

    Clusters of numbers are intervals whose bounds are in the middle between two means.

    Args:
        scalars: the numbers, [n].
        n_clusters: number of clusters.
        rng: random generator of the first means.
        max_steps: largest number of steps.
    """
    scalars = np.sort(scalars)
    cumulative_sums = np.concatenate([[0.0], np.cumsum(scalars)])
    cluster_means = np.sort(_draw_centres(scalars[:, None], n_clusters, rng)[:, 0])
    for _ in range(max_steps):
        inner_cluster_bounds = np.searchsorted(scalars, (cluster_means[1:] + cluster_means[:-1]) / 2)
        cluster_bounds = np.concatenate([[0], inner_cluster_bounds, [len(scalars)]])
        cluster_sizes, cluster_sums = np.diff(cluster_bounds), np.diff(cumulative_sums[cluster_bounds])
        next_cluster_means = np.where(cluster_sizes > 0, cluster_sums / np.maximum(cluster_sizes, 1), cluster_means)
        if np.array_equal(next_cluster_means, cluster_means):
            break
        cluster_means = next_cluster_means
    return cluster_means


def cluster_vectors(
    X: PointMatrix, n_clusters: int, rng: np.random.Generator, n_restarts: int = 10
) -> Int64[np.ndarray, "_n"]:
    """Return the cluster number of each row by the best of several runs of k-means, int64 [n].

    Clusters are numbered by their first member in lexicographic order, so that the order of rows does not matter.

    Args:
        X: the vectors, [n, d].
        n_clusters: largest number of clusters.
        rng: random generator of the first centres.
        n_restarts: number of runs.
    """
    row_order = np.lexsort(X.T[::-1])
    sorted_points = X[row_order]
    lloyd_runs = [_run_lloyd(sorted_points, n_clusters, rng) for _ in range(n_restarts)]
    _, best_labels = min(lloyd_runs, key=lambda lloyd_run: lloyd_run[0])
    _, first_member_rows = np.unique(best_labels, return_index=True)
    sorted_cluster_number = np.empty(best_labels.max(initial=-1) + 1, np.int64)
    sorted_cluster_number[best_labels[np.sort(first_member_rows)]] = np.arange(len(first_member_rows))
    cluster_of_row = np.empty(len(X), np.int64)
    cluster_of_row[row_order] = sorted_cluster_number[best_labels]
    return cluster_of_row


def _run_lloyd(X: PointMatrix, n_clusters: int, rng: np.random.Generator) -> tuple[float, Int64[np.ndarray, "_n"]]:
    """Run k-means on X [n, d] from one start; return the sum of squared distances, and each row's cluster number, [n].

    A step without improvement ends the run, also if it is worse by rounding, so that runs do not oscillate.
    """
    centres, previous_inertia, squared_distance_sum = _draw_centres(X, n_clusters, rng), np.inf, np.inf
    cluster_of_row = np.zeros(len(X), np.int64)
    for _ in range(MAX_LLOYD_STEPS):
        squared_distances = np.stack([((X - centre) ** 2).sum(1) for centre in centres], axis=1)
        cluster_of_row = squared_distances.argmin(1)
        squared_distance_sum = float(squared_distances[np.arange(len(X)), cluster_of_row].sum())
        if not squared_distance_sum < previous_inertia * (1 - MIN_RELATIVE_IMPROVEMENT):
            break
        previous_inertia = squared_distance_sum
        for cluster_number in np.unique(cluster_of_row):
            centres[cluster_number] = X[cluster_of_row == cluster_number].mean(0)
    return squared_distance_sum, cluster_of_row


def _draw_centres(X: PointMatrix, n_clusters: int, rng: np.random.Generator) -> PointMatrix:
    """Draw `n_clusters` rows of X [n, d] as centres by k-means++, [n_clusters, d].

    The probability of a row is proportional to its squared distance to the nearest centre.
    """
    centres = np.empty((n_clusters, X.shape[1]))
    centres[0] = X[rng.integers(len(X))]
    nearest_distances = ((X - centres[0]) ** 2).sum(1)
    for cluster_number in range(1, n_clusters):
        cumulative_distances = np.cumsum(nearest_distances)
        drawn_point = int(np.searchsorted(cumulative_distances, rng.random() * cumulative_distances[-1], side="right"))
        centres[cluster_number] = X[min(drawn_point, len(X) - 1)]
        nearest_distances = np.minimum(nearest_distances, ((X - centres[cluster_number]) ** 2).sum(1))
    return centres
