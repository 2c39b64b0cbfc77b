"""No virtual time: every job takes 0 seconds, for studies of statistical heterogeneity only.

    T_i:  0

Departures from the paper: none (no paper). Methods that read durations are rejected (`timed` is False).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedcohort.device.base import Device, Timing, Workload
from fedcohort.rng import Draws
from fedcohort.types import Ids


@dataclass(frozen=True)
class Instant(Device):
    """A device model in which work takes no time; it has no options."""

    timed: ClassVar[bool] = False

    def expect(self, clients: Ids, work: Workload, draws: Draws) -> Timing:
        """Return zero seconds for each phase of the work of `clients`, [len(clients)], whatever `work` and `draws`."""
        return Timing(*(np.zeros(len(clients)) for _ in range(4)))

    def sample(self, clients: Ids, work: Workload, draws: Draws) -> Timing:
        """Return zero seconds for each phase of the work of `clients`, [len(clients)], whatever `work` and `draws`."""
        return self.expect(clients, work, draws)
