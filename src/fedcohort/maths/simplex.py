"""The projection onto the probability simplex, and the mixture of vectors with the smallest variance."""

import numpy as np
from jaxtyping import Float64

from fedcohort.maths.descent import descend

Vector = Float64[np.ndarray, "n"]


def project_onto_simplex(v: Vector) -> Vector:
    """Return the point of {w >= 0, sum w = 1} nearest to v (Held, Wolfe and Crowder 1974)."""
    v = v - v.max()  # the projection is the same, but rounding of large entries would lose the 1
    u = np.sort(v)[::-1]
    excess = np.cumsum(u) - 1
    last = np.flatnonzero(u - excess / np.arange(1, len(v) + 1) > 0)[-1]
    nearest: Vector = np.maximum(v - excess[last] / (last + 1), 0.0)
    return nearest


def least_variance_weights(X: Float64[np.ndarray, "n d"], ridge: float = 1e-8) -> Vector:
    """Return argmin over the simplex of Var(sum_k w_k X_k), the population variance over the d entries.

    A ridge of `ridge` times the trace of the quadratic form makes the minimum unique. It is found by projected gradient
    steps from equal weights (`descent`), each in O(n d).
    """
    M = (X - X.mean(1, keepdims=True)) / np.sqrt(X.shape[1])
    w = np.full(len(X), 1 / len(X))
    size = float((M**2).sum())
    if size <= 0:
        return w
    M = M / np.sqrt(size)  # now the trace is 1
    rate = 1 / (float(np.linalg.norm(M, 2)) ** 2 + ridge)
    return descend(lambda ahead: project_onto_simplex(ahead - rate * (M @ (M.T @ ahead) + ridge * ahead)), w)
