"""Lloyd's k-means from k-means++ starts (Arthur and Vassilvitskii 2007), of numbers and of vectors.

Own, because a choice hangs on it: the sums have one order whatever the threads, a cluster never gets empty, and equal
points are no cause for a warning.
"""

import numpy as np
from jaxtyping import Float64, Int64

Points = Float64[np.ndarray, "_n d"]

NEAR = 1e-12  # relative improvement below which a run is over
STEPS = 300  # of a run at most, as in scikit-learn: the last ones of a long run hardly improve it


def levels(values: Float64[np.ndarray, "n"], count: int, rng: np.random.Generator, steps: int = 50) -> np.ndarray:
    """The means of `count` groups of numbers, ascending, [count]; O(n log n + steps count log n).

    Groups of sorted numbers are intervals, and the middle between two means is where they meet.
    """
    values = np.sort(values)
    sums = np.concatenate([[0.0], np.cumsum(values)])
    means = np.sort(_starts(values[:, None], count, rng)[:, 0])
    for _ in range(steps):
        cuts = np.searchsorted(values, (means[1:] + means[:-1]) / 2)
        edges = np.concatenate([[0], cuts, [len(values)]])
        sizes = np.diff(edges)
        new = np.where(sizes > 0, np.diff(sums[edges]) / np.maximum(sizes, 1), means)
        if np.array_equal(new, means):
            break
        means = new
    return means


def clusters(X: Points, count: int, rng: np.random.Generator, restarts: int = 10) -> Int64[np.ndarray, "_n"]:
    """Return each row's cluster, 0 .. count - 1, by the best of `restarts` runs.

    There are fewer where fewer rows are distinct.

    Clusters are numbered by their first member in lexicographic order of rows, so that the order of rows is of no
    consequence.
    """
    order = np.lexsort(X.T[::-1])
    rows = X[order]
    runs = [_run(rows, count, rng) for _ in range(restarts)]
    _, label = min(runs, key=lambda run: run[0])
    _, first = np.unique(label, return_index=True)
    number = np.empty(label.max(initial=-1) + 1, np.int64)
    number[label[np.sort(first)]] = np.arange(len(first))
    out = np.empty(len(X), np.int64)
    out[order] = number[label]
    return out


def inertia(X: Points, label: Int64[np.ndarray, "_n"]) -> float:
    """Return the sum of squared distances to the clusters' means."""
    return float(sum(((X[label == h] - X[label == h].mean(0)) ** 2).sum() for h in np.unique(label)))


def _run(X: Points, count: int, rng: np.random.Generator) -> tuple[float, Int64[np.ndarray, "_n"]]:
    """Run `STEPS` steps at most; return the inertia and each point's label, that of the nearest centre.

    A step that rounding makes worse ends it as one that improves nothing does, so it can't go to and fro.
    """
    centres, before, now = _starts(X, count, rng), np.inf, np.inf
    label = np.zeros(len(X), np.int64)
    for _ in range(STEPS):
        distance = np.stack([((X - centre) ** 2).sum(1) for centre in centres], axis=1)
        label = distance.argmin(1)
        now = float(distance[np.arange(len(X)), label].sum())
        if not now < before * (1 - NEAR):
            break
        before = now
        for h in np.unique(label):
            centres[h] = X[label == h].mean(0)
    return now, label


def _starts(X: Points, count: int, rng: np.random.Generator) -> Points:
    """k-means++: each further centre in proportion to the squared distance to the nearest so far."""
    centres = np.empty((count, X.shape[1]))
    centres[0] = X[rng.integers(len(X))]
    nearest = ((X - centres[0]) ** 2).sum(1)
    for h in range(1, count):
        running = np.cumsum(nearest)
        u = rng.random() * running[-1]
        centres[h] = X[min(int(np.searchsorted(running, u, side="right")), len(X) - 1)]
        nearest = np.minimum(nearest, ((X - centres[h]) ** 2).sum(1))
    return centres
