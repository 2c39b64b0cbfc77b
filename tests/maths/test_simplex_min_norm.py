"""The projection onto a box in the simplex and the shortest mixture, against scipy and their optimality conditions."""

import numpy as np
import pytest
from scipy.optimize import brentq, minimize

from case_loop import for_all
from fedcohort.maths.simplex import min_norm_weights, project_onto_box_simplex

Row = np.ndarray


def case(seed: int) -> tuple[Row, Row, float]:
    """(unit vectors [m, d], start, epsilon): few or many vectors, some nearly equal, some opposed."""
    rng = np.random.default_rng(seed)
    m, d = rng.integers(1, 25), rng.integers(1, 30)
    G = rng.normal(size=(m, d)) + rng.choice([0.0, 0.3, 2.0])
    if seed % 3 == 0:
        G[rng.integers(m)] = rng.choice([-1, 1]) * G[0]
    return G / np.linalg.norm(G, axis=1, keepdims=True), rng.dirichlet(np.ones(m)), float(rng.choice([0.02, 0.1, 1]))


def box(start: Row, epsilon: float) -> tuple[Row, Row]:
    return np.maximum(start - epsilon, 0), np.minimum(start + epsilon, 1)


def test_the_projection_by_hand() -> None:
    # mu = -.1 for all; then the first is held at .6, and the others share .4
    low, high = np.zeros(3), np.array([0.6, 1.0, 1.0])
    np.testing.assert_allclose(project_onto_box_simplex(np.array([0.5, 0.5, 0.3]), low, high), [0.4, 0.4, 0.2])
    np.testing.assert_allclose(project_onto_box_simplex(np.array([2.0, 0.5, 0.3]), low, high), [0.6, 0.3, 0.1])
    np.testing.assert_allclose(
        project_onto_box_simplex(np.array([0.0, 9.0]), np.array([0.2, 0.0]), np.ones(2)), [0.2, 0.8]
    )


@for_all("seed", range(20))
def test_the_projection_has_the_right_sum(seed: int) -> None:
    rng = np.random.default_rng(seed)
    start = rng.dirichlet(np.ones(rng.integers(2, 12)))
    low, high = box(start, rng.choice([0.01, 0.2, 1]))
    v = rng.normal(0, rng.choice([0.1, 5]), len(start))
    span = np.abs(v).max() + 2
    mu = brentq(lambda mu: np.clip(v + mu, low, high).sum() - 1, -span, span, xtol=1e-14)
    np.testing.assert_allclose(project_onto_box_simplex(v, low, high), np.clip(v + mu, low, high), atol=1e-10)


def test_a_box_of_a_single_point_gives_that_point() -> None:
    start = np.array([0.25, 0.25, 0.5])
    np.testing.assert_array_equal(project_onto_box_simplex(np.array([3.0, -1, 0]), start, start), start)
    np.testing.assert_array_equal(min_norm_weights(np.eye(3), start, 0.0), start)


@for_all("seed", range(30))
def test_the_shortest_mixture_agrees_with_scipy(seed: int) -> None:
    G, start, epsilon = case(seed)
    Q, (low, high) = G @ G.T, box(start, epsilon)
    w = min_norm_weights(Q, start, epsilon)
    reference = minimize(
        lambda x: x @ Q @ x / 2,
        start,
        jac=lambda x: Q @ x,
        bounds=list(zip(low, high, strict=True)),
        constraints={"type": "eq", "fun": lambda x: x.sum() - 1, "jac": np.ones_like},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    ).x
    assert w @ Q @ w <= reference @ Q @ reference + 1e-9
    assert w.sum() == pytest.approx(1, abs=1e-12)
    assert (w >= low - 1e-15).all()
    assert (w <= high + 1e-15).all()


@for_all("seed", range(30))
def test_no_feasible_direction_decreases_the_norm(seed: int) -> None:
    """grad . (w - q) <= 0 for the q of the box that the gradient likes best: least entries filled first."""
    G, start, epsilon = case(100 + seed)
    Q, (low, high) = G @ G.T, box(start, epsilon)
    w = min_norm_weights(Q, start, epsilon)
    best, remaining = low.copy(), 1 - low.sum()
    for i in np.argsort(Q @ w):
        best[i] += min(high[i] - low[i], remaining)
        remaining -= best[i] - low[i]
    assert (Q @ w) @ (w - best) <= 1e-9


def test_a_single_vector_and_an_empty_set() -> None:
    np.testing.assert_array_equal(min_norm_weights(np.array([[4.0]]), np.ones(1), 0.1), [1.0])
    np.testing.assert_array_equal(min_norm_weights(np.zeros((2, 2)), np.array([0.3, 0.7]), 1.0), [0.3, 0.7])


def test_equal_vectors_keep_the_initial_weights() -> None:
    np.testing.assert_allclose(
        min_norm_weights(np.ones((3, 3)), np.array([0.2, 0.3, 0.5]), 1.0), [0.2, 0.3, 0.5], atol=1e-12
    )
