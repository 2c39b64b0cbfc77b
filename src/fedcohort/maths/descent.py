"""Projected gradient descent with Nesterov's momentum and restarts (O'Donoghue and Candes 2015)."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float64

Vector = Float64[np.ndarray, "n"]


def minimise_by_descent(
    gradient_step: Callable[[Vector], Vector], start_point: Vector, max_steps: int = 20_000, tolerance: float = 1e-12
) -> Vector:
    """Return the fixed point of `gradient_step`, at which it changes no entry by more than `tolerance`.

        t <- (1 + sqrt(1 + 4 t^2)) / 2,   ahead = w + (t_before - 1) / t (w - w_before)

    The momentum restarts when it increases the objective.

    Args:
        gradient_step: a gradient step with its projection.
        start_point: the first point.
        max_steps: largest number of steps.
        tolerance: largest change of an entry at the end.
    """
    point, extrapolated_point, momentum = start_point, start_point, 1.0
    for _ in range(max_steps):
        next_point = gradient_step(extrapolated_point)
        has_converged = np.abs(next_point - point).max() <= tolerance
        objective_rises = float((extrapolated_point - next_point) @ (next_point - point)) > 0
        if has_converged and momentum == 1.0:
            return next_point
        if objective_rises or has_converged:
            extrapolated_point, momentum = next_point, 1.0
        else:
            next_momentum = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
            extrapolated_point = next_point + (momentum - 1) / next_momentum * (next_point - point)
            momentum = float(next_momentum)
        point = next_point
    return point
