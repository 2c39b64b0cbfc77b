"""Oort: prefers clients of high loss, discounts slow ones, and tries new ones beside them (Lai et al. 2021).

Lai, Zhu, Madhyastha, Chowdhury, "Oort: Efficient Federated Learning via Guided Participant Selection" (OSDI 2021); the
order of steps as in its code in FedScale.

    U_k = |B_k| sqrt(1/|B_k| sum over B_k of loss^2),   B_k the samples of k's first local epoch, when last trained
    A_k = (norm(min(U_k, c)) + sqrt(.1 ln R / last_k)) (T / t_k)^(alpha [t_k > T])        for k that has trained
    S = eps m clients that have not, drawn by 1 / expected seconds, and (1 - eps) m with A_k >= cutoff x the
        (1 - eps) m-th largest, drawn by A_k;   eps <- max(decay eps, eps_min)
    every W rounds: T <- T + Delta where the sum of U over the last W rounds is below that of the W before   (pacer)

R counts rounds from 1, last_k is k's last round, t_k the seconds it took, c a high quantile of U, and
norm(u) = (u - .999 min U) / max(max U - .999 min U, 1e-4).

Departures from the paper:
- the text adds the term of last_k to U itself, where it is negligible; the code normalises U first, and so is it here,
  with the extremes before clipping;
- T is a percentile of all durations (the expected where a client never trained), as in the code, or seconds;
- eps_min, clip and cutoff are the text's .2, .95 and .95; the code's are .3, .9 and a cut_off_util of .05, which admits
  nearly everybody;
- eps m is rounded down, as in FedScale, but one is tried as long as anybody is new: of a cohort below five nobody would
  be, once eps is .2. The authors' first code (oort/oort.py) rounds it up;
- extremes and c are of those who have trained; the code mixes in the others, with their number of samples for U;
- the n-th largest is the n-th; the code takes the one after, and fails where there is none;
- nobody is returned by both halves, nor left over from an earlier round, once everybody has trained;
- the pacer relaxes where utility falls; in the code (pacer=code) where it changes by no more than a tenth, and
  tightens where it changes fivefold. The code decides a round earlier, and by mean utilities of the exploited alone;
- the code explores by data size and duration (explore=size), among five times as many of the largest as it needs;
- a cap on a client's rounds (cap) is off, as in the code: with few clients it soon excludes everybody, of whom the code
  never excludes more than three in ten, and each a round later;
- a client that fails counts as never asked, and three times in a row withhold it for a while (`round/backoff.py`); the
  code books it as trained, at the round's mean utility. Who reports nonsense is taken only where too few others are
  left;
- asking more clients than needed is the deadline's affair; the pacer moves T, which is no deadline, and goes with any.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from fedcohort.component import CLEAN_LABELS, Requirement
from fedcohort.selector.base import Selector
from fedcohort.selector.ranking import Ranking, State
from fedcohort.types import Population, ProbeResult, RoundContext, RoundOutcome, Selection


@dataclass(frozen=True)
class Oort(Ranking, Selector[State]):
    """The selector; its options are those of `Ranking`."""

    backs_off: ClassVar[bool] = True
    recommendations: ClassVar[frozenset[Requirement]] = frozenset({CLEAN_LABELS})

    def init(self, population: Population) -> State:
        return self.start(population)

    def select(self, state: State, ctx: RoundContext, probes: Mapping[str, ProbeResult]) -> tuple[Selection, State]:
        return self.rank(state, ctx)

    def observe(self, state: State, outcome: RoundOutcome) -> tuple[None, State]:
        return None, self.learn(state, outcome)
