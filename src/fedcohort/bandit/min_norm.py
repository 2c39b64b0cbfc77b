"""The shortest mixture of vectors whose weights stay near given ones: a box cut out of the probability simplex."""

import numpy as np
from jaxtyping import Float64

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


def min_norm(
    Q: Float64[np.ndarray, "n n"], start: Vector, epsilon: float, steps: int = 20_000, tolerance: float = 1e-12
) -> Vector:
    """argmin w' Q w over {sum w = 1, max(0, start - epsilon) <= w <= min(1, start + epsilon)}.

    Q: the Gram matrix of the vectors. start: on the simplex. Projected gradient steps from there, with Nesterov's
    momentum, dropped whenever it leads uphill; O(n^2) a step.
    """
    low, high = np.maximum(start - epsilon, 0.0), np.minimum(start + epsilon, 1.0)
    steepest = float(np.linalg.eigvalsh(Q)[-1])
    if steepest <= 0:
        return start
    w, ahead, momentum = start, start, 1.0
    for _ in range(steps):
        new = project(ahead - Q @ ahead / steepest, low, high)
        still = np.abs(new - w).max() <= tolerance
        uphill = float((ahead - new) @ (new - w)) > 0
        if still and momentum == 1.0:
            return new
        if uphill or still:
            ahead, momentum = new, 1.0
        else:
            grown = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
            ahead, momentum = new + (momentum - 1) / grown * (new - w), float(grown)
        w = new
    return w
