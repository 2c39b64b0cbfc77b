"""k-means by hand and against scikit-learn."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris
from sklearn.metrics import adjusted_rand_score

from fedcohort.maths import kmeans
from fedcohort.maths.kmeans import cluster_scalars, cluster_vectors

VALUES = np.array([0.1, 0.12, 0.11, -0.5, -0.52, -0.48])


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize("seed", range(5))
def test_two_clusters_of_scalars_by_hand(seed: int) -> None:
    """Means of three each, ascending, whatever the start."""
    np.testing.assert_allclose(cluster_scalars(VALUES, 2, rng(seed)), [-0.5, 0.11], rtol=1e-12)
    np.testing.assert_allclose(cluster_scalars(VALUES[::-1].copy(), 2, rng(seed)), [-0.5, 0.11], rtol=1e-12)


def test_clusters_of_scalars_are_a_fixed_point_as_good_as_scikit_learns() -> None:
    """Best of 10 starts of each; every level is the mean of the values nearest to it."""
    values = np.concatenate([rng().normal(centre, 0.1, 100) for centre in (-3, -1, 0, 4)])

    def spread(means: np.ndarray) -> float:
        return float((np.abs(values[:, None] - means).min(1) ** 2).sum())

    clusters = min((cluster_scalars(values, 4, rng(seed)) for seed in range(10)), key=spread)
    reference = KMeans(4, n_init=10, random_state=0).fit(values[:, None])
    np.testing.assert_allclose(clusters, np.sort(reference.cluster_centers_[:, 0]), rtol=1e-9)
    nearest = np.abs(values[:, None] - clusters).argmin(1)
    np.testing.assert_allclose(clusters, [values[nearest == h].mean() for h in range(4)], rtol=1e-12)


def test_more_clusters_than_distinct_values_are_allowed() -> None:
    """Each value is one, some twice."""
    clusters = cluster_scalars(np.array([1.0, 2.0, 2.0]), 5, rng())
    assert (np.diff(clusters) >= 0).all()
    assert set(clusters) == {1.0, 2.0}


@pytest.mark.parametrize("seed", range(3))
def test_clusters_agree_with_scikit_learn(seed: int) -> None:
    """Iris in three clusters: 78.85 within."""
    X = load_iris().data.astype(np.float64)
    label = cluster_vectors(X, 3, rng(seed))
    reference = KMeans(3, n_init=10, random_state=0).fit(X)
    inertia = sum(((X[label == k] - X[label == k].mean(0)) ** 2).sum() for k in range(3))
    assert inertia == pytest.approx(reference.inertia_, rel=1e-3)
    assert adjusted_rand_score(reference.labels_, label) > 0.97


def test_the_order_of_points_does_not_matter() -> None:
    X, order = rng().standard_normal((40, 3)), rng(1).permutation(40)
    np.testing.assert_array_equal(cluster_vectors(X[order], 6, rng(2)), cluster_vectors(X, 6, rng(2))[order])


def test_clusters_are_numbered_by_their_least_member() -> None:
    X = np.array([[9.0], [0.0], [5.0], [9.1], [0.1]])
    assert cluster_vectors(X, 3, rng()).tolist() == [2, 0, 1, 2, 0]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("distinct", "count"), [(1, 3), (2, 3), (3, 3)])
def test_equal_points_share_a_cluster(distinct: int, count: int) -> None:
    X = np.repeat(np.arange(float(distinct))[:, None], 4, axis=0)
    np.testing.assert_array_equal(cluster_vectors(X, count, rng()), np.repeat(np.arange(distinct), 4))


def lloyd(X: np.ndarray, centres: np.ndarray, steps: int) -> tuple[list[float], np.ndarray]:
    """Sums of squared distances, one a step, and the last step's labels."""
    centres, sums = centres.copy(), []
    for _ in range(steps):
        distance = ((X[:, None] - centres) ** 2).sum(2)
        label = distance.argmin(1)
        sums.append(float(distance.min(1).sum()))
        for h in np.unique(label):
            centres[h] = X[label == h].mean(0)
    return sums, label


def test_k_means_stops_after_the_maximum_of_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand places on a line with all forty starts at one end: they are still moving after 600 steps."""
    X = np.arange(1000.0)[:, None]
    monkeypatch.setattr(kmeans, "_draw_centres", lambda X, count, rng: X[:count].copy())
    sums, label = lloyd(X, X[:40], 300)
    clusters = kmeans._run_lloyd(X, 40, rng())
    assert clusters[0] == pytest.approx(sums[-1], rel=1e-12)
    np.testing.assert_array_equal(clusters[1], label)
    assert lloyd(X, X[:40], 600)[0][-1] < 0.99 * clusters[0], "it would have gone on"


def test_clustering_of_scalars_stops_after_fifty_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.sort(rng().random(1000))[:, None]
    monkeypatch.setattr(kmeans, "_draw_centres", lambda X, count, rng: X[:count].copy())
    _, label = lloyd(X, X[:40], 50)
    np.testing.assert_allclose(
        cluster_scalars(X[:, 0], 40, rng()), [X[label == h].mean() for h in range(40)], rtol=1e-12
    )


class Scripted(np.random.Generator):
    """A generator that returns given numbers, and chooses the first row."""

    def __init__(self, *numbers: float) -> None:
        super().__init__(np.random.PCG64(0))
        self.numbers = list(numbers)

    def random(self, *_: object, **__: object) -> float:  # type: ignore[override]
        return self.numbers.pop(0)

    def integers(self, *_: object, **__: object) -> int:  # type: ignore[override]
        return 0


@pytest.mark.parametrize(("u", "third_row"), [(0.0, 2), (0.47, 2), (0.48, 3), (0.94, 3), (0.95, 4)])
def test_initial_centres_by_hand(u: float, third_row: int) -> None:
    """Each start is drawn in proportion to the squared distance from the starts so far.

    From (0, 0) squares are 0, 100, 9, 9, 85, in sums 0, 100, 109, 118, 203: .4 takes (6, 8). Nearest so far are then 0,
    0, 9, 9, 1, in sums 0, 0, 9, 18, 19: the third start is row 2 below 9/19, row 3 below 18/19.
    """
    X = np.array([[0.0, 0.0], [6.0, 8.0], [0.0, 3.0], [3.0, 0.0], [6.0, 7.0]])
    starts = kmeans._draw_centres(X, 3, Scripted(0.4, u))
    np.testing.assert_array_equal(starts, X[[0, 1, third_row]])


def test_rounding_errors_cause_no_oscillation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Near 1e16 numbers are 2 apart, and a mean is none of them: steps alone would never settle."""
    X, starts = 1e16 + np.array([[0.0], [2], [4], [4], [4], [6], [6]]), 1e16 + np.array([[6.0], [0.0]])
    assert lloyd(X, starts, 41)[0][-4:] == [12.0, 16.0, 12.0, 16.0]
    monkeypatch.setattr(kmeans, "_draw_centres", lambda X, count, rng: starts.copy())
    results = []
    for steps in (300, 301):
        monkeypatch.setattr(kmeans, "MAX_LLOYD_STEPS", steps)
        results.append(kmeans._run_lloyd(X, 2, rng()))
    assert results[0][0] == results[1][0]
    np.testing.assert_array_equal(results[0][1], results[1][1])
