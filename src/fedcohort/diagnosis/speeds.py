"""Whether clients' speeds persist from job to job, and what leaving out the slowest would save.

    model:  log seconds of a job per sample = mu + s_k + e
    n_0:  (N - sum n_k^2 / N) / (a - 1)
    sigma^2:  max((MSB - MSW) / n_0, 0)
    rho:  sigma^2 / (sigma^2 + MSW)

This is a one-way random effects model of N jobs of `a` clients, with n_k jobs of client k. sigma^2 is the variance of
s_k. MSB and MSW are the mean squares between and within clients. rho is the share of the variance that persists. The
bounds of its interval follow from the F distribution, approximately for unequal n_k (Donner and Wells, "A comparison of
confidence interval methods for the intraclass correlation coefficient", Biometrics 1986).
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64

from fedcohort.diagnosis.label_noise import covers_all_classes
from fedcohort.types import Ids, Values

LEVEL = 0.95  # of the interval of rho
QUANTILE_NODES = (np.arange(9) + 0.5) / 9  # of the seconds of a client's jobs, for the slowest one of a cohort
DROPPED_SHARES = (0.5, 0.4, 0.3, 0.2, 0.1)  # of the pool, the largest first


@dataclass(frozen=True)
class Durations:
    """Sums over the jobs of each client so far, of the logarithm of a job's virtual seconds.

    Attributes:
        jobs: number of jobs, [K].
        sums: sums of the logarithms, [K].
        squares: sums of their squares, [K].
    """

    jobs: Ids
    sums: Values
    squares: Values

    def after(self, clients: Ids, seconds: Values) -> "Durations":
        """Return the sums with further jobs of distinct clients; durations that are not positive are left out."""
        is_usable = np.isfinite(seconds) & (seconds > 0)
        clients, logarithms = clients[is_usable], np.log(seconds[is_usable])
        jobs, sums, squares = self.jobs.copy(), self.sums.copy(), self.squares.copy()
        jobs[clients] += 1
        sums[clients] += logarithms
        squares[clients] += logarithms**2
        return Durations(jobs, sums, squares)


@dataclass(frozen=True)
class Speeds:
    """The persistence of speeds.

    Attributes:
        rho: share of the variance of log seconds per sample that persists; NaN where jobs are too few.
        low, high: bounds of its 95 % interval.
        log_seconds: shrunk estimate of each client's mean log seconds per sample, [K]; the mean for unknown clients.
        within: variance of a client's log seconds about its mean.
    """

    rho: float
    low: float
    high: float
    log_seconds: Values
    within: float


def estimate_speeds(durations: Durations, samples: Values) -> Speeds:
    """Fit the random effects model; samples: training samples of each client, [K], by which seconds are divided."""
    from scipy import stats

    has_jobs = (durations.jobs > 0) & (samples > 0)
    n = durations.jobs[has_jobs].astype(np.float64)
    n_clients, n_jobs = len(n), float(n.sum())
    means = durations.sums[has_jobs] / n - np.log(samples[has_jobs]) if n_clients else np.empty(0)
    grand_mean = float((n * means).sum() / n_jobs) if n_clients else 0.0
    unknown = Speeds(float("nan"), 0.0, 1.0, np.full(len(samples), grand_mean), 0.0)
    if n_clients < 3 or n_jobs <= n_clients:
        return unknown
    between_df, within_df = n_clients - 1, n_jobs - n_clients
    between = float((n * (means - grand_mean) ** 2).sum()) / between_df
    within_sum = (durations.squares[has_jobs] - durations.sums[has_jobs] ** 2 / n).sum()
    within = max(float(within_sum) / within_df, 1e-12)
    n_0 = (n_jobs - float((n**2).sum()) / n_jobs) / between_df
    persistent = max((between - within) / n_0, 0.0)
    bounds = []
    for probability in ((1 + LEVEL) / 2, (1 - LEVEL) / 2):
        ratio = between / within / float(stats.f.ppf(probability, between_df, within_df))
        bounds.append(max((ratio - 1) / (ratio + n_0 - 1), 0.0))
    log_seconds = np.full(len(samples), grand_mean)
    shrinkage = n / (n + within / persistent) if persistent > 0 else np.zeros(n_clients)
    log_seconds[has_jobs] = grand_mean + shrinkage * (means - grand_mean)
    return Speeds(persistent / (persistent + within), bounds[0], bounds[1], log_seconds, within)


def slowest_seconds(log_seconds: Values, within: float, cohort: int) -> float:
    """Return the expected seconds of the slowest one of `cohort` jobs of random clients.

    Args:
        log_seconds: mean log seconds of a job of each client, [n].
        within: variance of a job's log seconds about the client's mean, of a normal distribution.
        cohort: number of jobs.
    """
    from scipy import special

    deviations = np.sqrt(within) * special.ndtri(QUANTILE_NODES)
    seconds = np.sort(np.exp(log_seconds[:, None] + deviations).ravel())
    probability_below = (np.arange(1, len(seconds) + 1) / len(seconds)) ** cohort
    return float((seconds * np.diff(probability_below, prepend=0.0)).sum())


def fast_clients(
    speeds: Speeds,
    counts: Float64[np.ndarray, "_k _c"],
    in_pool: Bool[np.ndarray, "_k"],
    cohort: int,
    cover: float,
    least_gain: float,
) -> tuple[Bool[np.ndarray, "_k"], float]:
    """Return the pool without its slowest clients, and by what factor rounds become shorter; the pool and 1 if by none.

    Args:
        speeds: estimated speeds.
        counts: samples by client and class, [K, C].
        in_pool: the clients that cohorts are drawn from.
        cohort: clients of a round.
        cover: least ratio of the fast clients' share of each class to their share of all samples.
        least_gain: least predicted factor for which clients are left out.
    """
    job_seconds = speeds.log_seconds + np.log(np.maximum(counts.sum(1), 1.0))
    order = np.flatnonzero(in_pool)[np.argsort(speeds.log_seconds[in_pool], kind="stable")]
    all_seconds = slowest_seconds(job_seconds[order], speeds.within, cohort)
    for share in DROPPED_SHARES:
        fast = order[: len(order) - int(share * len(order))]
        is_fast = np.zeros(len(in_pool), dtype=bool)
        is_fast[fast] = True
        if not cohort <= len(fast) < len(order):
            continue
        gain = all_seconds / slowest_seconds(job_seconds[fast], speeds.within, cohort)
        if gain >= least_gain and covers_all_classes(is_fast, counts, cover):
            return is_fast, gain
    return in_pool, 1.0
