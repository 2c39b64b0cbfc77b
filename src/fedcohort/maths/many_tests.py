"""Tests over many comparisons: Holm's correction, Wilcoxon's test, the seeds a test needs.

Holm (1979)      sort p_(1) <= ... <= p_(m); adjusted p_(i) = max over j <= i of min(1, (m - j + 1) p_(j))
Wilcoxon (1945)  of N seeds' differences d_i, T+ is the sum of the ranks of |d_i| where d_i > 0, ties sharing their
                 mean rank and those of zeros split evenly (Demsar, section 3.1.3); two-sided, exact for few blocks.
                 Its p is 2 / 2^N at least
seeds            paired differences have mean delta and deviation s, and the statistic is delta sqrt(n) / s. It passes
                 t_{1 - alpha / 2} with chance `power` where delta sqrt(n) / s >= t_{1 - alpha / 2} + t_{power}, both
                 quantiles of n - 1 degrees: the least n >= 2 with n >= ((t_{1 - alpha / 2} + t_{power}) s / delta)^2
"""

import math
from bisect import bisect_left
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float64

POWER = 0.8
MOST = 100_000  # seeds beyond which their number is of no use
EXACT = 13  # blocks up to which scipy tries all signs, too, where there are ties; beyond, it takes a normal law


def adjust_holm(ps: Sequence[float]) -> list[float]:
    """Return Holm's adjusted p-values; what can't be tested (NaN) stays so, and counts for nothing."""
    known = [i for i in range(len(ps)) if math.isfinite(ps[i])]
    adjusted, largest = list(ps), 0.0
    for j, i in enumerate(sorted(known, key=lambda i: ps[i])):
        largest = max(largest, min(1.0, (len(known) - j) * ps[i]))
        adjusted[i] = largest
    return adjusted


def count_seeds(spread: float, worth: float, alpha: float, power: float = POWER) -> int | None:
    """Return how many paired seeds show a difference of `worth`; None where the spread isn't known.

    Args:
        spread: standard deviation of the paired differences, ddof 1, in the unit of `worth`.
        worth: the true difference, above 0.
        alpha: level of the two-sided test.
        power: the chance with which it is to be shown.
    """
    from scipy.stats import t

    if not math.isfinite(spread):
        return None

    def shows(n: int) -> bool:
        need = (float(t.ppf(1 - alpha / 2, n - 1)) + float(t.ppf(power, n - 1))) * spread / worth
        return n >= need**2

    return 2 + bisect_left(range(2, MOST), True, key=shows)  # whoever shows it, more show it, too


def rank_rows(values: Float64[np.ndarray, "blocks treatments"]) -> Float64[np.ndarray, "blocks treatments"]:
    """Rank each row's values, 1 for the largest; ties share their mean rank, and what is no number is last."""
    from scipy.stats import rankdata

    ranks: Float64[np.ndarray, "blocks treatments"] = rankdata(-_known(values), axis=1)
    return ranks


def _known(values: Float64[np.ndarray, "blocks treatments"]) -> Float64[np.ndarray, "blocks treatments"]:
    """The values, those of diverged runs below all others."""
    return np.where(np.isnan(values), -np.inf, values)


def bound_gaps(
    values: Float64[np.ndarray, "blocks"], base: Float64[np.ndarray, "blocks"]
) -> Float64[np.ndarray, "blocks"]:
    """Return `values` minus `base`; where one of them is no number, it loses by more than is lost anywhere else."""
    lost = np.isnan(base).astype(float) - np.isnan(values)
    known = np.isfinite(values) & np.isfinite(base)
    most = 1 + np.abs(values[known] - base[known]).max(initial=0.0)
    gaps: Float64[np.ndarray, blocks] = lost * most
    gaps[known] = values[known] - base[known]
    return gaps


def signed_ranks_p(gaps: Float64[np.ndarray, "blocks"]) -> float:
    """Return the p-value that paired differences are as likely above 0 as below; 1 where all are 0.

    For up to EXACT blocks the sum's law is built rank by rank: equal to scipy's, which tries 2^blocks signs one by one
    where ranks are tied, 30 s for a study's page.
    """
    from scipy.stats import rankdata, wilcoxon

    if not gaps.any():
        return 1.0
    if len(gaps) > EXACT:
        return float(wilcoxon(gaps, zero_method="zsplit").pvalue)
    twice = np.rint(2 * rankdata(np.abs(gaps))).astype(int)  # ties have halves of ranks
    chance = np.ones(1)  # of each sum of twice the ranks above 0, signs by the toss of a coin; zeros never move
    for rank in twice[gaps != 0]:
        chance = (np.pad(chance, (0, rank)) + np.pad(chance, (rank, 0))) / 2
    above = int(twice[gaps > 0].sum())
    return min(1.0, 2 * float(min(chance[: above + 1].sum(), chance[above:].sum())))


def lean(gaps: Float64[np.ndarray, "blocks"]) -> int:
    """Return on which side of 0 the ranks of the differences sum to more: 1 above, -1 below, 0 on neither.

    That is what a small `signed_ranks_p` has shown. Their median may be on the other side, from some 24 blocks on.
    """
    from scipy.stats import rankdata

    return int(np.sign(np.sign(gaps) @ rankdata(np.abs(gaps))))


def least_blocks(tests: int, alpha: float) -> int:
    """Return how many blocks Wilcoxon's test needs at least to pass `alpha` after Holm's correction for `tests`."""
    return math.floor(1 - math.log2(alpha / tests)) + 1
