"""Measure how evenly cohorts hold the classes, and choose cohorts that hold them evenly.

    effective classes of a set of clients:  1 / sum_c (share of class c)^2, between 1 and C
    greedy cohort:  begin with the least used client, then add argmin_k QCID(cohort and k) + penalty of k

QCID is the quadratic class imbalance of Fed-CBS (`maths/qcid.py`). The penalty of k grows with its earlier selections
beyond those of the least used client. Clients that balance a cohort nearly as well are therefore selected in turn.
"""

import numpy as np
from jaxtyping import Bool, Float64

from fedcohort.maths.qcid import class_imbalances
from fedcohort.types import Ids, Values

REUSE_PENALTY = 0.02  # of imbalance, for each use above that of the least used client
TIE_BREAKING_NOISE = 1e-9  # of imbalance, by which equal clients are told apart at random
N_RANDOM_COHORTS = 40

ClassCounts = Float64[np.ndarray, "_n _c"]


def effective_classes(class_counts: ClassCounts) -> Values:
    """Return the effective number of classes of each row of `class_counts` [n, C], [n]; 0 for a row without samples.

    It is 1 / sum p^2 with the class shares p of a row: C for even classes, 1 for a single class.
    """
    share_concentration = ((class_counts / np.maximum(class_counts.sum(1, keepdims=True), 1.0)) ** 2).sum(1)
    return np.asarray(np.where(share_concentration > 0, 1 / np.maximum(share_concentration, 1e-300), 0.0), np.float64)


def count_cohort_classes(
    class_counts: ClassCounts, in_pool: Bool[np.ndarray, "_n"], cohort_size: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Return the mean effective number of classes of random cohorts of a pool, and that of the whole pool.

    Args:
        class_counts: samples by client and class, [n, C].
        in_pool: whether each client is in the pool, from which cohorts are drawn, [n].
        cohort_size: number of clients of a cohort; the whole pool if it is smaller.
        rng: random generator of the cohorts.
    """
    pool_counts = class_counts[in_pool]
    drawn_size = min(cohort_size, len(pool_counts))
    class_counts_of_cohorts = [
        pool_counts[rng.permutation(len(pool_counts))[:drawn_size]].sum(0) for _ in range(N_RANDOM_COHORTS)
    ]
    return float(effective_classes(np.stack(class_counts_of_cohorts)).mean()), float(
        effective_classes(pool_counts.sum(0)[None])[0]
    )


def balance_cohort(
    class_counts: ClassCounts, n_selections: Ids, candidate_ids: Ids, cohort_size: int, rng: np.random.Generator
) -> Ids:
    """Return the sorted ids of a cohort of candidates whose samples are spread evenly over the classes.

    The cohort is chosen greedily, client by client, with a penalty for each earlier selection (`REUSE_PENALTY`).

    Args:
        class_counts: samples by client and class, [n, C].
        n_selections: number of times that each client was selected, [n].
        candidate_ids: sorted ids of the clients that may be chosen.
        cohort_size: number of clients to choose; all candidates are chosen if there are fewer.
        rng: random generator that breaks ties.
    """
    if not len(candidate_ids):
        return candidate_ids
    tie_noise = TIE_BREAKING_NOISE * rng.random(len(class_counts))
    reuse_penalties = REUSE_PENALTY * (n_selections - n_selections[candidate_ids].min()) + tie_noise
    chosen_ids: list[int] = []
    unchosen_ids, cohort_class_counts = candidate_ids, np.zeros(class_counts.shape[1])
    while len(chosen_ids) < min(cohort_size, len(candidate_ids)):
        cohort_imbalances = class_imbalances(class_counts[unchosen_ids], cohort_class_counts) if chosen_ids else 0.0
        best_candidate_position = int(np.argmin(cohort_imbalances + reuse_penalties[unchosen_ids]))
        chosen_ids.append(int(unchosen_ids[best_candidate_position]))
        cohort_class_counts = cohort_class_counts + class_counts[chosen_ids[-1]]
        unchosen_ids = np.delete(unchosen_ids, best_candidate_position)
    return np.sort(np.array(chosen_ids, dtype=np.int64))
