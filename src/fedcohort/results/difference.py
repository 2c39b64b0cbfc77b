"""The paired difference to a baseline, and its interval.

    D +- t(.975, n - 1) sd(d) / sqrt(n), sd with ddof 1;  p of the two-sided paired t-test (Student 1908)

Runs with equal seeds share data, partition and initial model, so the seed is the unit. Among the intervals that we
simulated, only this one covers 94 to 95 % at 3, 5 and 10 seeds (Colas et al. 2018, "How many random seeds?").

A method may collapse on some seeds, which the skew of its residuals over all settings shows.

    G = skew of (d - D) / sd(d), pooled over settings

The t-test is valid for symmetric heavy tails, but not for differences with a long left tail. No test within a setting
detects that: a false positive is a sample without a collapse. With 16 settings and ten seeds, G is below -.35 in 1 % of
normal draws, and in 99 % of log-normal ones (sigma .5).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float64

CONFIDENCE_LEVEL = 0.95
ROUNDING_TOLERANCE = 1e-6  # of the values: a smaller spread is the rounding of curves in single precision
MAX_RESIDUAL_SKEW = -0.35  # of a method that collapses
MIN_SKEW_SETTINGS, MIN_SKEW_SEEDS = 10, 10  # for an estimate of the skew


@dataclass(frozen=True)
class Mean:
    """The mean of n values with its 95 % interval.

    Attributes:
        mean: the mean, in the unit of the values.
        std: standard deviation with ddof 1; NaN for fewer than two values, or if one is not finite.
        n: number of values.
        half_width: half the width of the 95 % interval; NaN without an interval.
    """

    mean: float
    std: float
    n: int
    half_width: float

    @property
    def low(self) -> float:
        return self.mean - self.half_width

    @property
    def high(self) -> float:
        return self.mean + self.half_width


@dataclass(frozen=True)
class Difference(Mean):
    """The mean difference of a method to the baseline, paired by seed; positive if the method is better.

    Attributes:
        p: p-value of the paired t-test; NaN without a test.
        by_seed: the difference of each seed.
        n_diverged: number of paired seeds with a value that is not finite; the mean is NaN if there are any.
        reason: why there is no interval and no test; "" if there is one.
    """

    p: float = math.nan
    by_seed: Mapping[int, float] = field(default_factory=dict)
    n_diverged: int = 0
    reason: str = ""

    @property
    def values(self) -> Float64[np.ndarray, "seeds"]:
        return np.array(list(self.by_seed.values()), dtype=float)

    @property
    def median(self) -> float:
        return float(np.median(self.values)) if self.n else math.nan

    @property
    def worst(self) -> float:
        """Smallest difference to the baseline over seeds; positive is better."""
        return float(self.values.min()) if self.n else math.nan

    @property
    def best(self) -> float:
        return float(self.values.max()) if self.n else math.nan


EMPTY_DIFFERENCE = Difference(math.nan, math.nan, 0, math.nan, reason="no common seeds")


def run_t_test(values: Float64[np.ndarray, "*tests n"]) -> tuple[np.ndarray, np.ndarray]:
    """Return half the width of the 95 % interval of each mean over the last axis, and its p against zero, [*tests].

    The results equal those of `scipy.stats.ttest_1samp`, which takes 2 ms for one test and 1 s to import. `values` are
    finite, two or more in each test.
    """
    from scipy.special import stdtr, stdtrit

    n = values.shape[-1]
    standard_error = values.std(axis=-1, ddof=1) / np.sqrt(n)
    return stdtrit(n - 1, (1 + CONFIDENCE_LEVEL) / 2) * standard_error, 2 * stdtr(
        n - 1, -np.abs(values.mean(axis=-1)) / standard_error
    )


def estimate_mean(values: Sequence[float]) -> Mean:
    """Return the mean of `values` with its 95 % interval; the mean is NaN or infinite if a value is not finite."""
    x = np.asarray(values, dtype=float)
    if len(x) < 2 or not np.isfinite(x).all():
        return Mean(float(x.mean()) if len(x) else math.nan, math.nan, len(x), math.nan)
    if not np.ptp(x):  # a spread of 1e-17 would be rounding
        return Mean(float(x[0]), 0.0, len(x), 0.0)
    return Mean(float(x.mean()), float(x.std(ddof=1)), len(x), float(run_t_test(x)[0]))


def paired_difference(results: Mapping[int, float], baseline_values: Mapping[int, float], sign: int = 1) -> Difference:
    """Return the mean of `results` minus `baseline_values` over common seeds.

    Args:
        results: results of the method by seed.
        baseline_values: results of the baseline by seed.
        sign: -1 if a smaller metric is better, so that positive differences are better.
    """
    common_seeds = sorted(set(results) & set(baseline_values))
    difference_by_seed = {seed: sign * (results[seed] - baseline_values[seed]) for seed in common_seeds}
    largest_value = max(
        (abs(compared_results[seed]) for compared_results in (results, baseline_values) for seed in common_seeds),
        default=0.0,
    )
    return summarise_differences(difference_by_seed, largest_value)


def summarise_differences(difference_by_seed: Mapping[int, float], largest_value: float | None = None) -> Difference:
    """Return the mean of paired differences to a baseline, with its interval and t-test.

    Args:
        difference_by_seed: the differences, by seed or by another unit of observation.
        largest_value: largest absolute value of those that are subtracted; a spread far below it is rounding. None for
            the largest absolute difference.
    """
    x = np.array(list(difference_by_seed.values()), dtype=float)
    n, nan = len(x), math.nan
    n_diverged = int((~np.isfinite(x)).sum())
    mean = float(x.mean()) if n and not n_diverged else nan
    std, reason = float(x.std(ddof=1)) if n > 1 and not n_diverged else nan, ""
    if n_diverged:
        reason = f"diverged on {n_diverged} of {n} seed{'s' * (n != 1)}"
    elif n < 2:
        reason = "one common seed" if n else "no common seeds"
    elif std <= ROUNDING_TOLERANCE * (np.abs(x).max() if largest_value is None else largest_value):
        reason = f"same on all {n} seeds"
    half_width, p = (nan, nan) if reason else map(float, run_t_test(x))
    return Difference(mean, std, n, half_width, p, dict(difference_by_seed), n_diverged, reason)


def residual_skewness(differences: Iterable[Difference]) -> float:
    """Return the skewness of a method's residuals over its settings; NaN below ten settings of ten seeds each.

    `differences` are those of the method to the baseline, one for each setting. A residual is the difference on a seed
    minus the setting's mean, divided by the setting's standard deviation.
    """
    from scipy.stats import skew

    testable_differences = [setting for setting in differences if setting.n >= MIN_SKEW_SEEDS and not setting.reason]
    residuals = [(setting.values - setting.mean) / setting.std for setting in testable_differences]
    return float(skew(np.concatenate(residuals))) if len(residuals) >= MIN_SKEW_SETTINGS else math.nan


def collapses_on_some_seeds(differences: Iterable[Difference]) -> bool:
    """Return whether the residuals of a method are so skewed that it collapses on some seeds.

    Verdicts in single settings are then not reliable. `differences` are those to the baseline, one for each setting.
    """
    return residual_skewness(differences) < MAX_RESIDUAL_SKEW
