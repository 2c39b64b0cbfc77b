"""Shifted-exponential latency (FLASH, Sec. IV-A and its reference [20], Shi et al. 2020).

    T_i = n_i (alpha + lambda X_i) unit_s,   X_i ~ Exp(1) for each client and round

n_i are the sample-times of the whole job, so that its mean is n_i (alpha + lambda). Epochs scale linearly: one of E
epochs takes T_i / E. Forward passes of probes go at the speed of the same round; travel takes no time.

Departures from the paper:
- "Exp(1 / lambda N_i)" is read as a rate; read as a mean, latency would be nearly the same for everybody.
- `persistent`: the published model draws X afresh each round, so nothing but n_i makes a client slow for good. With
  it, lambda_i = lambda Exp(1) is drawn once per client; false is the paper's.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedcohort import ranges
from fedcohort.device.base import Device, Timing, Workload
from fedcohort.errors import OptionError
from fedcohort.rng import Draws
from fedcohort.types import Ids, Values


@dataclass(frozen=True)
class ShiftedExponential(Device):
    """The device model, with its options.

    Attributes:
        alpha, lam: shift and mean of the random part, sample-times a sample.
        unit_s: seconds of one sample-time.
    """

    alpha: float
    lam: float
    unit_s: float
    persistent: bool

    in_seconds: ClassVar[bool] = False

    def __post_init__(self) -> None:
        ranges.number("alpha", self.alpha, "[0, 1e9]")
        ranges.number("lam", self.lam, "[0, 1e9]")
        ranges.number("unit_s", self.unit_s, "[1e-12, 1e9]")
        ranges.flag("persistent", self.persistent)
        if self.alpha == self.lam == 0:
            raise OptionError("alpha and lam must not both be 0: nothing would take time (that is device=instant)")

    def expect(self, clients: Ids, work: Workload, draws: Draws) -> Timing:
        """Mean seconds over the rounds, given each client's own lambda_i."""
        return self._timing(work, self.alpha + self._lam(clients, draws))

    def sample(self, clients: Ids, work: Workload, draws: Draws) -> Timing:
        """Seconds in the round of `draws`."""
        X = draws.exponential("latency")[clients]
        return self._timing(work, self.alpha + self._lam(clients, draws) * X)

    def _lam(self, clients: Ids, draws: Draws) -> Values:
        if not self.persistent:
            return np.full(len(clients), float(self.lam))
        lam_i: Values = self.lam * draws.once().exponential("device")[clients]
        return lam_i

    def _timing(self, work: Workload, factor: Values) -> Timing:
        none = np.zeros(len(factor))
        seconds = factor * self.unit_s
        return Timing(down=none, infer=work.infer_load * seconds, unit=work.load * seconds, up=none)
