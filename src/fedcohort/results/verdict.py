"""The verdict on a difference, from a significance test, a minimum effect and an equivalence test; and its power.

    better, worse   p < alpha after Holm's correction, |D| >= min_difference, and enough seeds.
    different       p < alpha after Holm's correction, |D| < min_difference.
    equivalent      both one-sided p of TOST < alpha against -margin and +margin, with the margin `equivalence_margin`
                    (Schuirmann 1987; Lakens 2017).
    not settled     none of these.

Holm's correction covers one named family of tests for each claim that a page makes (Holm 1979, Scand. J. Statist. 6).

    C1  "in this setting the method is better": all methods of the setting
    C2  "the method is better in some settings": all settings of the method
    C3  "in k of K settings some method is better": all methods in all settings
    C4  "the method is better over these settings": all methods that are ranked together

Oracles and bounds are in no family. Tuned methods and variants count as methods. TOST, the two one-sided tests, is an
intersection test: its p-value is not corrected for many tests.

The power of the paired t-test (Cohen 1988) gives the seeds that detect a difference, and the difference that the
present seeds detect.
"""

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TypeVar

import numpy as np

from fedcohort.results.difference import Difference
from fedcohort.results.run import Numbers

BETTER, WORSE, EQUIVALENT, NOT_SETTLED = "better", "worse", "equivalent", "not settled"
DIFFERENT = "different, below the minimum effect"
TOO_FEW_SEEDS, DIVERGED, SAME_ON_ALL_SEEDS = "too few seeds", "diverged", "same on all seeds"
FASTER, SLOWER, TARGET_UNREACHED = "faster", "slower", "target not reached"
TARGET_POWER = 0.8
MAX_NEEDED_SEEDS = 100_000  # seeds: larger numbers are of no practical use
Test = TypeVar("Test", bound=Hashable)


@dataclass(frozen=True)
class Rules:
    """Rules for significant and relevant differences, fixed before the runs. Effects have the metric's unit.

    Attributes:
        alpha: significance level of two-sided tests after correction, in (0, 1).
        min_difference: smallest mean difference that is called better or worse, 0 or more.
        equivalence_margin: largest size of a difference between equivalent methods, above 0.
        min_seeds: smallest number of paired seeds for a verdict, 2 or more.
        ratio: smallest speed-up that is called faster, 1 or more.
        ratio_margin: two methods are equally fast if the speed-up is within 1/ratio_margin and ratio_margin, above 1.
        detectable_difference: difference worth detecting, for which the number of seeds is computed, above 0.
    """

    alpha: float = 0.05
    min_difference: float = 0.005
    equivalence_margin: float = 0.01
    min_seeds: int = 3
    ratio: float = 1.05
    ratio_margin: float = 1.1
    detectable_difference: float = 0.01


def tost_p_value(values: Numbers, equivalence_margin: float) -> float:
    """Return the p-value of TOST that the mean of `values` is within `equivalence_margin` of 0; NaN without a test."""
    from statsmodels.stats.weightstats import DescrStatsW

    x = np.asarray(values, dtype=float)
    if len(x) < 2 or not np.isfinite(x).all() or not np.ptp(x):
        return math.nan
    return float(DescrStatsW(x).ttost_mean(-equivalence_margin, equivalence_margin)[0])


def name_verdict(mean_difference: float, p: float, p_equivalent: float, n: int, rules: Rules) -> str:
    """Return the verdict on a mean difference, such as "better".

    Args:
        mean_difference: the mean difference, positive where the method is better.
        p: p-value of the difference after the correction for several tests; NaN without a test.
        p_equivalent: p-value of the two one-sided tests of equivalence.
        n: number of paired seeds.
        rules: significance level, minimum effect and number of seeds.
    """
    if n < rules.min_seeds:
        return TOO_FEW_SEEDS
    if p < rules.alpha:
        return (BETTER if mean_difference > 0 else WORSE) if abs(mean_difference) >= rules.min_difference else DIFFERENT
    return EQUIVALENT if p_equivalent < rules.alpha else NOT_SETTLED


def judge_difference(difference: Difference, p: float, rules: Rules) -> str:
    """Return the verdict on a paired difference, such as "better".

    Args:
        difference: difference to the baseline.
        p: its p-value after the correction for several tests.
        rules: significance level, minimum effect, margin and number of seeds.
    """
    if difference.n_diverged:
        return DIVERGED
    if difference.n >= rules.min_seeds and not math.isfinite(difference.p):
        return SAME_ON_ALL_SEEDS
    p_equivalent = tost_p_value(difference.values, rules.equivalence_margin)
    return name_verdict(difference.mean, p, p_equivalent, difference.n, rules)


