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
    """A selector that balances the cohort's samples over classes, or over groups of samples.

    A client's score is minus the imbalance of the client's samples.

    Attributes:
        sample_counts_signal: signal with each client's number of samples per class or group, [n_clients, classes].
    """

    sample_counts_signal: ClassVar[str]
    backs_off: ClassVar[bool] = True

    def select(
        self, state: Stateless, ctx: RoundContext, probes: Mapping[str, ProbeResult]
    ) -> tuple[Selection, Stateless]:
        class_counts = ctx.signals[self.sample_counts_signal].astype(float)
        has_samples = class_counts.sum(1) > 0
        remaining_ids = ctx.available
        cohort_class_counts = np.zeros(class_counts.shape[1])
        chosen_ids: list[int] = []
        while len(chosen_ids) < min(ctx.cohort, len(ctx.available)):
            imbalances_with_client = class_imbalances(class_counts, cohort_class_counts) if chosen_ids else 0.0
            (k,) = top(np.where(has_samples, -imbalances_with_client, -np.inf), remaining_ids, 1, ctx.rng).tolist()
            chosen_ids.append(k)
            remaining_ids = remaining_ids[remaining_ids != k]
            cohort_class_counts += class_counts[k]
        return Selection(np.sort(np.array(chosen_ids, dtype=np.int64)), -class_imbalances(class_counts)), state
