"""The power of the paired t-test (Cohen 1988): seeds that detect a difference, and the difference that seeds detect."""

import math
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from fedcohort.results.difference import Difference
from fedcohort.results.verdict import Rules

POWER = 0.8
MAX_SEEDS = 100_000  # seeds: larger numbers are of no practical use


@dataclass(frozen=True)
class Power:
    """The power of the tests of a setting, for the median standard deviation of its methods' differences.

    Attributes:
        seeds_needed: number of seeds that detect a difference of `rules.worth`; None if no deviation is known.
        n: median number of seeds.
        detectable: difference that these seeds detect, in the metric's own unit; NaN if not known.
    """

    seeds_needed: int | None
    n: int
    detectable: float


def measure_power(differences: Iterable[Difference], rules: Rules) -> Power:
    """Return the power of the tests of several methods; a difference without a test does not count."""
    tested = [difference for difference in differences if not difference.reason]
    spread = median(difference.std for difference in tested) if tested else math.nan
    n = int(median(difference.n for difference in tested)) if tested else 0
    needed, detectable = count_seeds(spread, rules.worth, rules.alpha), least_difference(spread, n, rules.alpha)
    return Power(needed, n, detectable)


def count_seeds(spread: float, worth: float, alpha: float = 0.05) -> int | None:
    """Return the least number of paired seeds, two or more, that detect a difference of `worth`; None if not known.

    Args:
        spread: standard deviation of the paired differences, in the unit of `worth`.
        worth: true difference; 0 if no size matters, so that no number is known.
        alpha: level of the two-sided test.
    """
    if not math.isfinite(spread) or not worth:
        return None
    if spread <= 0:
        return 2

    def detects(n: int) -> bool:
        return _power(worth / spread, n, alpha) >= POWER

    enough = 2
    while enough < MAX_SEEDS and not detects(enough):  # doubled: far above, the power is not computed exactly
        enough = min(2 * enough, MAX_SEEDS)
    return bisect_left(range(enough), True, lo=max(2, enough // 2), key=detects)


def _power(effect: float, n: int, alpha: float) -> float:
    from scipy.stats import chi2, t
    from statsmodels.stats.power import TTestPower

    exact = float(TTestPower().power(effect, n, alpha, alternative="two-sided"))
    if math.isfinite(exact):
        return exact
    # scipy's noncentral t is NaN for some large noncentralities, where only the estimate of the spread is uncertain
    ratio = effect * math.sqrt(n) / float(t.ppf(1 - alpha / 2, n - 1))
    return float(chi2.cdf((n - 1) * ratio**2, n - 1))


def least_difference(spread: float, n: int, alpha: float = 0.05) -> float:
    """Return the true difference that n paired seeds detect with this power; NaN without a test."""
    from statsmodels.stats.power import TTestPower

    if n < 2 or not math.isfinite(spread):
        return math.nan
    solved = TTestPower().solve_power(None, nobs=n, alpha=alpha, power=POWER, alternative="two-sided")
    return float(solved) * spread
