"""TERM: Li, Beirami, Sanjabi, Smith, "Tilted Empirical Risk Minimization" (2021), tilted between clients.

    objective   (1/t) log sum_i p_i e^(t F_i)
    direction = sum_i w_i D_i,   w_i = p_i e^(t F_i(w_t)) / Z,   Z = sum_j p_j e^(t F_j(w_t)) over those who arrived
    smoothing s: divided by a running mean of Z instead, Z^ <- (1 - c) Z^ + c Z,   c = (1 - s) / (1 - s^r) in round r

t > 0 leans towards clients with high losses, t = 0 is FedAvg, t < 0 towards low ones (robust to outliers).

With `smoothing`, Z^ stands for the sum over all clients where few arrive, and weights sum to Z / Z^: more than 1 where
those who arrived have higher losses than those of late, 1 / (1 - s) at most; less where losses have fallen, if t > 0.
Only rounds in which somebody had a finite loss count.

With `loss_cap`, and fewer than half of those who arrive lying, w_i / w_j <= (p_i / p_j) e^(t loss_cap median(F)) for
t > 0, whatever client i claims. For t < 0 no cap is needed: nobody can claim less than 0, and w_i / w_j <= (p_i / p_j)
e^(-t F_j). With `smoothing` a claim stays in Z^: without a cap, a single huge one makes the steps of many rounds tiny.

`loss` chooses F_i (`agg/losses.py`); the weights are those of the objective's gradient with that of w_t alone.

Departures from the paper: its code divides by a running mean (s = 1/2) that starts at 0, so that the first round's
weights sum to 2, of e^(t (F - max F)), whose unit changes from round to round; and it averages the m models that these
weights make, so that its steps are 2/m and then about 1/m of ours (server.lr=1/m). Here weights sum to 1 every round,
or, with `smoothing`, in the first: c makes up for the start, and sums are kept as logarithms, not shifted. Clients
without a finite loss are left out; where nobody has one, the round is a plain mean.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedcohort import ranges
from fedcohort.agg import losses
from fedcohort.agg.base import Aggregator, Arrived, Direction, sample_weights
from fedcohort.component import CLEAN_LABELS, RELATIVE_ADVICE, Requirement
from fedcohort.types import Ids, Population, Values


@dataclass(frozen=True)
class State:
    """The running mean of the tilted sum, where it is smoothed.

    Attributes:
        log_mean: ln Z^, of `rounds` rounds; both are 0 before the first, and without smoothing.
    """

    log_mean: float
    rounds: int


@dataclass(frozen=True)
class Term(Aggregator[State]):
    """The aggregator, with its options.

    Attributes:
        tilt: t, per nat.
        smoothing: s, None for weights that sum to 1.
        weighting: p_i, as FedAvg's.
        loss, loss_cap: see `agg/losses.py`.
    """

    tilt: float
    loss: str
    smoothing: float | None
    weighting: str
    loss_cap: float | None

    stacked: ClassVar[bool] = True

    def __post_init__(self) -> None:
        ranges.number("tilt", self.tilt, "(-inf, inf)")
        ranges.choice("loss", self.loss, *losses.WORDS)
        ranges.number("smoothing", self.smoothing, "(0, 1)", optional=True)
        ranges.choice("weighting", self.weighting, "used", "samples", "uniform")
        ranges.number("loss_cap", self.loss_cap, "[1, inf)", optional=True)

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({self.loss})

    @property
    def recommendations(self) -> frozenset[Requirement]:
        return frozenset({CLEAN_LABELS} if self.tilt > 0 else ())

    @property
    def requirements(self) -> frozenset[Requirement]:
        return frozenset({RELATIVE_ADVICE})

    def init(self, population: Population, n_params: int) -> State:
        return State(0.0, 0)

    def weights(self, n_used: Ids, n_train: Ids) -> Values:
        return sample_weights(self.weighting, n_used, n_train)

    def direction(self, state: State, arrived: Arrived) -> tuple[Direction, State]:
        rows, F = losses.read_losses(arrived, self.loss, self.loss_cap)
        if not len(rows):
            return Direction(arrived.mean), state
        exponent = np.log(losses.shares(arrived, rows)) + self.tilt * F
        w = np.exp(exponent - exponent.max())
        log_Z, w = float(exponent.max() + np.log(w.sum())), w / w.sum()
        if self.smoothing is not None:
            state = self._update_mean(state, log_Z)
            w *= np.exp(log_Z - state.log_mean)
        return arrived.combine(losses.over_all(arrived, rows, w)), state

    def _update_mean(self, state: State, log_Z: float) -> State:
        """The running mean with this round's Z in it."""
        s, rounds = self.smoothing or 0.0, state.rounds + 1
        if rounds == 1:
            return State(log_Z, 1)
        c = (1 - s) / (1 - s**rounds)
        return State(float(np.logaddexp(state.log_mean + np.log1p(-c), log_Z + np.log(c))), rounds)
