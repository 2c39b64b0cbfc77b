"""Projected gradient descent with Nesterov's momentum and restarts (O'Donoghue and Candes 2015)."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float64

Vector = Float64[np.ndarray, "n"]


def descend(step: Callable[[Vector], Vector], start: Vector, steps: int = 20_000, tolerance: float = 1e-12) -> Vector:
    """Return the fixed point of `step`, at which it changes no entry by more than `tolerance`.

        t <- (1 + sqrt(1 + 4 t^2)) / 2,   ahead = w + (t_before - 1) / t (w - w_before)

    The momentum restarts when it increases the objective.

    Args:
        step: a gradient step with its projection.
        start: the first point.
        steps: largest number of steps.
        tolerance: largest change of an entry at the end.
    """
    w, extrapolated, momentum = start, start, 1.0
    for _ in range(steps):
        next_w = step(extrapolated)
        has_converged = np.abs(next_w - w).max() <= tolerance
        objective_rises = float((extrapolated - next_w) @ (next_w - w)) > 0
        if has_converged and momentum == 1.0:
            return next_w
        if objective_rises or has_converged:
            extrapolated, momentum = next_w, 1.0
        else:
            next_momentum = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
            extrapolated, momentum = next_w + (momentum - 1) / next_momentum * (next_w - w), float(next_momentum)
        w = next_w
    return w
