"""The part of a client's loss that its classes do not explain, and the rate of wrong labels that it amounts to.

    loss of sample i of client k:  a_{y_i} + b_k + e_ki,  e_ki of variance v_k, b_k of variance tau^2

The classes' effects a are fixed, the clients' excess losses b random. `fit_by_class` solves the equations of this mixed
model (Henderson, "Best linear unbiased estimation and prediction under a selection model", Biometrics 1975). tau^2 is
the fixed point of the mean of b_k^2 and its prediction variance. `fit_by_sums` needs only sums over clients per class,
and one mean and variance per client, which secure aggregation allows. It is less exact.

    excess rate:  r_k = (b_k - b_low) / D, b_low the 10 % quantile of b
    D:  mean loss of a wrong label less the mean loss of a right one, as far as b tells them apart, in nats

r_k is the share of wrong labels in excess of the cleanest tenth of the clients. The absolute rate cannot be identified
from losses: equal noise at all clients has r = 0. A class that one client alone holds leaves its b at 0.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from fedcohort.types import Values

Table = Float64[np.ndarray, "_n _c"]
PRIOR_DEGREES = 5.0  # degrees of freedom of the common variance in a client's variance
MAX_STEPS, TOLERANCE = 60, 1e-4  # of the fixed point of tau^2
SUM_STEPS, SUM_SPREAD_STEPS = 3, 40  # of `fit_by_sums`: exchanges with the clients, and steps of tau^2 in each
LOW_QUANTILE = 0.1
MIN_VARIANCE, MIN_SPREAD = 1e-6, 1e-8  # nats^2


@dataclass(frozen=True)
class ClassLosses:
    """Reports of `signal=class_loss` of n clients.

    Attributes:
        counts: numbers of samples, [n, C].
        sums: sums of their losses in nats, [n, C].
        squares: sums of their squared losses, [n, C].
        other_sums: sums of the mean losses that the other labels would have, [n].
    """

    counts: Table
    sums: Table
    squares: Table
    other_sums: Values

    @classmethod
    def from_rows(cls, rows: Table) -> "ClassLosses":
        """Return the reports in the rows [n, 3C + 1] that clients sent."""
        counts, sums, squares = np.split(rows[:, :-1], 3, axis=1)
        return cls(counts, sums, squares, rows[:, -1])

    @property
    def samples(self) -> Values:
        """Number of samples of each client, [n]."""
        return np.asarray(self.counts.sum(1), np.float64)


@dataclass(frozen=True)
class ExcessLoss:
    """The estimates of one probe, in nats.

    Attributes:
        class_effect: a, mean loss of each class at a client without excess, [C].
        excess: b, [n].
        variance: variance of the prediction error of each b, [n].
        spread: tau, standard deviation of b over clients.
        scale: D, nats between a wrong and a right label; not positive where the model does not tell yet.
    """

    class_effect: Values
    excess: Values
    variance: Values
    spread: float
    scale: float

    @property
    def rate(self) -> Values:
        """Excess rate of wrong labels of each client, r, [n]."""
        return np.asarray((self.excess - np.quantile(self.excess, LOW_QUANTILE)) / self.scale, np.float64)


def fit_by_class(losses: ClassLosses) -> ExcessLoss:
    """Fit the mixed model to reports with numbers of samples per class; at least one client and one sample."""
    counts, sums, samples = losses.counts, losses.sums, losses.samples
    v = _sample_variances(losses)
    has_samples = counts.sum(0) > 0
    G, loss_by_class, loss_by_client = counts / v[:, None], (sums / v[:, None]).sum(0), sums.sum(1) / v
    spread_squared = np.median(v) / 10
    for _ in range(MAX_STEPS):
        precision = samples / v + 1 / spread_squared
        scaled = G / precision[:, None]
        M_inverse = np.linalg.pinv(np.diag(np.where(has_samples, G.sum(0), 1.0)) - scaled.T @ G, hermitian=True)
        a = M_inverse @ (loss_by_class - scaled.T @ loss_by_client)
        b = (loss_by_client - G @ a) / precision
        variance = 1 / precision + (scaled @ M_inverse * scaled).sum(1)
        previous, spread_squared = spread_squared, max(float((b**2 + variance).mean()), MIN_SPREAD)
        if abs(spread_squared - previous) < TOLERANCE * previous:
            break
    return ExcessLoss(a, b, variance, float(np.sqrt(spread_squared)), _nats_of_a_wrong_label(losses, b))


def fit_by_sums(losses: ClassLosses) -> ExcessLoss:
    """Fit the model as secure aggregation allows, from sums over clients per class and two numbers per client."""
    counts, sums, samples = losses.counts, losses.sums, losses.samples
    n = np.maximum(samples, 1.0)
    b, variance, spread_squared = np.zeros(len(n)), np.zeros(len(n)), 1.0
    for _ in range(SUM_STEPS):
        a = (sums - b[:, None] * counts).sum(0) / np.maximum(counts.sum(0), 1.0)
        residual = (sums.sum(1) - counts @ a) / n
        v = (losses.squares.sum(1) - 2 * sums @ a + counts @ a**2) / n - residual**2
        v = np.maximum(v, MIN_VARIANCE)
        v = (v * samples + PRIOR_DEGREES * np.average(v, weights=samples)) / (samples + PRIOR_DEGREES)
        spread_squared = 1.0
        for _ in range(SUM_SPREAD_STEPS):
            weights = 1 / (spread_squared + v / n)
            spread_squared *= float((weights**2 * residual**2).sum() / weights.sum())
            spread_squared = max(spread_squared, MIN_SPREAD)
        b = np.where(samples > 0, residual * spread_squared / (spread_squared + v / n), 0.0)
        variance = 1 / (1 / spread_squared + samples / v)
    return ExcessLoss(a, b, variance, float(np.sqrt(spread_squared)), _nats_of_a_wrong_label(losses, b))


def _sample_variances(losses: ClassLosses) -> Values:
    """Return the variance of a sample's loss about its client's mean in its class, v_k, shrunk to the common one, [n].

    The shrinkage is that of `PRIOR_DEGREES` further degrees of freedom.
    """
    counts = losses.counts
    within = np.where(counts > 1, losses.squares - losses.sums**2 / np.maximum(counts, 1.0), 0.0).sum(1)
    degrees = np.maximum(counts - 1, 0.0).sum(1)
    common = max(float(within.sum() / max(degrees.sum(), 1.0)), MIN_VARIANCE)
    return np.asarray((within + PRIOR_DEGREES * common) / (degrees + PRIOR_DEGREES), np.float64)


def _nats_of_a_wrong_label(losses: ClassLosses, excess: Values) -> float:
    """Return D: the mean loss of labels of other classes, less the mean loss without the clients' excess."""
    samples = losses.samples
    total = max(float(samples.sum()), 1.0)
    base = excess - np.quantile(excess, LOW_QUANTILE)
    right_label = (losses.sums.sum() - (samples * base).sum()) / total
    return float(losses.other_sums.sum() / total - right_label)
