"""FedBalancer's loss threshold: how the server sets it, and what clients tell for it (Shin et al. 2022, Alg. 2 and 3).

    lt = ll + (lh - ll) ltr,   ll = min_i min loss_i,   lh = mean_i (80th percentile of loss_i)
    ltr: `maths/pace_control.py`

loss_i is the client's list: every sample's cross-entropy on the model of its first round, overwritten by what is seen
in the first local epoch of each round that it trains in. With OT = {x: loss_i(x) >= lt}, a selector that reads
`loss_count` and `loss_squares` gets |OT| and the sum of squared losses over OT (Sec. 3.2.3): selector=oort is then the
paper's client selection.

Departures from the paper:
- while ltr is 0 the threshold is 0, as in the code; it is never negative, which noise would make it;
- noise is drawn by the client, and is on |OT| and the squares as well; the code adds it at the server. Losses have no
  bound, so that no privacy can be claimed; with clip=C they are cut at C beforehand, and
  noise = C sqrt(2 ln(1.25 / delta)) / epsilon is the Gaussian mechanism for each of LLow and LHigh, with epsilon < 1.
  Rounds add up: `rho` is C^2 / noise^2 for each that a client's LLow and LHigh arrived in, of the client that told most
  often (zero-concentrated privacy, Bun and Steinke 2016, Prop. 1.6 and Lemma 2.3, of which epsilon = rho +
  2 sqrt(rho ln(1 / delta))). It is of these two numbers alone: |OT| and the squares change with a client's every loss,
  and sums of losses and the update itself are told without noise;
- what isn't a finite number is as if it had not been told;
- a list changes where the client's update is applied; who is late keeps its first look, and no more.

as_released=true does as the authors' code: ll and lh are of all rounds so far, and what a client tells is of its whole
list before training, with OT the losses above lt alone.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from fedcohort import ranges
from fedcohort.component import ANNOUNCED_DEADLINE, TIMED_DEVICE, Requirement
from fedcohort.ledger import NUMBER
from fedcohort.maths.pace_control import PaceControl, PaceState, utility
from fedcohort.samples.base import CLEAN_LABELS, SampleRequest, Samples
from fedcohort.types import Ids, Population, RoundOutcome, Values

HIGH = 80  # percentile of a list that is its high loss
TOLD = ("loss_low", "loss_high", "loss_count", "loss_squares")  # noise is on these


@dataclass(frozen=True)
class State:
    """What the server knows of the losses.

    Attributes:
        threshold: lt of the next round, in nats.
        low: ll, inf before the first arrival.
        high: sum of what lh is the mean of, and `told` their number.
        tellings: rounds in which each client's numbers arrived, [K].
    """

    pace: PaceState
    threshold: float
    low: float
    high: float
    told: int
    tellings: Ids


@dataclass(frozen=True)
class LossThreshold(Samples[State]):
    """Sample selection by a threshold, with its options.

    Attributes:
        w: rounds between the controller's decisions.
        lss: its step of ltr.
        p: share of the samples that is taken above the threshold.
        noise: standard deviation of what is added to each number told, in its unit.
        clip: losses are cut at so many nats before they are told, or null.
        as_released: as the authors' code.
    """

    w: int
    lss: float
    p: float
    noise: float
    clip: float | None
    as_released: bool

    keeps_losses: ClassVar[bool] = True
    tells_losses: ClassVar[bool] = True
    needs: ClassVar[frozenset[str]] = frozenset({"loss_low", "loss_high", "loss_sum", "n_used"})
    bytes_down: ClassVar[int] = NUMBER  # the threshold
    requirements: ClassVar[frozenset[Requirement]] = frozenset({ANNOUNCED_DEADLINE, TIMED_DEVICE})
    recommendations: ClassVar[frozenset[Requirement]] = frozenset({CLEAN_LABELS})

    def __post_init__(self) -> None:
        _ = self.control  # checks the ranges
        ranges.number("p", self.p, "[0, 1]")
        ranges.number("noise", self.noise, "[0, inf)")
        ranges.number("clip", self.clip, "(0, inf)", optional=True)
        ranges.flag("as_released", self.as_released)

    @property
    def control(self) -> PaceControl:
        return PaceControl(self.w, lss=self.lss)

    def notices(self, choice: str) -> Sequence[str]:
        """Say what noise does to a minimum."""
        if not self.noise:
            return ()
        low = "the lowest loss that is heard is below the lowest there is, the more clients the further"
        return (f"samples.noise={self.noise} leaves the threshold of samples={choice} lower: {low}",)

    def init(self, population: Population) -> State:
        """No loss is known, and the threshold is 0."""
        return State(self.control.start(), 0.0, math.inf, 0.0, 0, np.zeros(population.n_clients, dtype=np.int64))

    def tell(self, state: State, request: SampleRequest, losses: Values) -> Mapping[str, float]:
        """Return LLow, LHigh, |OT| and the sum of squares over OT, each with noise where it is asked for."""
        known = request.losses if self.as_released else losses
        known = known if self.clip is None else np.minimum(known, self.clip)
        over = known[known > state.threshold] if self.as_released else known[known >= state.threshold]
        with np.errstate(invalid="ignore"):  # between two infinite losses, of a model that diverges
            low, high = float(known.min()), float(np.percentile(known, HIGH))
        told = dict(zip(TOLD, (low, high, float(len(over)), float(over @ over)), strict=True))
        if self.noise:
            drawn = request.rng("metadata").standard_normal(len(TOLD))
            told = {word: told[word] + self.noise * float(z) for word, z in zip(TOLD, drawn, strict=True)}
            told |= {word: max(0.0, told[word]) for word in ("loss_count", "loss_squares")}
        whole = {"loss_sum": float(known.sum()), "n_used": float(len(known))} if self.as_released else {}
        return told | whole

    def describe(self, state: State) -> Mapping[str, float]:
        """Return lt in nats and ltr; and what of privacy is spent (`rho` above) where noise is on what is bounded."""
        found = {"threshold": state.threshold, "ltr": state.pace.ltr}
        if self.noise and self.clip is not None:
            found["rho"] = int(state.tellings.max()) * (self.clip / self.noise) ** 2
        return found

    def observe(self, state: State, outcome: RoundOutcome) -> State:
        """Control the ratio (Alg. 3), then set the threshold from what was told (Alg. 2)."""
        if not len(outcome.clients):
            return state
        told, tellings = outcome.signals, state.tellings.copy()
        tellings[outcome.clients] += 1
        pace = self.control.observe(state.pace, utility(told["loss_sum"], told["n_used"], outcome.announced_s))
        sound = np.isfinite(told["loss_low"]) & np.isfinite(told["loss_high"])
        lows, highs = told["loss_low"][sound], told["loss_high"][sound]
        low, high, count = float(lows.min(initial=math.inf)), float(highs.sum()), len(lows)
        if self.as_released or not count:
            low, high, count = min(low, state.low), high + state.high, count + state.told
        found = State(pace, 0.0, low, high, count, tellings)
        return replace(found, threshold=threshold(low, high / count, pace.ltr)) if count else found


def threshold(low: float, high: float, ltr: float) -> float:
    """Return lt in nats, at least 0 (Alg. 2); `low` where noise has put it above `high`, 0 while ltr is."""
    return max(0.0, low + max(high - low, 0.0) * ltr) if ltr > 0 else 0.0


def draw(over: np.ndarray, count: int, p: float, rng: np.random.Generator) -> Ids:
    """Draw `count` positions, a share p of them above the threshold; one group fills in for the other.

    Args:
        over: whether each sample is above the threshold, bool [n].
        count: of samples, at most n.
        p: share of those above, rounded up.
        rng: the client's.
    """
    above, below = np.flatnonzero(over), np.flatnonzero(~over)
    easy = min(len(below), math.floor(count * (1 - p) + 1e-9))
    hard = min(len(above), count - easy)
    easy = min(len(below), count - hard)
    return np.sort(np.concatenate([rng.choice(above, hard, replace=False), rng.choice(below, easy, replace=False)]))
