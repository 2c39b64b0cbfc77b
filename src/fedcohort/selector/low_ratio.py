"""Low-ratio rule: a uniform draw from the clients whose training loss has decreased most.

Not from a paper. It reads one of the four features of FLASH's context and learns nothing, as a reference for FLASH.

    ratio:  L_i(w_t) / L_i(w_0), L the mean cross-entropy on the training set of i, w_0 the model of its first answer
    S:  m clients drawn uniformly from the max(m, ceil(share A)) lowest ratios of the A available clients (`pool.py`)

Its queries cost as much as FLASH's: all ready clients are queried in every round, concurrent with training. Label
noise keeps a client's ratio high. Where FLASH is not better than this rule, its context is not what limits it. All
clients train in the first round, as in FLASH; a client that never answered ranks last. A client that failed three times
in a row is withheld for some rounds (`round/backoff.py`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedcohort import ranges
from fedcohort.selector import pool
from fedcohort.selector.base import Selector, find_answers, first_round_notice
from fedcohort.selector.contexts import LossRatios
from fedcohort.types import Population, Probe, ProbeResult, RoundContext, RoundOutcome, Selection


@dataclass(frozen=True)
class State:
    """State of the low-ratio selector that is kept between rounds.

    Attributes:
        train: first loss of each client, and ratio of its latest loss to its first.
    """

    train: LossRatios


@dataclass(frozen=True)
class LowRatio(Selector[State]):
    """A selector of clients whose loss has fallen most since their first report; the score is minus the loss ratio.

    Attributes:
        share: share of the available clients from which cohorts are drawn, those with the lowest loss ratios.
    """

    share: float

    backs_off: ClassVar[bool] = True
    needs: ClassVar[frozenset[str]] = frozenset({"loss"})

    def __post_init__(self) -> None:
        ranges.number("share", self.share, "[0, 1]")

    def notices(self, selector_name: str) -> Sequence[str]:
        return (first_round_notice(selector_name),)

    def init(self, population: Population) -> State:
        K = population.n_clients
        return State(LossRatios(np.full(K, np.nan), np.full(K, np.nan)))

    def plan(self, state: State, ctx: RoundContext) -> Sequence[Probe]:
        return (Probe("loss", ctx.ready, concurrent=True),)

    def select(self, state: State, ctx: RoundContext, probes: Mapping[str, ProbeResult]) -> tuple[Selection, State]:
        if ctx.round == 0:
            return Selection(ctx.available, uncapped=True), state
        return pool.draw_from_pool(-state.train.ratio, self.share, ctx), state

    def observe(self, state: State, outcome: RoundOutcome) -> tuple[None, State]:
        return None, State(state.train.with_loss_answers(find_answers(outcome.probes, "loss")))
