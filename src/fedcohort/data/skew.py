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


def entropy(p: Float64[np.ndarray, "*_k _n"]) -> Float64[np.ndarray, "*_k"]:
    """Return the entropy in nats, along the last axis; p sums to 1 there. NaN where it holds one."""
    log = np.log(p, out=np.zeros_like(p), where=p > 0)
    return np.asarray(-(p * log).sum(-1))


def triplets(counts: Shaped[np.ndarray, "clients classes attributes"]) -> Float64[np.ndarray, "clients 3"]:
    """Return (CI, AI, SC) of each client's count matrix, the data heterogeneity triplet, [K, 3].

    NaN where a matrix counts nothing.
    """
    total = counts.sum((1, 2), keepdims=True).astype(np.float64)
    P = counts / np.where(total > 0, total, np.nan)
    H_y, H_a = entropy(P.sum(2)), entropy(P.sum(1))
    both = H_y + H_a
    information = np.maximum(0.0, both - entropy(P.reshape(len(P), -1)))
    sc = np.where(both > ZERO, 2 * information / np.where(both > ZERO, both, 1.0), 0.0 * both)
    values = np.stack([_imbalance(H_y, P.shape[1]), _imbalance(H_a, P.shape[2]), sc], axis=1)
    return values.clip(0.0, 1.0)


def triplet(N: Shaped[np.ndarray, "classes attributes"]) -> Float64[np.ndarray, "3"]:
    """The triplet of one count matrix."""
    return np.asarray(triplets(N[None])[0])


def class_imbalance(counts: Shaped[np.ndarray, "classes"]) -> float:
    """CI of one data set; NaN where it has no samples."""
    return float(triplet(counts[:, None])[0])


def _imbalance(entropy: Float64[np.ndarray, "clients"], count: int) -> Float64[np.ndarray, "clients"]:
    """A single class can't be out of balance."""
    return 1 - entropy / math.log(count) if count > 1 else 0.0 * entropy


def metrics(counts: Shaped[np.ndarray, "clients classes attributes"]) -> dict[str, float]:
    """Eq. 5-7, `global_ci` and so on, of all data together; Eq. 8-10, `client_ci`, means over clients with samples."""
    each = triplets(counts[counts.sum((1, 2)) > 0])
    values = {"global": triplet(counts.sum(0)), "client": each.mean(0) if len(each) else np.full(3, np.nan)}
    return {
        f"{level}_{name}": float(v) for level, row in values.items() for name, v in zip(COMPONENTS, row, strict=True)
    }
