"""Balanced cohorts: clients are added one by one so that the cohort's counts per class or group become equal.

    S_1:  a random client
    S_{j+1}:  S_j + argmin_k sum_c (share of c in S_j + k, less 1/C)^2

Ties are broken at random, so that cohorts differ between rounds. The greedy choice need not find the best balanced
cohort. A client without samples ranks last. A client that failed three times in a row is withheld for some rounds
(`round/backoff.py`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedcohort.maths.qcid import class_imbalances
from fedcohort.selector.base import Stateless, StatelessSelector, top
from fedcohort.types import ProbeResult, RoundContext, Selection


@dataclass(frozen=True)
class BalancedCohort(StatelessSelector):
    """A selector that knows how many samples of each class or group a client has; scores are negative imbalances.

    Attributes:
        counts: name of the signal of these counts, [n_clients, C].
    """

    counts: ClassVar[str]
    backs_off: ClassVar[bool] = True

    def select(
        self, state: Stateless, ctx: RoundContext, probes: Mapping[str, ProbeResult]
    ) -> tuple[Selection, Stateless]:
        h = ctx.signals[self.counts].astype(float)
        has_samples, remaining, cohort_counts = h.sum(1) > 0, ctx.available, np.zeros(h.shape[1])
        chosen: list[int] = []
        while len(chosen) < min(ctx.cohort, len(ctx.available)):
            scores = np.where(has_samples, -class_imbalances(h, cohort_counts) if chosen else 0.0, -np.inf)
            (k,) = top(scores, remaining, 1, ctx.rng).tolist()
            chosen.append(k)
            remaining, cohort_counts = remaining[remaining != k], cohort_counts + h[k]
        return Selection(np.sort(np.array(chosen, dtype=np.int64)), -class_imbalances(h)), state
