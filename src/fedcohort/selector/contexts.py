"""FLASH's contexts (FLASH Sec. II), with the baselines and scales that their features are divided by."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float64

from fedcohort.bandit.ridge import find_valid_rows
from fedcohort.types import Ids, ProbeResult, Values

Contexts = Float64[np.ndarray, "_n _d"]
FEATURES = ("train_ratio", "val_ratio", "duration", "prev_reward")

MIN_LOSS = 1e-8  # of a baseline that a ratio divides by
MIN_VARIANCE = 1e-9  # of the largest variance: a direction that varies less is rounding


@dataclass(frozen=True)
class FeatureScale:
    """The scale of a feature: the mean absolute value of the observations so far, 1 before the first.

    Attributes:
        total: sum of the absolute values.
        count: number of observations.
    """

    total: float = 0.0
    count: int = 0

    def value(self) -> float:
        """Return the mean absolute value of the observations so far; 1 before the first observation."""
        return self.total / self.count if self.count else 1.0

    def after(self, sizes: Values, scale: str) -> "FeatureScale":
        """Return the scale of a feature after more observations; observations of zero are left out.

        Args:
            sizes: absolute values.
            scale: "running" includes every round, "first_round" only the first observations, "none" leaves the scale at
                1.
        """
        if scale == "none" or (scale == "first_round" and self.count):
            return self
        positive = sizes[sizes > 0]
        return FeatureScale(self.total + float(positive.sum()), self.count + len(positive))


INITIAL_SCALE = FeatureScale()


@dataclass(frozen=True)
class LossRatios:
    """Each client's latest loss as a ratio to its first one.

    Attributes:
        first: each client's first finite loss in nats, NaN before it.
        ratio: its latest loss over that, 1 before it.
    """

    first: Values
    ratio: Values

    def after(self, answers: ProbeResult) -> "LossRatios":
        """Return the ratios after new losses in nats; a client's first finite loss is the divisor of later ones."""
        first, ratio = self.first.copy(), self.ratio.copy()
        k, value = answers.clients, answers.values
        first[k] = np.where(np.isnan(first[k]) & np.isfinite(value), value, first[k])
        ratio[k] = value / np.maximum(first[k], MIN_LOSS)
        return LossRatios(first, ratio)


@dataclass(frozen=True)
class Measurements:
    """The measurements of each client from which FLASH's contexts are made, [n_clients] each.

    Attributes:
        train: ratio of the training loss.
        val: ratio of the validation loss.
        tau: latest duration in seconds, NaN before the first.
        r: latest reward credited, 0 before the first.
        tau_unit: scale of tau.
        r_unit: scale of r.
    """

    train: LossRatios
    val: LossRatios
    tau: Values
    r: Values
    tau_unit: FeatureScale = INITIAL_SCALE
    r_unit: FeatureScale = INITIAL_SCALE

    @classmethod
    def initial(cls, n_clients: int) -> "Measurements":
        """Return the clients' measurements before round 0: loss ratios of 1, and no durations or rewards."""
        missing = np.full(n_clients, np.nan)
        blank = LossRatios(missing, np.ones(n_clients))
        return cls(blank, blank, missing, np.zeros(n_clients))

    def with_durations(self, clients: Ids, seconds: Values, scale: str) -> "Measurements":
        """Return the measurements with new durations.

        Args:
            clients: ids of the clients, [n].
            seconds: their durations, [n]; NaN leaves a client's duration unchanged.
            scale: how the unit of durations changes (`FeatureScale.after`).
        """
        finite, tau = np.isfinite(seconds), self.tau.copy()
        tau[clients[finite]] = seconds[finite]
        return replace(self, tau=tau, tau_unit=self.tau_unit.after(seconds[finite], scale))

    def with_rewards(self, clients: Ids, gain: Values, scale: str) -> "Measurements":
        """Return the measurements with new rewards.

        Args:
            clients: ids of the clients that are rewarded, [n].
            gain: their rewards, [n].
            scale: how the unit of rewards changes (`FeatureScale.after`).
        """
        r = self.r.copy()
        r[clients] = gain
        return replace(self, r=r, r_unit=self.r_unit.after(np.abs(gain), scale))

    def contexts(self) -> Contexts:
        """Return the context x(i) of each client, [n_clients, 4], in the order of `FEATURES`.

        NaN for one not finite.
        """
        is_timed = np.isfinite(self.tau)
        tau = np.where(is_timed, self.tau, self.tau[is_timed].mean() if is_timed.any() else 0.0) / self.tau_unit.value()
        X = np.column_stack([self.train.ratio, self.val.ratio, tau, self.r / self.r_unit.value()])
        return np.where(np.isfinite(X), X, np.nan)


def select_features(X: Contexts, names: Sequence[str], form: str) -> Contexts:
    """Return the columns of the chosen features, in the order of `names`: unchanged (form="raw") or whitened."""
    columns = np.ascontiguousarray(X[:, [FEATURES.index(name) for name in names]])  # the memory order after a resume
    return whiten(columns) if form == "whitened" else columns


def whiten(X: Contexts) -> Contexts:
    """Return contexts with mean 0 and covariance I over the clients that have one, and an intercept, [n, d + 1].

        Z = (X - mean) C^-1/2

    This transform changes each feature as little as possible; a feature without variation becomes 0. The two loss
    ratios are nearly collinear, and without an intercept a draw of theta ranks the clients along one line, in either
    direction. With contexts of size 1 the confidence width gamma_t has the scale that its derivation assumes.
    """
    valid = find_valid_rows(X)
    out = np.full((len(X), X.shape[1] + 1), np.nan)
    if not valid.any():
        return out
    centred = X[valid] - X[valid].mean(axis=0)
    eig, vectors = np.linalg.eigh(centred.T @ centred / len(centred))
    scale = np.where(eig > MIN_VARIANCE * max(eig.max(), MIN_LOSS), 1 / np.sqrt(np.maximum(eig, MIN_LOSS**2)), 0.0)
    out[valid, :-1] = centred @ (vectors * scale) @ vectors.T
    out[valid, -1] = 1.0
    return out


@dataclass(frozen=True)
class PendingRewards:
    """Contexts that chose a cohort and whose rewards are not known yet.

    Attributes:
        clients: ids of the rows.
        X: their contexts.
        first: whether they are the cohort of round 0.
    """

    clients: Ids
    X: Contexts
    first: bool
