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
    w, ahead, momentum = start, start, 1.0
    for _ in range(steps):
        new = step(ahead)
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
