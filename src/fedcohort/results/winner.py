"""The winner of a setting, without the bias of choosing the best of many methods.

    naive          mean difference of the method with the largest one, which is biased upward.
    cross-fitted   each seed in turn is left out, the method is chosen on the others, and e(s) is its difference on the
                   seed left out. The value is the mean of e, with the interval of t over e for five seeds or more.

The cross-fitted value says what choosing by such a table brings, not what the named method does (Efron 2011, JASA;
Andrews, Kitagawa and McCloskey 2024, QJE).
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from fedcohort.results.difference import t_test

LEAST = 5  # seeds


@dataclass(frozen=True)
class Winner:
    """The best of several methods.

    Attributes:
        index: its row.
        naive: its mean difference.
        cross_fitted: what choosing brings on a seed that was left out; NaN for fewer than five seeds.
        low: of its 95 % interval; NaN likewise.
        high: of its 95 % interval.
        picked: share of the folds in which the named method was chosen.
    """

    index: int
    naive: float
    cross_fitted: float
    low: float
    high: float
    picked: float


def cross_fit(differences: Float64[np.ndarray, "methods seeds"]) -> Winner:
    """Return the winner; differences: finite, to the baseline, over common seeds."""
    x = np.asarray(differences, dtype=float)
    n = x.shape[1]
    index = int(x.mean(axis=1).argmax())
    naive, nan = float(x[index].mean()), math.nan
    if n < LEAST:
        return Winner(index, naive, nan, nan, nan, nan)
    left_out = (x.sum(axis=1, keepdims=True) - x) / (n - 1)  # means over the other seeds
    chosen = np.round(left_out, 12).argmax(axis=0)
    outside = x[chosen, np.arange(n)]
    half = float(t_test(outside)[0]) if np.ptp(outside) else 0.0
    mean = float(outside.mean())
    return Winner(index, naive, mean, mean - half, mean + half, float((chosen == index).mean()))
