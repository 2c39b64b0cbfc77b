"""Weights on the probability simplex: projections, and the mixtures of vectors with the smallest norm or variance.

The mixtures are found by projected gradient descent with Nesterov's momentum and restarts (O'Donoghue and Candes 2015).
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float64

Vector = Float64[np.ndarray, "n"]


def minimise_by_descent(
    gradient_step: Callable[[Vector], Vector], start_point: Vector, max_steps: int = 20_000, tolerance: float = 1e-12
) -> Vector:
    """Return the fixed point of `gradient_step`, or the last point, [n], by steps with Nesterov's momentum.

        t <- (1 + sqrt(1 + 4 t^2)) / 2,   extrapolated point = w + (t_before - 1) / t (w - w_before)

    The momentum restarts when it increases the objective.

    Args:
        gradient_step: function that returns a point [n] after a gradient step and its projection.
        start_point: the first point, [n].
        max_steps: largest number of steps.
        tolerance: largest change of an entry in the last step.
    """
    current_point, extrapolated_point, momentum_weight = start_point, start_point, 1.0
    for _ in range(max_steps):
        next_point = gradient_step(extrapolated_point)
        has_converged = np.abs(next_point - current_point).max() <= tolerance
        objective_rises = float((extrapolated_point - next_point) @ (next_point - current_point)) > 0
        if has_converged and momentum_weight == 1.0:
            return next_point
        if objective_rises or has_converged:
            extrapolated_point, momentum_weight = next_point, 1.0
        else:
            next_momentum_weight = (1 + np.sqrt(1 + 4 * momentum_weight**2)) / 2
            extrapolated_point = next_point + (momentum_weight - 1) / next_momentum_weight * (
                next_point - current_point
            )
            momentum_weight = float(next_momentum_weight)
        current_point = next_point
    return current_point


def project_onto_simplex(v: Vector) -> Vector:
    """Return the point of {w >= 0, sum w = 1} nearest to v [n], [n] (Held, Wolfe and Crowder 1974)."""
    v = v - v.max()  # the projection is the same, but rounding of large entries would lose the 1
    descending_values = np.sort(v)[::-1]
    cumulative_excess = np.cumsum(descending_values) - 1
    last_positive_position = np.flatnonzero(descending_values - cumulative_excess / np.arange(1, len(v) + 1) > 0)[-1]
    return np.asarray(np.maximum(v - cumulative_excess[last_positive_position] / (last_positive_position + 1), 0.0))


def least_variance_weights(X: Float64[np.ndarray, "n d"], relative_ridge: float = 1e-8) -> Vector:
    """Return the weights on the simplex with the least variance of sum_k w_k X_k over the d columns of X [n, d], [n].

    A ridge of `relative_ridge` times the trace of the quadratic form makes the minimum unique. Projected gradient steps
    from equal weights find it, each in O(n d).
    """
    centred_rows = (X - X.mean(1, keepdims=True)) / np.sqrt(X.shape[1])
    equal_weights = np.full(len(X), 1 / len(X))
    gram_trace = float((centred_rows**2).sum())
    if gram_trace <= 0:
        return equal_weights
    centred_rows = centred_rows / np.sqrt(gram_trace)  # now the trace is 1
    step_size = 1 / (float(np.linalg.norm(centred_rows, 2)) ** 2 + relative_ridge)

    def gradient_step(point: Vector) -> Vector:
        gradient = centred_rows @ (centred_rows.T @ point) + relative_ridge * point
        return project_onto_simplex(point - step_size * gradient)

    return minimise_by_descent(gradient_step, equal_weights)


def project_onto_box_simplex(v: Vector, lower_bounds: Vector, upper_bounds: Vector) -> Vector:
    """Return the point of {lower_bounds <= w <= upper_bounds, sum w = 1} nearest to v, all [n].

    The point is clip(v + mu, lower_bounds, upper_bounds), whose sum increases piecewise linearly with mu; mu is
    interpolated between two of the 2 n breakpoints. The lower bounds sum to at most 1, the upper ones to at least 1.
    """
    breakpoints = np.concatenate([lower_bounds - v, upper_bounds - v])
    breakpoint_order = np.argsort(breakpoints, kind="stable")
    breakpoints, slopes_of_sum = breakpoints[breakpoint_order], np.repeat([1.0, -1.0], len(v))[breakpoint_order]
    sum_increments = np.cumsum(np.diff(breakpoints) * np.cumsum(slopes_of_sum)[:-1])
    sums_at_breakpoints = lower_bounds.sum() + np.concatenate([[0.0], sum_increments])
    return np.asarray(np.clip(v + np.interp(1.0, sums_at_breakpoints, breakpoints), lower_bounds, upper_bounds))


def min_norm_weights(Q: Float64[np.ndarray, "n n"], start_weights: Vector, epsilon: float) -> Vector:
    """Return the weights w that minimise w' Q w near `start_weights`, each in [0, 1], with the sum 1, [n].

    Projected gradient steps from `start_weights` find them, each in O(n^2).

    Args:
        Q: Gram matrix of the vectors, [n, n].
        start_weights: weights on the simplex, [n].
        epsilon: largest change of each weight.
    """
    lower_bounds, upper_bounds = np.maximum(start_weights - epsilon, 0.0), np.minimum(start_weights + epsilon, 1.0)
    max_eigenvalue = float(np.linalg.eigvalsh(Q)[-1])
    if max_eigenvalue <= 0:
        return start_weights

    def gradient_step(point: Vector) -> Vector:
        return project_onto_box_simplex(point - Q @ point / max_eigenvalue, lower_bounds, upper_bounds)

    return minimise_by_descent(gradient_step, start_weights)
