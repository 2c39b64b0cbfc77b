"""Shifted-exponential latency (FLASH, Sec. IV-A, after Shi et al. 2020).

Chang et al., "FLASH: Federated Learning Across Simultaneous Heterogeneities", arXiv 2402.08769, whose reference [20] is
Shi, Zhou, Niu, "Device Scheduling with Fast Convergence for Wireless Federated Learning", ICC 2020.

    T_i:  n_i (alpha + lambda X_i) unit_s, X_i ~ Exp(1) for each client and round

n_i are the sample-times of the whole job. The mean of T_i is n_i (alpha + lambda) unit_s. Each of E epochs takes
T_i / E. Forward passes have the speed of the same round; transfers take no time.

Departures from the paper:
- "Exp(1 / lambda N_i)" is read as a rate. Read as a mean, all clients would have nearly the same latency.
- persistent=true draws lambda_i = lambda Exp(1) once per client. In the paper X is drawn in each round
  (persistent=false), so that only n_i makes a client permanently slow.
- class_share > 0 ties lambda_i = -lambda log(1 - u_i) to the main class of client i (`maths/class_tie.py`): clients of
  the last classes are the slow ones. In the paper speeds do not depend on the data.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedcohort import ranges
from fedcohort.device.base import Device, Timing, Workload
from fedcohort.errors import OptionError
from fedcohort.maths.class_tie import tie_draws_to_classes
from fedcohort.rng import Draws
from fedcohort.types import Ids, Values


@dataclass(frozen=True)
class ShiftedExponential(Device):
    """Shifted-exponential latency, a device model.

    Attributes:
        alpha: constant part of the training time per sample, in units of `unit_s`.
        lam: mean of the random part of the training time per sample, in units of `unit_s`.
        unit_s: virtual seconds of one unit of `alpha` and `lam`.
        persistent: whether some clients are permanently slower than others.
        class_share: probability that a client's permanent speed depends on its main class.
    """

    alpha: float
    lam: float
    unit_s: float
    persistent: bool
    class_share: float

    in_seconds: ClassVar[bool] = False

    def __post_init__(self) -> None:
        ranges.number("alpha", self.alpha, "[0, 1e9]")
        ranges.number("lam", self.lam, "[0, 1e9]")
        ranges.number("unit_s", self.unit_s, "[1e-12, 1e9]")
        ranges.flag("persistent", self.persistent)
        ranges.number("class_share", self.class_share, "[0, 1]")
        if self.class_share > 0 and not self.persistent:
            raise OptionError(
                f"class_share={self.class_share:g} needs persistent=true: only permanent speeds can be tied"
            )
        if self.alpha == self.lam == 0:
            raise OptionError(
                "alpha and lam must not both be 0: work would take no time. Raise one, or choose device=instant"
            )

    def expect(self, clients: Ids, work: Workload, draws: Draws) -> Timing:
        """Return the seconds of each phase of the work, as means over rounds.

        Args:
            clients: ids of the clients.
            work: work of each client.
            draws: random numbers of the run, which give each client its mean lambda_i if `persistent`.
        """
        return self._make_timing(work, self.alpha + self._draw_client_lambdas(clients, draws))

    def sample(self, clients: Ids, work: Workload, draws: Draws) -> Timing:
        """Return the seconds of each phase of the work in one round.

        Args:
            clients: ids of the clients.
            work: work of each client.
            draws: random numbers of the round, for the latencies.
        """
        exponential_draws = draws.exponential("latency")[clients]
        return self._make_timing(work, self.alpha + self._draw_client_lambdas(clients, draws) * exponential_draws)

    def _draw_client_lambdas(self, clients: Ids, draws: Draws) -> Values:
        if not self.persistent:
            return np.full(len(clients), float(self.lam))
        draws_of_run = draws.draws_of_run()
        lambda_draws = draws_of_run.exponential("device")
        if self.class_share > 0:  # by the quantiles of the draws
            quantiles = tie_draws_to_classes(
                -np.expm1(-lambda_draws), draws_of_run, self.class_share, "device.class_share"
            )
            lambda_draws = -np.log1p(-quantiles)
        return np.asarray(self.lam * lambda_draws[clients])

    def _make_timing(self, work: Workload, seconds_factor: Values) -> Timing:
        zero_seconds, sample_time_s = np.zeros(len(seconds_factor)), seconds_factor * self.unit_s
        return Timing(
            down_s=zero_seconds,
            infer_s=work.infer_load * sample_time_s,
            unit_s=work.unit_load * sample_time_s,
            up_s=zero_seconds,
        )
