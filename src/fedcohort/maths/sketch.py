"""Sketches: short vectors that replace gradients.

values: the P numbers are clustered by value into d' clusters (1-D k-means); the sketch is the sorted means. It
shows the distribution of the gradient's values, but not their positions.

shared_projection: every coordinate is added to one of d' sums with a normal factor, the same for all clients. The
expected inner products are then those of the gradients (a sparse Gaussian projection).
"""

import math

import numpy as np
from jaxtyping import Float64

from fedcohort.maths.kmeans import cluster_scalars

SKETCH_KINDS = ("values", "shared_projection")


def sketch_length(n_params: int, length_share: float) -> int:
    """Return the length of a gradient sketch: `length_share` of the `n_params` parameters, at least 2."""
    return max(2, math.ceil(length_share * n_params - 1e-9))


def sketch_gradient(
    gradient: Float64[np.ndarray, "p"], length_share: float, sketch_kind: str, rng: np.random.Generator
) -> Float64[np.ndarray, "d"]:
    """Return a sketch (short summary) of a gradient, float64 [d]; all NaN if the gradient is not finite.

    Args:
        gradient: the gradient, float64 [P].
        length_share: length of the sketch as a fraction of P.
        sketch_kind: "values" takes the sorted means of d clusters of the entries; "shared_projection" adds every entry
            to one of d sums, with a random factor.
        rng: random generator, in the same state for all clients.
    """
    n_bins = sketch_length(len(gradient), length_share)
    if not np.isfinite(gradient).all():
        return np.full(n_bins, np.nan)
    if sketch_kind == "values":
        return cluster_scalars(gradient, n_bins, rng)
    bin_of_parameter, random_factors = rng.integers(n_bins, size=len(gradient)), rng.standard_normal(len(gradient))
    return np.bincount(bin_of_parameter, weights=random_factors * gradient, minlength=n_bins).astype(np.float64)
