"""The shortest mixture of vectors whose weights stay near given ones: a box cut out of the probability simplex."""

import numpy as np
from jaxtyping import Float64

from fedcohort.maths.descent import descend

Vector = Float64[np.ndarray, "n"]


def project(v: Vector, low: Vector, high: Vector) -> Vector:
    """The point of {low <= w <= high, sum w = 1} nearest to v, which needs sum low <= 1 <= sum high.

    It is clip(v + mu, low, high), whose sum is piecewise linear in mu and grows: an entry moves from low - v to
    high - v. So mu lies between two of these 2 n places, where it is interpolated.
    """
    places = np.concatenate([low - v, high - v])
    order = np.argsort(places, kind="stable")
    places, turns = places[order], np.repeat([1.0, -1.0], len(v))[order]
    sums = low.sum() + np.concatenate([[0.0], np.cumsum(np.diff(places) * np.cumsum(turns)[:-1])])
    nearest: Vector = np.clip(v + np.interp(1.0, sums, places), low, high)
    return nearest


def min_norm(Q: Float64[np.ndarray, "n n"], start: Vector, epsilon: float) -> Vector:
    """argmin w' Q w over {sum w = 1, max(0, start - epsilon) <= w <= min(1, start + epsilon)}.

    Args:
        Q: the Gram matrix of the vectors.
        start: on the simplex. Projected gradient steps from there (`descent`), O(n^2) a step.
        epsilon: how far each weight may move from `start`.
    """
    low, high = np.maximum(start - epsilon, 0.0), np.minimum(start + epsilon, 1.0)
    steepest = float(np.linalg.eigvalsh(Q)[-1])
    if steepest <= 0:
        return start
    return descend(lambda ahead: project(ahead - Q @ ahead / steepest, low, high), start)
