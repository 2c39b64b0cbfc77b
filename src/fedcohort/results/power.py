"""How many seeds show a difference, and which difference these seeds show: the power of the paired t-test (Cohen 1988).

For planning, the spread of a pilot is replaced by the upper 80 % limit of the true one (Browne 1995):
sd sqrt((n - 1) / chi2(.2, n - 1)).
"""

import math
from bisect import bisect_left

POWER = 0.8
CONFIDENCE = 0.8  # of the upper limit of a spread
LIMIT = 100_000  # seeds beyond which their number is of no use


def count_seeds(spread: float, worth: float, alpha: float = 0.05, power: float = POWER) -> int | None:
    """Return the least number of paired seeds, two or more, that show a difference of `worth`; None if not known.

    Args:
        spread: standard deviation of the paired differences, in the unit of `worth`.
        worth: true difference, above 0.
        alpha: level of the two-sided test.
        power: probability that the test shows it.
    """
    if not math.isfinite(spread):
        return None
    if spread <= 0:
        return 2

    def shows(n: int) -> bool:
        return _power(worth / spread, n, alpha) >= power

    enough = 2
    while enough < LIMIT and not shows(enough):  # doubled: far beyond, the power is not computed exactly
        enough = min(2 * enough, LIMIT)
    return bisect_left(range(enough), True, lo=max(2, enough // 2), key=shows)


def _power(effect: float, n: int, alpha: float) -> float:
    from scipy.stats import chi2, t
    from statsmodels.stats.power import TTestPower

    exact = float(TTestPower().power(effect, n, alpha, alternative="two-sided"))
    if math.isfinite(exact):
        return exact
    # scipy's noncentral t is NaN for some large noncentralities, in which only the spread's estimate is uncertain
    ratio = effect * math.sqrt(n) / float(t.ppf(1 - alpha / 2, n - 1))
    return float(chi2.cdf((n - 1) * ratio**2, n - 1))


def least_difference(spread: float, n: int, alpha: float = 0.05, power: float = POWER) -> float:
    """Return the true difference that n paired seeds show with this power; NaN where there is no test."""
    from statsmodels.stats.power import TTestPower

    if n < 2 or not math.isfinite(spread):
        return math.nan
    solved = TTestPower().solve_power(None, nobs=n, alpha=alpha, power=power, alternative="two-sided")
    return float(solved) * spread


def planned_spread(spread: float, n: int, confidence: float = CONFIDENCE) -> float:
    """Return the upper limit of the true standard deviation, of one that n seeds have."""
    from scipy.stats import chi2

    return spread * math.sqrt((n - 1) / float(chi2.ppf(1 - confidence, n - 1)))
