"""k-means by hand and against scikit-learn."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris
from sklearn.metrics import adjusted_rand_score

from fedcohort.bandit.kmeans import clusters, inertia, levels

VALUES = np.array([0.1, 0.12, 0.11, -0.5, -0.52, -0.48])


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize("seed", range(5))
def test_two_levels_by_hand(seed: int) -> None:
    """Means of three each, ascending, whatever the start."""
    np.testing.assert_allclose(levels(VALUES, 2, rng(seed)), [-0.5, 0.11], rtol=1e-12)
    np.testing.assert_allclose(levels(VALUES[::-1].copy(), 2, rng(seed)), [-0.5, 0.11], rtol=1e-12)


def test_levels_are_a_fixed_point_as_good_as_scikit_learns() -> None:
    """Best of 10 starts of each; every level is the mean of the values nearest to it."""
    values = np.concatenate([rng().normal(at, 0.1, 100) for at in (-3, -1, 0, 4)])

    def spread(means: np.ndarray) -> float:
        return float((np.abs(values[:, None] - means).min(1) ** 2).sum())

    found = min((levels(values, 4, rng(seed)) for seed in range(10)), key=spread)
    reference = KMeans(4, n_init=10, random_state=0).fit(values[:, None])
    np.testing.assert_allclose(found, np.sort(reference.cluster_centers_[:, 0]), rtol=1e-9)
    nearest = np.abs(values[:, None] - found).argmin(1)
    np.testing.assert_allclose(found, [values[nearest == h].mean() for h in range(4)], rtol=1e-12)


def test_more_levels_than_values() -> None:
    """Each value is one, some twice."""
    found = levels(np.array([1.0, 2.0, 2.0]), 5, rng())
    assert (np.diff(found) >= 0).all()
    assert set(found) == {1.0, 2.0}


@pytest.mark.parametrize("seed", range(3))
def test_clusters_are_scikit_learns(seed: int) -> None:
    """Iris in three clusters: 78.85 within."""
    X = load_iris().data.astype(np.float64)
    label = clusters(X, 3, rng(seed))
    reference = KMeans(3, n_init=10, random_state=0).fit(X)
    assert inertia(X, label) == pytest.approx(reference.inertia_, rel=1e-3)
    assert adjusted_rand_score(reference.labels_, label) > 0.97


def test_the_order_of_points_does_not_matter() -> None:
    X, order = rng().standard_normal((40, 3)), rng(1).permutation(40)
    np.testing.assert_array_equal(clusters(X[order], 6, rng(2)), clusters(X, 6, rng(2))[order])


def test_clusters_are_numbered_by_their_least_member() -> None:
    X = np.array([[9.0], [0.0], [5.0], [9.1], [0.1]])
    assert clusters(X, 3, rng()).tolist() == [2, 0, 1, 2, 0]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("distinct", "count"), [(1, 3), (2, 3), (3, 3)])
def test_equal_points_share_a_cluster(distinct: int, count: int) -> None:
    X = np.repeat(np.arange(float(distinct))[:, None], 4, axis=0)
    np.testing.assert_array_equal(clusters(X, count, rng()), np.repeat(np.arange(distinct), 4))
