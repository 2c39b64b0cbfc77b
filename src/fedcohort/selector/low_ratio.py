"""The low half, a plain rule on FLASH's context: a cohort by chance out of those whose training loss has fallen most.

    ratio_i = L_i(w_t) / L_i(w_0)     L the mean cross-entropy on T_i, of w_t since i first answered
    S = m of the max(m, ceil(share A)) lowest of the A available clients, drawn by chance      (`pool.py`)

Of no paper: it learns nothing, and reads one of the four features that FLASH's bandit reads, at FLASH's price: all who
are available are asked in every round, beside its training. Wrong labels keep a ratio up: where FLASH wins less
than this rule, it doesn't lack information. The first round is everybody's, as FLASH's is; who never answered is taken
last. Clients that failed three times in a row are withheld for a while (`round/backoff.py`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedcohort import ranges
from fedcohort.selector import pool
from fedcohort.selector.base import Selector, answers, begins_with_all
from fedcohort.selector.contexts import Baseline
from fedcohort.types import Population, Probe, ProbeResult, RoundContext, RoundOutcome, Selection


@dataclass(frozen=True)
class State:
    """What changes between rounds.

    Attributes:
        train: the ratios.
    """

    train: Baseline


@dataclass(frozen=True)
class LowRatio(Selector[State]):
    """The rule, with its option. A score is the negative ratio.

    Attributes:
        share: of the available clients that are drawn from, those of the lowest ratios.
    """

    share: float

    backs_off: ClassVar[bool] = True
    needs: ClassVar[frozenset[str]] = frozenset({"loss"})

    def __post_init__(self) -> None:
        ranges.number("share", self.share, "[0, 1]")

    def notices(self, choice: str) -> Sequence[str]:
        return (begins_with_all(choice),)

    def init(self, population: Population) -> State:
        K = population.n_clients
        return State(Baseline(np.full(K, np.nan), np.full(K, np.nan)))

    def plan(self, state: State, ctx: RoundContext) -> Sequence[Probe]:
        return (Probe("loss", ctx.ready, concurrent=True),)

    def select(self, state: State, ctx: RoundContext, probes: Mapping[str, ProbeResult]) -> tuple[Selection, State]:
        if ctx.round == 0:
            return Selection(ctx.available, uncapped=True), state
        return pool.choose(-state.train.ratio, self.share, ctx), state

    def observe(self, state: State, outcome: RoundOutcome) -> tuple[None, State]:
        train = state.train.after(answers(outcome.probes, "loss"))
        return None, State(train)
