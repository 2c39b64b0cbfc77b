"""The projection against its optimality conditions, the mixture of least variance against scipy and by hand."""

import numpy as np
import pytest
from scipy.optimize import brentq, nnls

from fedcohort.maths.simplex import least_variance_weights, project_onto_simplex


def variance(w: np.ndarray, X: np.ndarray) -> float:
    return float(np.var(w @ X))


def test_the_projection_by_hand() -> None:
    np.testing.assert_allclose(project_onto_simplex(np.array([0.5, 0.5])), [0.5, 0.5])
    np.testing.assert_allclose(project_onto_simplex(np.array([2.0, 0.0])), [1, 0])
    np.testing.assert_allclose(project_onto_simplex(np.array([0.6, 0.6, -1.0])), [0.5, 0.5, 0])


def test_the_projection_is_the_nearest_point() -> None:
    """(v - p) . (q - p) <= 0 for every corner q of the simplex."""
    rng = np.random.default_rng(0)
    for _ in range(100):
        v = rng.normal(0, 2, rng.integers(1, 8))
        p = project_onto_simplex(v)
        assert p.min() >= 0
        assert p.sum() == pytest.approx(1)
        assert (np.eye(len(v)) @ (v - p) <= (v - p) @ p + 1e-12).all()


def test_large_entries_do_not_lose_precision() -> None:
    """1e20 - 1 is 1e20 to floats."""
    np.testing.assert_array_equal(project_onto_simplex(np.array([1e20, 0.0])), [1, 0])
    np.testing.assert_array_equal(project_onto_simplex(np.array([1e100, 1e100, 3.0])), [0.5, 0.5, 0])


def test_the_projection_agrees_with_scipy() -> None:
    """Its threshold t solves sum max(v - t, 0) = 1, by scipy's root finder."""
    rng = np.random.default_rng(7)
    for _ in range(300):
        v = rng.normal(0, rng.choice([0.1, 1.0, 100.0]), rng.integers(1, 30))
        t = brentq(lambda t, v=v: np.maximum(v - t, 0).sum() - 1, v.min() - 1, v.max(), xtol=1e-13)
        np.testing.assert_allclose(project_onto_simplex(v), np.maximum(v - t, 0), atol=1e-10)


def test_opposite_clients_share_the_weight_and_a_skewed_one_gets_none() -> None:
    """Half of each of the first two gives 20 in all four groups.

    Equal weights give (90, 40, 40, 40) / 3, whose variance is (50/3)^2 * 3/16 = 52.083333.
    """
    X = np.array([[30.0, 10, 10, 30], [10, 30, 30, 10], [50, 0, 0, 0]])
    w = least_variance_weights(X)
    np.testing.assert_allclose(w, [0.5, 0.5, 0], atol=1e-6)
    assert variance(w, X) == pytest.approx(0, abs=1e-6)
    assert variance(np.full(3, 1 / 3), X) == pytest.approx(52.083333, abs=1e-6)


def test_raw_counts_give_large_clients_little_weight() -> None:
    """Two opposite clients, one of ten times the samples: its weight is a tenth of the other's."""
    w = least_variance_weights(np.array([[4.0, 0, 0, 4], [0, 40, 40, 0]]))
    np.testing.assert_allclose(w, [10 / 11, 1 / 11], atol=1e-6)


def test_balanced_clients_get_equal_weights() -> None:
    np.testing.assert_array_equal(least_variance_weights(np.full((4, 6), 5.0)), np.full(4, 0.25))


def test_a_single_client_gets_all_the_weight() -> None:
    np.testing.assert_array_equal(least_variance_weights(np.array([[3.0, 1.0]])), [1.0])


@pytest.mark.parametrize("seed", range(6))
def test_the_variance_agrees_with_scipy(seed: int) -> None:
    """min |B w|^2 with sum w = 1 is a least-squares problem with a heavy row of ones, up to the scale of w."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 60, (rng.integers(2, 40), rng.integers(2, 12))).astype(float)
    centred = X - X.mean(1, keepdims=True)
    heavy = 1e4
    reference = nnls(np.vstack([centred.T, np.full(len(X), heavy)]), np.array([0.0] * X.shape[1] + [heavy]))[0]
    reference /= reference.sum()
    assert variance(least_variance_weights(X), X) <= variance(reference, X) + 1e-6 * variance(
        np.full(len(X), 1 / len(X)), X
    )
