"""FedDiverse's metrics of skew: Eq. 2-4 of one dataset, Eq. 5-10 of a federation.

    CI = 1 - H(Y) / ln |Y|,   AI = 1 - H(A) / ln |A|,   SC = 2 I(Y; A) / (H(Y) + H(A))        each in [0, 1]

CI is the class imbalance, AI the attribute imbalance, SC the spurious correlation. N[y, a] counts the samples of class
y with attribute a. Entropies are in nats, with 0 ln 0 = 0. |Y| and |A| are the numbers of rows and columns, including
empty ones. SC is 0 if H(Y) + H(A) = 0.
"""

import math

import numpy as np
from jaxtyping import Float64, Shaped

SKEW_METRIC_NAMES = ("ci", "ai", "sc")
MIN_ENTROPY = 1e-12  # nats; smaller values are rounding errors of 0


def compute_entropy(p: Float64[np.ndarray, "*_k _n"]) -> Float64[np.ndarray, "*_k"]:
    """Return the entropy in nats of the probabilities `p` along the last axis; NaN if a probability is NaN."""
    log_p = np.log(p, out=np.zeros_like(p), where=p > 0)
    return np.asarray(-(p * log_p).sum(-1))


def skew_triplets(group_counts: Shaped[np.ndarray, "clients classes attributes"]) -> Float64[np.ndarray, "clients 3"]:
    """Return class imbalance, attribute imbalance and spurious correlation of each client, in [0, 1], [K, 3].

    Args:
        group_counts: samples by client, class and attribute; a client without samples gets NaN.
    """
    n_samples = group_counts.sum((1, 2), keepdims=True).astype(np.float64)
    P = group_counts / np.where(n_samples > 0, n_samples, np.nan)
    H_y, H_a = compute_entropy(P.sum(2)), compute_entropy(P.sum(1))
    H_sum = H_y + H_a
    mutual_information = np.maximum(0.0, H_sum - compute_entropy(P.reshape(len(P), -1)))
    has_entropy = H_sum > MIN_ENTROPY
    spurious_correlation = np.where(
        has_entropy, 2 * mutual_information / np.where(has_entropy, H_sum, 1.0), 0.0 * H_sum
    )  # NaN stays NaN
    return np.stack([_imbalance(H_y, P.shape[1]), _imbalance(H_a, P.shape[2]), spurious_correlation], axis=1).clip(
        0.0, 1.0
    )


def skew_triplet(N: Shaped[np.ndarray, "classes attributes"]) -> Float64[np.ndarray, "3"]:
    """Return class imbalance, attribute imbalance and spurious correlation of one dataset, in [0, 1], [3].

    Args:
        N: samples by class and attribute.
    """
    return np.asarray(skew_triplets(N[None])[0])


def class_imbalance(class_counts: Shaped[np.ndarray, "classes"]) -> float:
    """Return 1 - entropy / ln(classes) of the class shares of one dataset, in [0, 1]; NaN without samples.

    Args:
        class_counts: samples of each class.
    """
    return float(skew_triplet(class_counts[:, None])[0])


def _imbalance(entropy_nats: Float64[np.ndarray, "clients"], n_categories: int) -> Float64[np.ndarray, "clients"]:
    """Return the imbalance 1 - `entropy_nats` / ln(n_categories) of each client, [K]; 0 for a single category."""
    return 1 - entropy_nats / math.log(n_categories) if n_categories > 1 else 0.0 * entropy_nats


def skew_metrics(group_counts: Shaped[np.ndarray, "clients classes attributes"]) -> dict[str, float]:
    """Return the skew metrics of a federation by name, from the samples `group_counts` by client, class and attribute.

    `global_ci`, `global_ai` and `global_sc` (Eq. 5-7) are class imbalance, attribute imbalance and spurious correlation
    of the pooled data. `client_ci`, `client_ai` and `client_sc` (Eq. 8-10) are means over the clients with samples.
    """
    client_skew_triplets = skew_triplets(group_counts[group_counts.sum((1, 2)) > 0])
    triplets_by_level = {
        "global": skew_triplet(group_counts.sum(0)),
        "client": client_skew_triplets.mean(0) if len(client_skew_triplets) else np.full(3, np.nan),
    }
    return {
        f"{skew_level}_{skew_name}": float(v)
        for skew_level, metric_triplet in triplets_by_level.items()
        for skew_name, v in zip(SKEW_METRIC_NAMES, metric_triplet, strict=True)
    }
