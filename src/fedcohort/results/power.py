"""The power of the paired t-test (Cohen 1988): seeds that detect a difference, and the difference that seeds detect."""

import math
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from fedcohort.results.difference import Difference
from fedcohort.results.verdict import Rules

TARGET_POWER = 0.8
MAX_SEEDS = 100_000  # seeds: larger numbers are of no practical use


@dataclass(frozen=True)
class Power:
    """The power of the tests of a setting, for the median standard deviation of its methods' differences.

    Attributes:
        seeds_needed: number of seeds that detect a difference of `rules.worth`; None if no deviation is known, or
            `rules.worth` is 0.
        n: median number of seeds.
        detectable: difference that `n` seeds detect with a power of 0.8, in the metric's own unit; NaN if not known.
    """

    seeds_needed: int | None
    n: int
    detectable: float


def measure_power(differences: Iterable[Difference], rules: Rules) -> Power:
    """Return the power of the tests of several methods.

    Args:
        differences: differences of the methods to the baseline; those without a test are ignored.
        rules: significance level of the tests, and the difference that is worth detecting.
    """
    tested_differences = [difference for difference in differences if not difference.reason]
    median_std = median(difference.std for difference in tested_differences) if tested_differences else math.nan
    n = int(median(difference.n for difference in tested_differences)) if tested_differences else 0
    seeds_needed = count_seeds(median_std, rules.worth, rules.alpha)
    return Power(seeds_needed, n, find_detectable_difference(median_std, n, rules.alpha))


def count_seeds(std: float, effect_size: float, alpha: float = 0.05) -> int | None:
    """Return the least number of paired seeds, two or more, that detect a difference `effect_size`; None if not known.

    A number above 100,000 is returned as 100,000.

    Args:
        std: standard deviation of the paired differences, in the unit of `effect_size`.
        effect_size: true difference; 0 for a metric without a relevant difference, for which the result is None.
        alpha: significance level of the two-sided test.
    """
    if not math.isfinite(std) or not effect_size:
        return None
    if std <= 0:
        return 2

    def is_detected(n: int) -> bool:
        return _compute_power(effect_size / std, n, alpha) >= TARGET_POWER

    n_enough = 2
    while n_enough < MAX_SEEDS and not is_detected(n_enough):  # doubled: far above, the power is not computed exactly
        n_enough = min(2 * n_enough, MAX_SEEDS)
    return bisect_left(range(n_enough), True, lo=max(2, n_enough // 2), key=is_detected)


def _compute_power(effect_ratio: float, n: int, alpha: float) -> float:
    from scipy.stats import chi2, t
    from statsmodels.stats.power import TTestPower

    power_value = float(TTestPower().power(effect_ratio, n, alpha, alternative="two-sided"))
    if math.isfinite(power_value):
        return power_value
    # scipy's noncentral t is NaN for some large noncentralities, where only the estimate of the spread is uncertain
    relative_effect = effect_ratio * math.sqrt(n) / float(t.ppf(1 - alpha / 2, n - 1))
    return float(chi2.cdf((n - 1) * relative_effect**2, n - 1))


def find_detectable_difference(std: float, n: int, alpha: float = 0.05) -> float:
    """Return the true difference that paired seeds detect with a power of 0.8; NaN for fewer than two seeds.

    Args:
        std: standard deviation of the paired differences; the result is NaN if it is not finite.
        n: number of seeds.
        alpha: significance level of the two-sided test.
    """
    from statsmodels.stats.power import TTestPower

    if n < 2 or not math.isfinite(std):
        return math.nan
    effect_ratio = TTestPower().solve_power(None, nobs=n, alpha=alpha, power=TARGET_POWER, alternative="two-sided")
    return float(effect_ratio) * std
