"""Every client is available in every round.

Departures from the paper: none (the assumption of FLASH, UCB-CS, FedMABA and FedDiverse).
"""

from dataclasses import dataclass
from typing import ClassVar

from fedcohort.availability.base import Availability


@dataclass(frozen=True)
class Always(Availability):
    """An availability model in which every client is ready in every round."""

    always: ClassVar[bool] = True
