"""Means over seeds with their intervals, and paired differences to a baseline.

mean +- t_{.975, n-1} s / sqrt(n) is the 95 % confidence interval of a mean, s with ddof 1; of a difference it is the
same over the differences of runs with equal seeds, which share data, partition and initial model. The test is the
paired t-test of scipy.stats, two-sided.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

LEVEL = 0.95
SAME = 1e-6  # of the values: less spread of differences is that of the single precision in which curves are kept


@dataclass(frozen=True)
class Mean:
    """The mean over n values, and how sure it is.

    Attributes:
        std: ddof 1, NaN for fewer than two.
        half: of the 95 % interval, NaN likewise.
    """

    mean: float
    std: float
    n: int
    half: float

    @property
    def low(self) -> float:
        return self.mean - self.half

    @property
    def high(self) -> float:
        return self.mean + self.half


@dataclass(frozen=True)
class Difference:
    """The difference to the baseline over common seeds.

    Attributes:
        over: no interval where all seeds have the same difference: no spread is known, and not that there is none.
        p: of the paired t-test, NaN where it can't be done.
        why: the reason.
    """

    over: Mean
    p: float
    why: str = ""


def mean(values: Sequence[float]) -> Mean:
    """Return the mean of `values` with its interval; a value that isn't finite makes all of it NaN or infinite."""
    from scipy import stats

    x = np.asarray(values, dtype=float)
    n = len(x)
    with np.errstate(invalid="ignore"):  # between infinite values
        std = (float(x.std(ddof=1)) if np.ptp(x) else 0.0) if n > 1 else math.nan  # 0 where rounding says 1e-17
    half = float(stats.t.ppf((1 + LEVEL) / 2, n - 1)) * std / math.sqrt(n) if n > 1 else math.nan
    return Mean(float(x.mean()) if n else math.nan, std, n, half)


def difference(values: Mapping[int, float], base: Mapping[int, float]) -> Difference:
    """Return `values` minus `base`, both by seed, with the paired t-test over common seeds."""
    from scipy import stats

    common = sorted(set(values) & set(base))
    gaps = [values[seed] - base[seed] for seed in common]
    over = mean(gaps)
    if len(common) < 2:
        return Difference(over, math.nan, f"n={len(common)} common seeds: no interval, no test")
    if not math.isfinite(over.mean):
        return Difference(over, math.nan, "a value is not finite: no interval, no test")
    if over.std <= SAME * max(
        abs(of[seed]) for of in (values, base) for seed in common
    ):  # t is 0 / 0, or infinite but for rounding
        why = "the same difference for every seed: no interval, no test"
        return Difference(replace(over, half=math.nan), math.nan, why)
    test = stats.ttest_rel([values[seed] for seed in common], [base[seed] for seed in common])
    return Difference(over, float(test.pvalue))
