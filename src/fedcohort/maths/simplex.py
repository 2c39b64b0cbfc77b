"""The projection onto the probability simplex, and the mixture of vectors with the smallest variance."""

import numpy as np
from jaxtyping import Float64

from fedcohort.maths.descent import minimise_by_descent

Vector = Float64[np.ndarray, "n"]


def project_onto_simplex(v: Vector) -> Vector:
    """Return the point of {w >= 0, sum w = 1} nearest to v (Held, Wolfe and Crowder 1974)."""
    v = v - v.max()  # the projection is the same, but rounding of large entries would lose the 1
    descending = np.sort(v)[::-1]
    sum_excess = np.cumsum(descending) - 1
    last_positive = np.flatnonzero(descending - sum_excess / np.arange(1, len(v) + 1) > 0)[-1]
    return np.asarray(np.maximum(v - sum_excess[last_positive] / (last_positive + 1), 0.0))


def least_variance_weights(X: Float64[np.ndarray, "n d"], relative_ridge: float = 1e-8) -> Vector:
    """Return argmin over the simplex of Var(sum_k w_k X_k), the population variance over the d entries.

    A ridge of `relative_ridge` times the trace of the quadratic form makes the minimum unique. It is found by projected
    gradient steps from equal weights (`descent`), each in O(n d).
    """
    centred = (X - X.mean(1, keepdims=True)) / np.sqrt(X.shape[1])
    equal_weights = np.full(len(X), 1 / len(X))
    trace = float((centred**2).sum())
    if trace <= 0:
        return equal_weights
    centred = centred / np.sqrt(trace)  # now the trace is 1
    step_size = 1 / (float(np.linalg.norm(centred, 2)) ** 2 + relative_ridge)

    def step(ahead: Vector) -> Vector:
        return project_onto_simplex(ahead - step_size * (centred @ (centred.T @ ahead) + relative_ridge * ahead))

    return minimise_by_descent(step, equal_weights)
