"""The part of a client's loss that its classes do not explain, and the rate of wrong labels that it amounts to.

    loss of sample i of client k:  a_{y_i} + b_k + e_ki,  e_ki of variance v_k, b_k of variance tau^2

The classes' effects a are fixed, the clients' excess losses b random. `fit_by_class` solves the equations of this mixed
model (Henderson, "Best linear unbiased estimation and prediction under a selection model", Biometrics 1975). tau^2 is
the fixed point of the mean of b_k^2 and its prediction variance. `fit_by_sums` needs only sums over clients per class,
and one mean and variance per client, which secure aggregation allows. It is less exact.

    excess rate:  r_k = (b_k - b_low) / D, b_low the 10 % quantile of b
    D:  mean loss of a wrong label less the mean loss of a right one, as far as b distinguishes them, in nats

r_k is the share of wrong labels in excess of the cleanest tenth of the clients. The absolute rate cannot be identified
from losses: equal noise at all clients has r = 0. A class that one client alone holds leaves its b at 0.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from fedcohort.types import Values

ClassTable = Float64[np.ndarray, "_n _c"]
PRIOR_DEGREES = 5.0  # degrees of freedom of the common variance in a client's variance
MAX_FIXED_POINT_STEPS, FIXED_POINT_TOLERANCE = 60, 1e-4  # of the fixed point of tau^2
N_CLIENT_EXCHANGES, N_SPREAD_STEPS = 3, 40  # of `fit_by_sums`: exchanges with the clients, and steps of tau^2 in each
LOW_QUANTILE = 0.1
MIN_LOSS_VARIANCE, MIN_TAU_SQUARED = 1e-6, 1e-8  # nats^2


@dataclass(frozen=True)
class ClassLosses:
    """Reports of n clients to a query of the signal `class_loss`, for C classes.

    Attributes:
        class_counts: number of samples by client and class, [n, C].
        loss_sums: sum of the samples' losses in nats, by client and class, [n, C].
        squared_loss_sums: sum of the samples' squared losses in nats^2, by client and class, [n, C].
        other_label_loss_sums: sum over each client's samples of the mean loss in nats that their other C - 1 labels
            would have, [n].
    """

    class_counts: ClassTable
    loss_sums: ClassTable
    squared_loss_sums: ClassTable
    other_label_loss_sums: Values

    @classmethod
    def from_rows(cls, report_rows: ClassTable) -> "ClassLosses":
        """Return the reports in `report_rows` [n, 3 C + 1], a row from each client with the fields in their order."""
        class_counts, loss_sums, squared_loss_sums = np.split(report_rows[:, :-1], 3, axis=1)
        return cls(class_counts, loss_sums, squared_loss_sums, report_rows[:, -1])

    @property
    def n_samples(self) -> Values:
        """Number of samples of each client, float64 [n]."""
        return np.asarray(self.class_counts.sum(1), np.float64)


@dataclass(frozen=True)
class ExcessLoss:
    """Estimated excess loss of each client in nats, from one probe: a query of all clients' losses by class.

    Attributes:
        class_effect: mean loss of each class at a client without excess loss, [C].
        excess: excess loss of each client, beyond what its classes explain, [n].
        variance: variance of the prediction error of each excess loss in nats^2, [n].
        excess_deviation: standard deviation of the excess loss over clients.
        nats_per_wrong_label: mean loss of a wrong label minus that of a right one; not positive while the model cannot
            distinguish the two.
    """

    class_effect: Values
    excess: Values
    variance: Values
    excess_deviation: float
    nats_per_wrong_label: float

    @property
    def noise_rate(self) -> Values:
        """Share of wrong labels of each client in excess of the cleanest tenth of the clients, [n]."""
        low_quantile_excess = np.quantile(self.excess, LOW_QUANTILE)
        return np.asarray((self.excess - low_quantile_excess) / self.nats_per_wrong_label, np.float64)


def fit_by_class(losses: ClassLosses) -> ExcessLoss:
    """Return the mixed model of class effects and clients' excess losses, fitted to the class sums in `losses`.

    At least one client must have samples.
    """
    class_counts, loss_sums, n_samples = losses.class_counts, losses.loss_sums, losses.n_samples
    v, has_samples = _estimate_sample_variances(losses), class_counts.sum(0) > 0
    G, loss_by_class, loss_by_client = class_counts / v[:, None], (loss_sums / v[:, None]).sum(0), loss_sums.sum(1) / v
    spread_squared = np.median(v) / 10
    for _ in range(MAX_FIXED_POINT_STEPS):
        loss_precision = n_samples / v + 1 / spread_squared
        scaled_counts = G / loss_precision[:, None]
        M_inverse = np.linalg.pinv(np.diag(np.where(has_samples, G.sum(0), 1.0)) - scaled_counts.T @ G, hermitian=True)
        a = M_inverse @ (loss_by_class - scaled_counts.T @ loss_by_client)
        b = (loss_by_client - G @ a) / loss_precision
        variance = 1 / loss_precision + (scaled_counts @ M_inverse * scaled_counts).sum(1)
        previous_spread_squared, spread_squared = spread_squared, max(float((b**2 + variance).mean()), MIN_TAU_SQUARED)
        if abs(spread_squared - previous_spread_squared) < FIXED_POINT_TOLERANCE * previous_spread_squared:
            break
    return ExcessLoss(a, b, variance, float(np.sqrt(spread_squared)), _estimate_wrong_label_nats(losses, b))


def fit_by_sums(losses: ClassLosses) -> ExcessLoss:
    """Return the mixed model fitted to sums over clients and two numbers per client, as secure aggregation allows.

    `losses` holds the clients' reports, of which at least one has samples.
    """
    class_counts, loss_sums, n_samples = losses.class_counts, losses.loss_sums, losses.n_samples
    n = np.maximum(n_samples, 1.0)
    b, variance, spread_squared = np.zeros(len(n)), np.zeros(len(n)), 1.0
    for _ in range(N_CLIENT_EXCHANGES):
        a = (loss_sums - b[:, None] * class_counts).sum(0) / np.maximum(class_counts.sum(0), 1.0)
        mean_residuals = (loss_sums.sum(1) - class_counts @ a) / n
        v = (losses.squared_loss_sums.sum(1) - 2 * loss_sums @ a + class_counts @ a**2) / n - mean_residuals**2
        v = np.maximum(v, MIN_LOSS_VARIANCE)
        v = (v * n_samples + PRIOR_DEGREES * np.average(v, weights=n_samples)) / (n_samples + PRIOR_DEGREES)
        spread_squared = 1.0
        for _ in range(N_SPREAD_STEPS):
            inverse_variances = 1 / (spread_squared + v / n)
            spread_squared *= float((inverse_variances**2 * mean_residuals**2).sum() / inverse_variances.sum())
            spread_squared = max(spread_squared, MIN_TAU_SQUARED)
        b = np.where(n_samples > 0, mean_residuals * spread_squared / (spread_squared + v / n), 0.0)
        variance = 1 / (1 / spread_squared + n_samples / v)
    return ExcessLoss(a, b, variance, float(np.sqrt(spread_squared)), _estimate_wrong_label_nats(losses, b))


def _estimate_sample_variances(losses: ClassLosses) -> Values:
    """Return the variance of each client's sample losses about their class means, in nats^2, [n].

    It is estimated from `losses` and shrunk to the common variance, which counts as `PRIOR_DEGREES` degrees of freedom.
    """
    class_counts = losses.class_counts
    squared_deviations = np.where(
        class_counts > 1, losses.squared_loss_sums - losses.loss_sums**2 / np.maximum(class_counts, 1.0), 0.0
    ).sum(1)
    degrees_of_freedom = np.maximum(class_counts - 1, 0.0).sum(1)
    common_variance = max(float(squared_deviations.sum() / max(degrees_of_freedom.sum(), 1.0)), MIN_LOSS_VARIANCE)
    return np.asarray(
        (squared_deviations + PRIOR_DEGREES * common_variance) / (degrees_of_freedom + PRIOR_DEGREES), np.float64
    )


def _estimate_wrong_label_nats(losses: ClassLosses, excess_losses: Values) -> float:
    """Return the mean loss of wrong labels minus that of right labels in nats, over clients without excess loss.

    `losses` holds the reports, `excess_losses` the excess loss of each client in nats, [n].
    """
    n_samples = losses.n_samples
    n_samples_total = max(float(n_samples.sum()), 1.0)
    excess_above_cleanest = excess_losses - np.quantile(excess_losses, LOW_QUANTILE)
    right_label_loss = (losses.loss_sums.sum() - (n_samples * excess_above_cleanest).sum()) / n_samples_total
    return float(losses.other_label_loss_sums.sum() / n_samples_total - right_label_loss)
