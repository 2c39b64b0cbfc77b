"""A cohort whose parts of the data are even: one client after the other, who brings the cohort nearest to equal counts.

    S_1 = a client by chance,   S_{j+1} = S_j + argmin_k sum_c (share of part c in S_j + k, less 1/C)^2

With chance among equals, and a first client that is anybody, cohorts differ from round to round. What the greedy choice
finds need not be the most balanced cohort there is. Clients that failed three times in a row
are withheld for a while (`round/backoff.py`). A client without samples is taken last.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedcohort.maths.qcid import qcid
from fedcohort.selector.base import Selector, Stateless, top
from fedcohort.types import Population, ProbeResult, RoundContext, Selection


@dataclass(frozen=True)
class EvenCohort(Selector[Stateless]):
    """A selector that knows how many samples of each part a client has. A score is its own negative imbalance.

    Attributes:
        counts: the signal of them, [n_clients, C].
    """

    counts: ClassVar[str]
    backs_off: ClassVar[bool] = True

    def init(self, population: Population) -> Stateless:
        return Stateless()

    def select(
        self, state: Stateless, ctx: RoundContext, probes: Mapping[str, ProbeResult]
    ) -> tuple[Selection, Stateless]:
        h = ctx.signals[self.counts].astype(float)
        filled, left, together = h.sum(1) > 0, ctx.available, np.zeros(h.shape[1])
        chosen: list[int] = []
        while len(chosen) < min(ctx.cohort, len(ctx.available)):
            scores = np.where(filled, -qcid(h, together) if chosen else 0.0, -np.inf)
            (k,) = top(scores, left, 1, ctx.rng).tolist()
            chosen.append(k)
            left, together = left[left != k], together + h[k]
        return Selection(np.sort(np.array(chosen, dtype=np.int64)), -qcid(h)), state
