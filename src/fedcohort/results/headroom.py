"""The share of the headroom that a method closes: its mean difference divided by the oracle's, with an interval.

    rho lies in the interval where (A - rho B)^2 <= t^2 var(a - rho b) / n  (Fieller 1954)

a, b: differences of the method and of the oracle to the baseline, by seed; A, B: their means.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from fedcohort.results.difference import LEVEL


@dataclass(frozen=True)
class ShareClosed:
    """The share of the headroom that a method closes, above 1 if it is better than the oracle."""

    share: float
    low: float
    high: float


def share_closed(
    method: Float64[np.ndarray, "seeds"], oracle: Float64[np.ndarray, "seeds"], least: float = 0.0
) -> ShareClosed | None:
    """Return the share of the headroom; None if the headroom's interval contains 0 or its mean is not above `least`.

    Args:
        method: differences of the method to the baseline, over the seeds that all three have.
        oracle: differences of the oracle to the baseline, over the same seeds.
        least: minimum headroom.
    """
    from scipy.stats import t

    a, b = np.asarray(method, dtype=float), np.asarray(oracle, dtype=float)
    n = len(a)
    if n < 2 or not (np.isfinite(a).all() and np.isfinite(b).all()) or b.mean() <= least:
        return None
    factor = float(t.ppf((1 + LEVEL) / 2, n - 1)) ** 2 / n
    # the ends of the interval are the roots of square rho^2 - 2 middle rho + constant
    square = b.mean() ** 2 - factor * b.var(ddof=1)
    middle = a.mean() * b.mean() - factor * np.cov(a, b)[0, 1]
    constant = a.mean() ** 2 - factor * a.var(ddof=1)
    if square <= 0:  # the headroom's own interval reaches 0
        return None
    root = math.sqrt(max(0.0, middle**2 - square * constant))
    return ShareClosed(float(a.mean() / b.mean()), float(middle - root) / square, float(middle + root) / square)
