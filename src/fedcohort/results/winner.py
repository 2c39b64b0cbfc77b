"""The best method of a setting, without the bias of choosing the best of many methods.

    naive          mean difference of the method with the largest mean difference, which is biased upward.
    cross-fitted   each seed in turn is left out, the best method is chosen on the others, and e(s) is its difference on
                   the seed left out. The value is the mean of e, with a t interval over e for five seeds or more.

The cross-fitted value is the expected gain of choosing by such a table, not that of the named method (Efron 2011, JASA;
Andrews, Kitagawa and McCloskey 2024, QJE).
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from fedcohort.results.difference import Difference, summarise_differences

MIN_SEEDS = 5  # seeds


@dataclass(frozen=True)
class Winner:
    """The best of several methods.

    Attributes:
        index: row of the method.
        naive: mean difference of the method.
        left_out: difference of the chosen method on each seed that was left out; None for fewer than five seeds.
        picked: share of the folds that chose the named method; NaN for fewer than five seeds.
    """

    index: int
    naive: float
    left_out: Difference | None
    picked: float


def cross_fit(differences: Float64[np.ndarray, "methods seeds"]) -> Winner:
    """Return the best method; differences: finite differences to the baseline over common seeds."""
    x = np.asarray(differences, dtype=float)
    n = x.shape[1]
    index = int(x.mean(axis=1).argmax())
    naive = float(x[index].mean())
    if n < MIN_SEEDS:
        return Winner(index, naive, None, math.nan)
    means = (x.sum(axis=1, keepdims=True) - x) / (n - 1)  # over the other seeds
    chosen = np.round(means, 12).argmax(axis=0)
    left_out = summarise_differences(dict(enumerate(x[chosen, np.arange(n)].tolist())))
    return Winner(index, naive, left_out, float((chosen == index).mean()))
