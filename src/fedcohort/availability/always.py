"""Every client is available in every round.

Departures from the paper: none (the assumption of FLASH, UCB-CS, FedMABA and FedDiverse).
"""

from dataclasses import dataclass
from typing import ClassVar

from fedcohort.availability.base import Availability


@dataclass(frozen=True)
class Always(Availability):
    """Full availability, the default of `Availability.ready`."""

    always: ClassVar[bool] = True
