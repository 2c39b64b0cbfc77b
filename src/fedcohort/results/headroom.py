"""The headroom of a setting, the oracle's mean difference to the baseline; and the best of several methods.

A method closes a share of the headroom, its own mean difference divided by that of the oracle.

    rho lies in the interval where (A - rho B)^2 <= t^2 var(a - rho b) / n  (Fieller 1954)

a, b: differences of the method and of the oracle to the baseline, by seed; A, B: their means.

The best of several methods is estimated without the bias of choosing it.

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

from fedcohort.results.difference import CONFIDENCE_LEVEL, Difference, summarise_differences

MIN_CROSS_FIT_SEEDS = 5  # seeds


@dataclass(frozen=True)
class HeadroomShare:
    """The share of the headroom, the oracle's gain over the baseline, that a method closes.

    It is above 1 if the method is better than the oracle.

    Attributes:
        share: the share, mean difference of the method divided by that of the oracle.
        low: lower end of its 95 % interval.
        high: upper end of its 95 % interval.
    """

    share: float
    low: float
    high: float


def estimate_headroom_share(
    method_differences: Float64[np.ndarray, "seeds"],
    oracle_differences: Float64[np.ndarray, "seeds"],
    min_headroom: float = 0.0,
) -> HeadroomShare | None:
    """Return the share of the headroom that a method closes; None without a clear headroom.

    A headroom is clear if its 95 % interval excludes 0 and its mean is above `min_headroom`. The result is also
    None for fewer than two seeds, and for a value that is not finite.

    Args:
        method_differences: differences of the method to the baseline, on the seeds that method, oracle and baseline
            share.
        oracle_differences: differences of the oracle to the baseline, on the same seeds.
        min_headroom: minimum headroom, in the metric's unit.
    """
    from scipy.stats import t

    a, b = np.asarray(method_differences, dtype=float), np.asarray(oracle_differences, dtype=float)
    n = len(a)
    if n < 2 or not (np.isfinite(a).all() and np.isfinite(b).all()) or b.mean() <= min_headroom:
        return None
    t_factor = float(t.ppf((1 + CONFIDENCE_LEVEL) / 2, n - 1)) ** 2 / n
    # the ends of the interval are the roots of quadratic rho^2 - 2 linear rho + constant
    quadratic_coefficient = b.mean() ** 2 - t_factor * b.var(ddof=1)
    linear_coefficient = a.mean() * b.mean() - t_factor * np.cov(a, b)[0, 1]
    constant_term = a.mean() ** 2 - t_factor * a.var(ddof=1)
    if quadratic_coefficient <= 0:  # the headroom's own interval reaches 0
        return None
    discriminant_root = math.sqrt(max(0.0, linear_coefficient**2 - quadratic_coefficient * constant_term))
    return HeadroomShare(
        float(a.mean() / b.mean()),
        float(linear_coefficient - discriminant_root) / quadratic_coefficient,
        float(linear_coefficient + discriminant_root) / quadratic_coefficient,
    )


@dataclass(frozen=True)
class BestMethod:
    """The best of several methods, with a cross-fitted estimate of its difference to the baseline.

    In each fold one seed is left out, and the method that is best on the other seeds is chosen.

    Attributes:
        best_row: row of the method that is best on all seeds.
        cross_fitted_difference: difference to the baseline on each seed, of the method that is best on the other
            seeds; None for fewer than five seeds.
        fold_share: share of the folds that chose the method `best_row`; NaN below five seeds.
    """

    best_row: int
    cross_fitted_difference: Difference | None
    fold_share: float


def cross_fit_best_method(differences: Float64[np.ndarray, "methods seeds"]) -> BestMethod:
    """Return the method with the largest mean difference to the baseline, and this difference cross-fitted.

    `differences` are finite differences to the baseline, larger is better, over common seeds.
    """
    x = np.asarray(differences, dtype=float)
    n, best_method_row = x.shape[1], int(x.mean(axis=1).argmax())
    if n < MIN_CROSS_FIT_SEEDS:
        return BestMethod(best_method_row, None, math.nan)
    means_without_seed = (x.sum(axis=1, keepdims=True) - x) / (n - 1)  # over the other seeds
    best_method_rows = np.round(means_without_seed, 12).argmax(axis=0)
    left_out_difference = summarise_differences(dict(enumerate(x[best_method_rows, np.arange(n)].tolist())))
    return BestMethod(best_method_row, left_out_difference, float((best_method_rows == best_method_row).mean()))
