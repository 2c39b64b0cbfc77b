"""Oort: clients with high losses and short durations, next to an exploration of new clients (Lai et al. 2021).

Lai, Zhu, Madhyastha, Chowdhury, "Oort: Efficient Federated Learning via Guided Participant Selection", OSDI 2021, arXiv
2010.06081. The order of steps is that of its code in FedScale.

    utility:  U_k = |B_k| sqrt(1/|B_k| sum over B_k of loss^2)
    score:  A_k = (norm(min(U_k, c)) + sqrt(.1 ln R / last_k)) (T / t_k)^(alpha [t_k > T])
    exploration:  eps m clients that never trained, drawn in proportion to 1 / expected seconds
    exploitation:  (1 - eps) m others, drawn in proportion to A_k, of those above cutoff x the (1 - eps) m-th largest
    before a round's first selection:  eps <- max(decay eps, eps_min)
    pacer, every W rounds:  T <- T + Delta where the sum of U over the last W rounds is below that of the W before
    norm(u):  (u - .999 min U) / max(max U - .999 min U, 1e-4)

B_k are the samples of k's first local epoch when it last trained. R counts rounds from 1. last_k is k's last round, t_k
its duration in seconds, and c a high quantile of U.

Departures from the paper:
- The text adds the staleness term to U itself, where it is negligible. The code normalises U first, as is done here,
  with the extremes before clipping.
- T is a percentile of all durations, as in the code, or a number of seconds. The expected duration stands in for
  clients that never trained.
- eps_min, clip and cutoff are the text's .2, .95 and .95. The code has .3, .9 and a cut_off_util of .05, which admits
  nearly all clients.
- eps m is rounded down, as in FedScale, but one client explores as long as any is new: a cohort below five would
  otherwise explore none at eps = .2. The authors' first code (oort/oort.py) rounds it up. While other clients work
  (deadline=buffered), selections have few places: eps m is then rounded up with the probability of its fraction.
- The extremes and c are taken over clients that have trained. The code includes the others, with their number of
  samples as U.
- The n-th largest score is the n-th. The code takes the next one, and fails where there is none.
- No client is chosen by both halves, or kept from an earlier round, after all have trained.
- The pacer relaxes T where the utility falls. In the code (pacer=code) it relaxes where the utility changes by at most
  a tenth, and tightens where it changes by at least five times its former value. The code also decides one round
  earlier, on mean utilities of the exploited clients.
- The code explores by data size and duration (explore=size), among five times as many of the largest clients as needed.
- A cap on a client's rounds (cap) is off, as in the code: with few clients it soon excludes all. The code never
  excludes more than three in ten clients, and does so one round later.
- A failed client counts as not selected, and three failures in a row withhold it for some rounds (`round/backoff.py`).
  The code records it as trained, with the round's mean utility.
- A client with an invalid report is chosen only where too few others are left.
- Over-commitment belongs to the deadline (deadline=over_commit). The pacer moves T, which is not a deadline, and can be
  combined with any.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from fedcohort.component import CLEAN_LABELS, Requirement
from fedcohort.selector.base import Selector
from fedcohort.selector.ranking import RankingOptions, State
from fedcohort.types import Population, ProbeResult, RoundContext, RoundOutcome, Selection


@dataclass(frozen=True)
class Oort(RankingOptions, Selector[State]):
    """Oort, a client selector: it ranks clients by loss, staleness and speed (`RankingOptions` has its options)."""

    backs_off: ClassVar[bool] = True
    recommendations: ClassVar[frozenset[Requirement]] = frozenset({CLEAN_LABELS})

    def init(self, population: Population) -> State:
        return self.initial_state(population)

    def select(self, state: State, ctx: RoundContext, probes: Mapping[str, ProbeResult]) -> tuple[Selection, State]:
        return self.select_by_score(state, ctx)

    def observe(self, state: State, outcome: RoundOutcome) -> tuple[None, State]:
        return None, self.store_client_reports(state, outcome)
