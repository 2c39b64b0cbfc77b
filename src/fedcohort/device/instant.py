"""Nothing takes time: for the study of statistical heterogeneity alone.

    T_i = 0

Departures from the paper: none (a degenerate case, of no paper). Durations carry no information, so methods that
learn from them are refused (`timed` is False).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedcohort.device.base import Device, Timing, Workload
from fedcohort.rng import Draws
from fedcohort.types import Ids


@dataclass(frozen=True)
class Instant(Device):
    timed: ClassVar[bool] = False

    def expect(self, clients: Ids, work: Workload, draws: Draws) -> Timing:
        """Return zero seconds for each phase, [len(clients)]."""
        return Timing(*(np.zeros(len(clients)) for _ in range(4)))

    def sample(self, clients: Ids, work: Workload, draws: Draws) -> Timing:
        """Return zero seconds for each phase, [len(clients)]."""
        return self.expect(clients, work, draws)
