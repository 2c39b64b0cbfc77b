"""FLASH's contexts, and what they are measured in: first losses, and mean sizes."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

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


def whiten(X: Contexts) -> Contexts:
    """Return contexts with mean 0 and covariance I over the clients that have one, and an intercept behind, [n, d + 1].

    Z = (X - mean) C^-1/2, which leaves each feature as near to itself as it can be; what doesn't vary is 0.
    """
    some = np.isfinite(X).all(axis=1)
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
    """Rows that wait for their reward: who trained, and their contexts. first: it was the cohort of round 0."""

    clients: Ids
    X: Contexts
    first: bool
