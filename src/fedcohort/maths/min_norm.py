"""The mixture of vectors with the smallest norm, with weights in the intersection of a box and the simplex."""

import numpy as np
from jaxtyping import Float64

from fedcohort.maths.descent import minimise_by_descent

Vector = Float64[np.ndarray, "n"]


def project_onto_box_simplex(v: Vector, lower_bounds: Vector, upper_bounds: Vector) -> Vector:
    """Return the point of {low <= w <= high, sum w = 1} nearest to v, for sum low <= 1 <= sum high.

    It is clip(v + mu, low, high), whose sum is an increasing piecewise linear function of mu with breakpoints at low -
    v and high - v. mu is interpolated between two of these 2 n breakpoints.
    """
    breakpoints = np.concatenate([lower_bounds - v, upper_bounds - v])
    order = np.argsort(breakpoints, kind="stable")
    breakpoints, slopes = breakpoints[order], np.repeat([1.0, -1.0], len(v))[order]
    increases = np.cumsum(np.diff(breakpoints) * np.cumsum(slopes)[:-1])
    sums_at_breakpoints = lower_bounds.sum() + np.concatenate([[0.0], increases])
    return np.asarray(np.clip(v + np.interp(1.0, sums_at_breakpoints, breakpoints), lower_bounds, upper_bounds))


def min_norm_weights(Q: Float64[np.ndarray, "n n"], start_weights: Vector, epsilon: float) -> Vector:
    """Return argmin w' Q w over {sum w = 1, max(0, start - epsilon) <= w <= min(1, start + epsilon)}.

    It is found by projected gradient steps from `start_weights` (`descent`), each in O(n^2).

    Args:
        Q: Gram matrix of the vectors.
        start_weights: weights on the simplex.
        epsilon: largest change of each weight.
    """
    lower_bounds, upper_bounds = np.maximum(start_weights - epsilon, 0.0), np.minimum(start_weights + epsilon, 1.0)
    max_eigenvalue = float(np.linalg.eigvalsh(Q)[-1])
    if max_eigenvalue <= 0:
        return start_weights
    return minimise_by_descent(
        lambda ahead: project_onto_box_simplex(ahead - Q @ ahead / max_eigenvalue, lower_bounds, upper_bounds),
        start_weights,
    )