def sign_of_verdict(verdict: str) -> int:
    """Return 1 for the `verdict` better or faster, -1 for worse or slower, else 0."""
    return 1 if verdict in (BETTER, FASTER) else -1 if verdict in (WORSE, SLOWER) else 0


def adjust_p_by_holm(p_values: Sequence[float]) -> list[float]:
    """Return the p-values of one family adjusted by Holm's step-down rule; NaN stays NaN and does not count as a test.

    The i-th smallest of m `p_values` is multiplied by m - i + 1. The results do not decrease in i and are at most 1.
    `multipletests` of statsmodels gives the same, but runs Python's garbage collector in each call, which took most of
    a report's time.
    """
    adjusted_p = np.array(p_values, dtype=float)
    test_positions = np.flatnonzero(np.isfinite(adjusted_p))
    sorted_positions = test_positions[np.argsort(adjusted_p[test_positions], kind="stable")]
    holm_factors = np.arange(len(sorted_positions), 0, -1)
    adjusted_p[sorted_positions] = np.minimum(np.maximum.accumulate(adjusted_p[sorted_positions] * holm_factors), 1.0)
    return [float(p) for p in adjusted_p]


def adjust_p_by_family(p_values: Mapping[Test, float], find_family: Callable[[Test], Hashable]) -> dict[Test, float]:
    """Return p-values adjusted by Holm's rule within families of tests, in the order of `p_values`.

    Args:
        p_values: p-value of each test; NaN does not count as a test.
        find_family: returns the family of a test.
    """
    families: defaultdict[Hashable, list[Test]] = defaultdict(list)
    for test in p_values:
        families[find_family(test)].append(test)
    adjusted_p: dict[Test, float] = {}
    for family_tests in families.values():
        adjusted_p |= dict(zip(family_tests, adjust_p_by_holm([p_values[test] for test in family_tests]), strict=True))
    return {test: adjusted_p[test] for test in p_values}


@dataclass(frozen=True)
class TestPower:
    """The power of the tests of a setting, for the median standard deviation of its methods' differences.

    Attributes:
        seeds_needed: number of seeds that detect a difference of `rules.detectable_difference`; None if this is 0, or
            if no deviation is known.
        n: median number of seeds.
        detectable: difference that `n` seeds detect with a power of 0.8, in the metric's own unit; NaN if not known.
    """

    seeds_needed: int | None
    n: int
    detectable: float


def measure_power(differences: Iterable[Difference], rules: Rules) -> TestPower:
    """Return the power of the tests of several methods.

    Args:
        differences: differences of the methods to the baseline; those without a test are ignored.
        rules: significance level of the tests, and the difference that is worth detecting.
    """
    tested_differences = [difference for difference in differences if not difference.reason]
    median_std = median(difference.std for difference in tested_differences) if tested_differences else math.nan
    n = int(median(difference.n for difference in tested_differences)) if tested_differences else 0
    seeds_needed = count_seeds(median_std, rules.detectable_difference, rules.alpha)
    return TestPower(seeds_needed, n, find_detectable_difference(median_std, n, rules.alpha))


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

    sufficient_n = 2
    while sufficient_n < MAX_NEEDED_SEEDS and not is_detected(
        sufficient_n
    ):  # doubled: far above, the power is not computed exactly
        sufficient_n = min(2 * sufficient_n, MAX_NEEDED_SEEDS)
    return bisect_left(range(sufficient_n), True, lo=max(2, sufficient_n // 2), key=is_detected)


def _compute_power(standardised_effect: float, n: int, alpha: float) -> float:
    from scipy.stats import chi2, t
    from statsmodels.stats.power import TTestPower

    test_power = float(TTestPower().power(standardised_effect, n, alpha, alternative="two-sided"))
    if math.isfinite(test_power):
        return test_power
    # scipy's noncentral t is NaN for some large noncentralities, where only the estimate of the spread is uncertain
    effect_over_critical_value = standardised_effect * math.sqrt(n) / float(t.ppf(1 - alpha / 2, n - 1))
    return float(chi2.cdf((n - 1) * effect_over_critical_value**2, n - 1))


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
    return float(TTestPower().solve_power(None, nobs=n, alpha=alpha, power=TARGET_POWER, alternative="two-sided")) * std
