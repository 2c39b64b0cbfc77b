"""Estimate whether clients' speeds persist from job to job, and what leaving out the slowest clients would save.

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

CONFIDENCE_LEVEL = 0.95  # of the interval of rho
QUANTILE_NODES = (np.arange(9) + 0.5) / 9  # of the seconds of a client's jobs, for the slowest one of a cohort
DROPPED_CLIENT_SHARES = (0.5, 0.4, 0.3, 0.2, 0.1)  # of the pool, the largest first


@dataclass(frozen=True)
class JobDurations:
    """Sums over each client's jobs so far of the logarithm of a job's virtual seconds.

    Attributes:
        job_counts: number of jobs of each client, [n_clients].
        log_sums: sum of the logarithms of each client's seconds, [n_clients].
        squared_log_sums: sum of the squared logarithms, [n_clients].
    """

    job_counts: Ids
    log_sums: Values
    squared_log_sums: Values

    def with_jobs(self, client_ids: Ids, job_seconds: Values) -> "JobDurations":
        """Return the sums with further jobs of distinct `client_ids` [n]; durations that are not positive are left out.

        `job_seconds` [n] are the virtual seconds of these jobs.
        """
        is_valid_duration = np.isfinite(job_seconds) & (job_seconds > 0)
        client_ids, log_seconds = client_ids[is_valid_duration], np.log(job_seconds[is_valid_duration])
        job_counts, log_sums = self.job_counts.copy(), self.log_sums.copy()
        squared_log_sums = self.squared_log_sums.copy()
        job_counts[client_ids] += 1
        log_sums[client_ids] += log_seconds
        squared_log_sums[client_ids] += log_seconds**2
        return JobDurations(job_counts, log_sums, squared_log_sums)


@dataclass(frozen=True)
class SpeedEstimate:
    """The persistence of the clients' speeds from job to job.

    Attributes:
        rho: share of the variance of log seconds per sample that persists from job to job; NaN if there are too few
            jobs.
        low, high: bounds of the 95 % interval of rho.
        log_seconds: shrunk estimate of each client's mean log seconds per sample, [n_clients]; the mean for unknown
            clients.
        variance_within: variance of the log seconds of a client's jobs about their mean; 0 if there are too few jobs.
    """

    rho: float
    low: float
    high: float
    log_seconds: Values
    variance_within: float


def estimate_speeds(durations: JobDurations, n_samples: Values) -> SpeedEstimate:
    """Return the persistence of speeds by a random effects model of log seconds per sample.

    Args:
        durations: sums over the clients' jobs.
        n_samples: number of training samples of each client, [n_clients].
    """
    from scipy import stats

    has_jobs = (durations.job_counts > 0) & (n_samples > 0)
    n = durations.job_counts[has_jobs].astype(np.float64)
    n_clients, n_jobs = len(n), float(n.sum())
    client_means = durations.log_sums[has_jobs] / n - np.log(n_samples[has_jobs]) if n_clients else np.empty(0)
    grand_mean = float((n * client_means).sum() / n_jobs) if n_clients else 0.0
    unknown_speeds = SpeedEstimate(float("nan"), 0.0, 1.0, np.full(len(n_samples), grand_mean), 0.0)
    if n_clients < 3 or n_jobs <= n_clients:
        return unknown_speeds
    between_df, within_df = n_clients - 1, n_jobs - n_clients
    mean_square_between = float((n * (client_means - grand_mean) ** 2).sum()) / between_df
    within_square_sum = (durations.squared_log_sums[has_jobs] - durations.log_sums[has_jobs] ** 2 / n).sum()
    variance_within = max(float(within_square_sum) / within_df, 1e-12)
    n_0 = (n_jobs - float((n**2).sum()) / n_jobs) / between_df
    persistent_variance = max((mean_square_between - variance_within) / n_0, 0.0)
    tail_probabilities = np.array([1 + CONFIDENCE_LEVEL, 1 - CONFIDENCE_LEVEL]) / 2
    f_ratios = mean_square_between / variance_within / stats.f.ppf(tail_probabilities, between_df, within_df)
    low, high = np.maximum((f_ratios - 1) / (f_ratios + n_0 - 1), 0.0).tolist()
    log_seconds = np.full(len(n_samples), grand_mean)
    shrinkage = n / (n + variance_within / persistent_variance) if persistent_variance > 0 else np.zeros(n_clients)
    log_seconds[has_jobs] = grand_mean + shrinkage * (client_means - grand_mean)
    rho = persistent_variance / (persistent_variance + variance_within)
    return SpeedEstimate(rho, low, high, log_seconds, variance_within)


def predict_slowest_seconds(log_seconds: Values, variance_within: float, cohort_size: int) -> float:
    """Return the expected seconds of the slowest one of `cohort_size` jobs of random clients.

    Args:
        log_seconds: mean log seconds of a job of each client, [n].
        variance_within: variance of a job's log seconds about the client's mean, of a normal distribution.
        cohort_size: number of jobs.
    """
    from scipy import special

    log_deviations = np.sqrt(variance_within) * special.ndtri(QUANTILE_NODES)
    sorted_seconds = np.sort(np.exp(log_seconds[:, None] + log_deviations).ravel())
    probability_below = (np.arange(1, len(sorted_seconds) + 1) / len(sorted_seconds)) ** cohort_size
    return float((sorted_seconds * np.diff(probability_below, prepend=0.0)).sum())


def choose_fast_clients(
    speeds: SpeedEstimate,
    class_counts: Float64[np.ndarray, "_k _c"],
    in_pool: Bool[np.ndarray, "_k"],
    cohort_size: int,
    class_cover: float,
    min_speed_gain: float,
) -> tuple[Bool[np.ndarray, "_k"], float]:
    """Return whether each client is in the pool without its slowest ones, [n_clients], and the predicted speed-up.

    The speed-up is the factor by which rounds become shorter. The result is the whole pool and 1 if no share of it can
    be left out with a speed-up of `min_speed_gain` and with `class_cover`.

    Args:
        speeds: estimated speeds of all clients.
        class_counts: samples by client and class, [n_clients, n_classes].
        in_pool: whether each client is in the pool from which cohorts are drawn, [n_clients].
        cohort_size: number of clients of a round.
        class_cover: least ratio of the fast clients' share of each class to their share of all samples.
        min_speed_gain: least predicted factor for which clients are left out.
    """
    log_job_s = speeds.log_seconds + np.log(np.maximum(class_counts.sum(1), 1.0))
    speed_order = np.flatnonzero(in_pool)[np.argsort(speeds.log_seconds[in_pool], kind="stable")]
    pool_seconds = predict_slowest_seconds(log_job_s[speed_order], speeds.variance_within, cohort_size)
    for dropped_client_share in DROPPED_CLIENT_SHARES:
        fast_ids = speed_order[: len(speed_order) - int(dropped_client_share * len(speed_order))]
        is_fast = np.isin(np.arange(len(in_pool)), fast_ids)
        if not cohort_size <= len(fast_ids) < len(speed_order):
            continue
        speed_gain = pool_seconds / predict_slowest_seconds(log_job_s[fast_ids], speeds.variance_within, cohort_size)
        if speed_gain >= min_speed_gain and covers_all_classes(is_fast, class_counts, class_cover):
            return is_fast, speed_gain
    return in_pool, 1.0
