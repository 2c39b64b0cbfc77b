"""Lloyd's k-means with k-means++ starts (Arthur and Vassilvitskii 2007), of numbers and of vectors.

scikit-learn is not used because selections depend on the clusters: here sums have the same order with any number of
threads, no cluster becomes empty, and equal points cause no warning.
"""

import numpy as np
from jaxtyping import Float64, Int64

Points = Float64[np.ndarray, "_n d"]

TOLERANCE = 1e-12  # relative improvement below which a run ends
MAX_STEPS = 300  # largest number of steps of a run, as in scikit-learn


def cluster_numbers(
    values: Float64[np.ndarray, "n"], count: int, rng: np.random.Generator, steps: int = 50
) -> np.ndarray:
    """Return the sorted means of `count` clusters of numbers, [count], in O(n log n + steps count log n).

    Clusters of numbers are intervals whose bounds are in the middle between two means.
    """
    values = np.sort(values)
    cumulative_sums = np.concatenate([[0.0], np.cumsum(values)])
    means = np.sort(_draw_centres(values[:, None], count, rng)[:, 0])
    for _ in range(steps):
        boundaries = np.searchsorted(values, (means[1:] + means[:-1]) / 2)
        edges = np.concatenate([[0], boundaries, [len(values)]])
        sizes = np.diff(edges)
        next_means = np.where(sizes > 0, np.diff(cumulative_sums[edges]) / np.maximum(sizes, 1), means)
        if np.array_equal(next_means, means):
            break
        means = next_means
    return means


def cluster_vectors(X: Points, count: int, rng: np.random.Generator, restarts: int = 10) -> Int64[np.ndarray, "_n"]:
    """Return each row's cluster, 0 .. count - 1, by the best of `restarts` runs; fewer if fewer rows are distinct.

    Clusters are numbered by their first member in lexicographic order, so that the order of rows does not matter.
    """
    order = np.lexsort(X.T[::-1])
    rows = X[order]
    runs = [_run(rows, count, rng) for _ in range(restarts)]
    _, label = min(runs, key=lambda run: run[0])
    _, first = np.unique(label, return_index=True)
    cluster_number = np.empty(label.max(initial=-1) + 1, np.int64)
    cluster_number[label[np.sort(first)]] = np.arange(len(first))
    out = np.empty(len(X), np.int64)
    out[order] = cluster_number[label]
    return out


def inertia(X: Points, label: Int64[np.ndarray, "_n"]) -> float:
    """Return the sum of squared distances of the points X to the means of their clusters; label: cluster of each."""
    return float(sum(((X[label == h] - X[label == h].mean(0)) ** 2).sum() for h in np.unique(label)))


def _run(X: Points, count: int, rng: np.random.Generator) -> tuple[float, Int64[np.ndarray, "_n"]]:
    """Run at most `MAX_STEPS` steps; return the inertia and each point's nearest centre.

    A step without improvement ends the run, also if it is worse by rounding, so that runs do not oscillate.
    """
    centres, old_inertia, new_inertia = _draw_centres(X, count, rng), np.inf, np.inf
    label = np.zeros(len(X), np.int64)
    for _ in range(MAX_STEPS):
        distance = np.stack([((X - centre) ** 2).sum(1) for centre in centres], axis=1)
        label = distance.argmin(1)
        new_inertia = float(distance[np.arange(len(X)), label].sum())
        if not new_inertia < old_inertia * (1 - TOLERANCE):
            break
        old_inertia = new_inertia
        for h in np.unique(label):
            centres[h] = X[label == h].mean(0)
    return new_inertia, label


def _draw_centres(X: Points, count: int, rng: np.random.Generator) -> Points:
    """Draw centres by k-means++: with probabilities in proportion to the squared distance to the nearest centre."""
    centres = np.empty((count, X.shape[1]))
    centres[0] = X[rng.integers(len(X))]
    nearest = ((X - centres[0]) ** 2).sum(1)
    for h in range(1, count):
        running = np.cumsum(nearest)
        u = rng.random() * running[-1]
        centres[h] = X[min(int(np.searchsorted(running, u, side="right")), len(X) - 1)]
        nearest = np.minimum(nearest, ((X - centres[h]) ** 2).sum(1))
    return centres
