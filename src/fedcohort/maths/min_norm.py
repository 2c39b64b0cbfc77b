"""The mixture of vectors with the smallest norm, with weights in the intersection of a box and the simplex."""

import numpy as np
from jaxtyping import Float64

from fedcohort.maths.descent import descend

Vector = Float64[np.ndarray, "n"]


def project_onto_box_simplex(v: Vector, low: Vector, high: Vector) -> Vector:
    """Return the point of {low <= w <= high, sum w = 1} nearest to v, for sum low <= 1 <= sum high.

    It is clip(v + mu, low, high), whose sum is an increasing piecewise linear function of mu with breakpoints at low -
    v and high - v. mu is interpolated between two of these 2 n breakpoints.
    """
    breakpoints = np.concatenate([low - v, high - v])
    order = np.argsort(breakpoints, kind="stable")
    breakpoints, slopes = breakpoints[order], np.repeat([1.0, -1.0], len(v))[order]
    sums_at_breakpoints = low.sum() + np.concatenate([[0.0], np.cumsum(np.diff(breakpoints) * np.cumsum(slopes)[:-1])])
    nearest: Vector = np.clip(v + np.interp(1.0, sums_at_breakpoints, breakpoints), low, high)
    return nearest


def min_norm(Q: Float64[np.ndarray, "n n"], start: Vector, epsilon: float) -> Vector:
    """Return argmin w' Q w over {sum w = 1, max(0, start - epsilon) <= w <= min(1, start + epsilon)}.

    It is found by projected gradient steps from `start` (`descent`), each in O(n^2).

    Args:
        Q: Gram matrix of the vectors.
        start: weights on the simplex.
        epsilon: largest change of each weight.
    """
    low, high = np.maximum(start - epsilon, 0.0), np.minimum(start + epsilon, 1.0)
    max_eigenvalue = float(np.linalg.eigvalsh(Q)[-1])
    if max_eigenvalue <= 0:
        return start
    return descend(lambda ahead: project_onto_box_simplex(ahead - Q @ ahead / max_eigenvalue, low, high), start)
