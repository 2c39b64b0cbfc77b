"""REFL: the clients that will be available least in the next round come first (Abdelmoniem et al. 2023).

Abdelmoniem, Sahu, Canini, Fahmy, "REFL: Resource-Efficient Federated Learning", EuroSys 2023, arXiv 2111.01108, its
intelligent participant selection (IPS) and adaptive participant target (APT).

    slot:  mu_t = (1 - alpha) D_(t-1) + alpha mu_(t-1),  mu_1 = D_0
    forecast:  p_k, the probability that client k is available from mu_t to 2 mu_t after now
    selection:  the m clients with the smallest p_k, ties at random
    adaptive:  m_t = max(1, m - number of late updates that are expected within mu_t)

D_t is the duration of round t. A client that is about to leave is selected now, while others can be selected later. The
aggregation of late updates is agg=refl with deadline=fixed deadline.late_updates=carry. The rule rests on the abstract
and on released code. The full text was not read.

Every available client is queried in every round but the first, which is charged (`signal/availability_forecast.py`).
If all forecasts are equal, as with availability=always, clients are drawn uniformly.

Departures from the paper:
- The code prefers the clients that are available during all of [0, mu) and not during all of [mu, 2 mu), and draws the
  others uniformly. Here the forecast is the share of [mu, 2 mu), a number in [0, 1].
- The simulated forecast is exact. With `accuracy` below 1 some are used as 1 - p_k. The code with this option
  excludes clients instead.
- Clients are drawn uniformly in the first round, which has no duration before it. The code assumes one.
- A client that failed three times in a row is withheld for some rounds (`round/backoff.py`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedcohort import ranges
from fedcohort.component import ADVANCING_CLOCK, LATE_UPDATES, Requirement
from fedcohort.selector.base import Selector, find_answers, top
from fedcohort.types import Population, Probe, ProbeResult, RoundContext, RoundOutcome, Selection

AVAILABILITY_REQUIREMENT = Requirement(
    lambda facts: not facts.components.availability.always,
    "{option} prefers clients that will soon be unavailable, and with {availability} all are always available, so that "
    "it draws uniformly: choose availability=diurnal or availability=trace",
)


@dataclass(frozen=True)
class State:
    """State of REFL that is kept between rounds.

    Attributes:
        slot_s: running mean of the rounds' durations in virtual seconds; NaN before the first.
    """

    slot_s: float


@dataclass(frozen=True)
class Refl(Selector[State]):
    """REFL's participant selection, a client selector: it prefers clients that will be unavailable soon.

    Attributes:
        alpha: weight of the past in the mean duration of a round.
        accuracy: probability that a client's availability forecast is used as it is, and not 1 minus the forecast.
        adaptive: whether the cohort is reduced by the number of late updates that are expected within the mean
            duration of a round.
    """

    alpha: float
    accuracy: float
    adaptive: bool

    may_choose_fewer: ClassVar[bool] = True
    backs_off: ClassVar[bool] = True
    needs: ClassVar[frozenset[str]] = frozenset({"availability_forecast"})

    def __post_init__(self) -> None:
        ranges.number("alpha", self.alpha, "[0, 1)")
        ranges.number("accuracy", self.accuracy, "[0, 1]")
        ranges.flag("adaptive", self.adaptive)

    @property
    def recommendations(self) -> frozenset[Requirement]:
        return frozenset({ADVANCING_CLOCK, AVAILABILITY_REQUIREMENT, *((LATE_UPDATES,) if self.adaptive else ())})

    def init(self, population: Population) -> State:
        return State(float("nan"))

    def plan(self, state: State, ctx: RoundContext) -> Sequence[Probe]:
        if not state.slot_s > 0:
            return ()
        return [Probe("availability_forecast", ctx.available, {"start_s": state.slot_s, "end_s": 2 * state.slot_s})]

    def select(self, state: State, ctx: RoundContext, probes: Mapping[str, ProbeResult]) -> tuple[Selection, State]:
        forecast_shares = find_answers(probes, "availability_forecast").dense(ctx.n_clients, fill_value=1.0)
        is_forecast_inverted = ctx.rng.random(ctx.n_clients) >= self.accuracy
        scores = np.where(is_forecast_inverted, forecast_shares, 1.0 - forecast_shares)
        n_late_updates = int((ctx.in_flight_s <= state.slot_s).sum()) if self.adaptive else 0
        return Selection(top(scores, ctx.available, max(1, ctx.cohort - n_late_updates), ctx.rng), scores), state

    def observe(self, state: State, outcome: RoundOutcome) -> tuple[None, State]:
        mean_round_s = state.slot_s if state.slot_s > 0 else outcome.round_s
        return None, State((1 - self.alpha) * outcome.round_s + self.alpha * mean_round_s)
