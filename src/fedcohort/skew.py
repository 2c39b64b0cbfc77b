"""How unevenly classes and attributes are spread: FedDiverse, Eq. 2-4 of one data set, Eq. 5-10 of a federation.

    CI = 1 - H(Y) / ln |Y|,   AI = 1 - H(A) / ln |A|,   SC = 2 I(Y; A) / (H(Y) + H(A))        each in [0, 1]

N[y, a] counts the samples of class y with attribute a. Entropies are in nats, 0 ln 0 = 0, |Y| and |A| are the numbers
of rows and columns, empty ones too. Nothing varies where H(Y) + H(A) = 0, and then SC is 0.
"""

import math

import numpy as np
from jaxtyping import Float64, Shaped

COMPONENTS = ("ci", "ai", "sc")
ZERO = 1e-12  # nats


def entropy(p: Float64[np.ndarray, "n"]) -> float:
    """In nats; p sums to 1."""
    p = p[p > 0]
    return float(-(p * np.log(p)).sum())


def triplet(N: Shaped[np.ndarray, "classes attributes"]) -> Float64[np.ndarray, "3"]:
    """(CI, AI, SC) of a count matrix, the data heterogeneity triplet; NaN where it counts nothing."""
    total = float(N.sum())
    if total <= 0:
        return np.full(3, np.nan)
    P = N.astype(np.float64) / total
    H_y, H_a = entropy(P.sum(1)), entropy(P.sum(0))
    information = max(0.0, H_y + H_a - entropy(P.ravel()))
    sc = 2 * information / (H_y + H_a) if H_y + H_a > ZERO else 0.0
    values = np.array([_imbalance(H_y, len(P)), _imbalance(H_a, P.shape[1]), sc])
    return values.clip(0.0, 1.0)


def _imbalance(entropy: float, count: int) -> float:
    """A single class can't be out of balance."""
    return 1 - entropy / math.log(count) if count > 1 else 0.0


def triplets(counts: Shaped[np.ndarray, "clients classes attributes"]) -> Float64[np.ndarray, "clients 3"]:
    """The triplet of each client."""
    return np.stack([triplet(N) for N in counts])


def metrics(counts: Shaped[np.ndarray, "clients classes attributes"]) -> dict[str, float]:
    """Eq. 5-7, `global_ci` and so on, of all data together; Eq. 8-10, `client_ci`, means over clients with samples."""
    each = triplets(counts[counts.sum((1, 2)) > 0])
    values = {"global": triplet(counts.sum(0)), "client": each.mean(0) if len(each) else np.full(3, np.nan)}
    return {
        f"{level}_{name}": float(v) for level, row in values.items() for name, v in zip(COMPONENTS, row, strict=True)
    }
