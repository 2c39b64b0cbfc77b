"""TERM: empirical risk tilted between clients (Li et al. 2021).

Li, Beirami, Sanjabi, Smith, "Tilted Empirical Risk Minimization", ICLR 2021, arXiv 2007.01162.

    objective:  (1/t) log sum_i p_i e^(t F_i)
    weights:  w_i = p_i e^(t F_i(w_t)) / Z, Z = sum_j p_j e^(t F_j(w_t)) over the clients that arrived
    direction:  sum_i w_i D_i
    smoothing s:  Z is replaced by Z^ <- (1 - c) Z^ + c Z, c = (1 - s) / (1 - s^r) in round r

t > 0 favours clients with high losses, t = 0 is FedAvg, t < 0 favours low losses (robust to outliers). `loss` chooses
F_i (`agg/losses.py`): only F_i(w_t) gives the objective's gradient.

With smoothing, Z^ estimates the sum over all clients where few arrive. The weights sum to Z / Z^, at most 1 / (1 - s):
more than 1 where the arrivals have higher losses than those of recent rounds, less where losses have decreased, for t >
0. Only rounds with a finite loss count.

With loss_cap, and fewer than half of the arrivals lying, w_i / w_j <= (p_i / p_j) e^(t loss_cap median(F)) for t > 0,
whatever client i reports. For t < 0 no cap is needed: reports are at least 0, so that w_i / w_j <= (p_i / p_j) e^(-t
F_j). With smoothing a false report stays in Z^: without a cap, one huge report shortens the steps of many rounds.

Departures from the paper:
- Its code divides by a running mean (s = 1/2) that starts at 0, so that the first round's weights sum to 2, of e^(t (F
  - max F)), whose scale changes between rounds. Here weights sum to 1 in every round, or, with smoothing, in the first.
- Its code averages the m models that these weights produce, so that its steps are about 1/m of those here
  (server.lr=1/m).
- Sums are kept as logarithms.
- Clients without a finite loss are left out; where none has one, the round is a plain mean.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedcohort import ranges
from fedcohort.agg import losses
from fedcohort.agg.base import Arrived, Direction, SampleWeighted
from fedcohort.component import CLEAN_LABELS, RELATIVE_ADVICE, Requirement
from fedcohort.types import Population


@dataclass(frozen=True)
class State:
    """The state of TERM that is kept between rounds: the running mean of the normaliser Z, if `smoothing` is set.

    Attributes:
        log_mean: logarithm of the running mean of Z, 0 before the first round.
        n_rounds: number of rounds in the running mean.
    """

    log_mean: float
    n_rounds: int


@dataclass(frozen=True)
class Term(SampleWeighted[State]):
    """TERM, an aggregator that weighs clients by the exponential of their tilted losses.

    Attributes:
        tilt: factor t of a client's loss in the exponent of its weight, per nat.
        loss: signal that clients report as their loss (`agg/losses.py` lists them).
        smoothing: share of earlier rounds in the running mean of the normaliser; None normalises in each round.
        loss_cap: largest loss that counts, in multiples of the arrivals' median loss; None for no limit.
    """

    tilt: float
    loss: str
    smoothing: float | None
    loss_cap: float | None

    stacked: ClassVar[bool] = True
    requirements: ClassVar[frozenset[Requirement]] = frozenset({RELATIVE_ADVICE})

    def __post_init__(self) -> None:
        super().__post_init__()
        ranges.number("tilt", self.tilt, "[-1e30, 1e30]")
        ranges.choice("loss", self.loss, *losses.LOSS_SIGNALS)
        ranges.number("smoothing", self.smoothing, "(0, 1)", allow_null=True)
        ranges.number("loss_cap", self.loss_cap, "[1, inf)", allow_null=True)

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({self.loss})

    @property
    def recommendations(self) -> frozenset[Requirement]:
        return frozenset({CLEAN_LABELS} if self.tilt > 0 else ())

    def init(self, population: Population, n_params: int) -> State:
        return State(0.0, 0)

    def direction(self, state: State, arrived: Arrived) -> tuple[Direction, State]:
        positions_with_loss, F = losses.read_valid_losses(arrived, self.loss, self.loss_cap)
        if not len(positions_with_loss):
            return Direction(arrived.mean), state
        log_weights = np.log(losses.normalised_weights(arrived, positions_with_loss)) + self.tilt * F
        w = np.exp(log_weights - log_weights.max())
        log_Z, w = float(log_weights.max() + np.log(w.sum())), w / w.sum()
        if self.smoothing is not None:
            state = self._update_mean_normaliser(state, log_Z)
            w *= np.exp(log_Z - state.log_mean)
        return arrived.combine(losses.spread_weights_to_clients(arrived, positions_with_loss, w)), state

    def _update_mean_normaliser(self, state: State, log_Z: float) -> State:
        """Return the state with the running mean of the normaliser Z after a round.

        Args:
            state: the state before the round.
            log_Z: logarithm of this round's Z.
        """
        s, n_rounds = self.smoothing or 0.0, state.n_rounds + 1
        if n_rounds == 1:
            return State(log_Z, 1)
        c = (1 - s) / (1 - s**n_rounds)
        return State(float(np.logaddexp(state.log_mean + np.log1p(-c), log_Z + np.log(c))), n_rounds)
