"""A short vector in the place of a gradient.

values: the P numbers fall into d' groups by size (1-D k-means), and the sketch is the groups' means, ascending. Two
sketches compare how the gradients' values are distributed, not where; unsorted they would compare nothing.
shared_projection: every coordinate goes to one of d' sums with a normal factor, the same for all clients, so that
inner products are kept on average (a sparse Gaussian projection).
"""

import math

import numpy as np
from jaxtyping import Float64

from fedcohort.maths.kmeans import levels

WAYS = ("values", "shared_projection")


def length(n_params: int, rate: float) -> int:
    """d' = max(2, ceil(rate P))."""
    return max(2, math.ceil(rate * n_params - 1e-9))


def sketch(
    gradient: Float64[np.ndarray, "p"], rate: float, way: str, rng: np.random.Generator
) -> Float64[np.ndarray, "d"]:
    """A short vector that stands for a gradient, float64 [length(P, rate)]; NaN where a number is not finite.

    Args:
        gradient: float64 [P].
        rate: numbers kept, as a share of P.
        way: "values" or "shared_projection".
        rng: made afresh from the same key for all clients.
    """
    d = length(len(gradient), rate)
    if not np.isfinite(gradient).all():
        return np.full(d, np.nan)
    if way == "values":
        return levels(gradient, d, rng)
    target, factor = rng.integers(d, size=len(gradient)), rng.standard_normal(len(gradient))
    return np.bincount(target, weights=factor * gradient, minlength=d).astype(np.float64)
