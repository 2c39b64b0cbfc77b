"""FLASH's contexts, and what they are measured in: first losses, and mean sizes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float64

from fedcohort.bandit.ridge import usable
from fedcohort.types import Ids, ProbeResult, Values

Contexts = Float64[np.ndarray, "_n _d"]
FEATURES = ("train_ratio", "val_ratio", "duration", "prev_reward")

FLOOR = 1e-8  # of a baseline that a ratio divides by
FLAT = 1e-9  # of the largest variance: a direction that varies less is rounding


@dataclass(frozen=True)
class Unit:
    """What a feature is measured in: the mean size of `count` observations, 1 before the first."""

    total: float = 0.0
    count: int = 0

    def value(self) -> float:
        return self.total / self.count if self.count else 1.0

    def after(self, sizes: Values, scale: str) -> "Unit":
        """More observations; a zero says nothing about scale. scale: "running", "first_round" or "none"."""
        if scale == "none" or (scale == "first_round" and self.count):
            return self
        positive = sizes[sizes > 0]
        return Unit(self.total + float(positive.sum()), self.count + len(positive))


UNKNOWN = Unit()


@dataclass(frozen=True)
class Baseline:
    """What a client's signals are compared with.

    Attributes:
        first: a client's first finite loss, NaN before.
        ratio: its last loss over that, 1 before.
    """

    first: Values
    ratio: Values

    def after(self, answers: ProbeResult) -> "Baseline":
        first, ratio = self.first.copy(), self.ratio.copy()
        k, value = answers.clients, answers.values
        first[k] = np.where(np.isnan(first[k]) & np.isfinite(value), value, first[k])
        ratio[k] = value / np.maximum(first[k], FLOOR)
        return Baseline(first, ratio)


@dataclass(frozen=True)
class Measurements:
    """What contexts are made of, per client.

    Attributes:
        train, val: the loss ratios.
        tau: last duration, seconds, NaN before the first.
        r: last reward credited, 0 before.
        tau_unit, r_unit: what the two are divided by.
    """

    train: Baseline
    val: Baseline
    tau: Values
    r: Values
    tau_unit: Unit = UNKNOWN
    r_unit: Unit = UNKNOWN

    @classmethod
    def none(cls, n_clients: int) -> "Measurements":
        """Return what is known before round 0."""
        unknown = np.full(n_clients, np.nan)
        blank = Baseline(unknown, np.ones(n_clients))
        return cls(blank, blank, unknown, np.zeros(n_clients))

    def timed(self, clients: Ids, seconds: Values, scale: str) -> "Measurements":
        """Take in how long clients took, NaN where that isn't known."""
        known, tau = np.isfinite(seconds), self.tau.copy()
        tau[clients[known]] = seconds[known]
        return replace(self, tau=tau, tau_unit=self.tau_unit.after(seconds[known], scale))

    def rewarded(self, clients: Ids, gain: Values, scale: str) -> "Measurements":
        """Take in the rewards that clients are credited with."""
        r = self.r.copy()
        r[clients] = gain
        return replace(self, r=r, r_unit=self.r_unit.after(np.abs(gain), scale))

    def contexts(self) -> Contexts:
        """Return x(i) for every client, all of `FEATURES`, NaN where one is not finite."""
        timed = np.isfinite(self.tau)
        tau = np.where(timed, self.tau, self.tau[timed].mean() if timed.any() else 0.0) / self.tau_unit.value()
        X = np.column_stack([self.train.ratio, self.val.ratio, tau, self.r / self.r_unit.value()])
        return np.where(np.isfinite(X), X, np.nan)


def form(X: Contexts, kept: Sequence[str], word: str) -> Contexts:
    """Return the features that are `kept`, in their order, as they are (word: "raw") or "whitened"."""
    columns = np.ascontiguousarray(X[:, [FEATURES.index(name) for name in kept]])  # as a resume finds it, to the bit
    return whiten(columns) if word == "whitened" else columns


def whiten(X: Contexts) -> Contexts:
    """Return contexts with mean 0 and covariance I over the clients that have one, and an intercept behind, [n, d + 1].

    Z = (X - mean) C^-1/2, which leaves each feature as near to itself as it can be; what doesn't vary is 0. The two
    ratios are nearly one feature, and without an intercept a draw of theta ranks clients along one line, forwards or
    backwards. gamma_t is then for contexts of size 1, as its theory has them.
    """
    some = usable(X)
    out = np.full((len(X), X.shape[1] + 1), np.nan)
    if not some.any():
        return out
    centred = X[some] - X[some].mean(axis=0)
    values, vectors = np.linalg.eigh(centred.T @ centred / len(centred))
    scale = np.where(values > FLAT * max(values.max(), FLOOR), 1 / np.sqrt(np.maximum(values, FLOOR**2)), 0.0)
    out[some, :-1] = centred @ (vectors * scale) @ vectors.T
    out[some, -1] = 1.0
    return out


@dataclass(frozen=True)
class Pending:
    """Rows that wait for their reward: of whom, and their contexts. first: of the cohort of round 0."""

    clients: Ids
    X: Contexts
    first: bool
