"""No deadline: the server waits until the updates of all selected clients have arrived.

    announce:  inf
    close:  max_i T_i

Departures from the paper: none (FLASH's round duration tau_t; "WFA" in FedBalancer).
"""

from dataclasses import dataclass
from typing import ClassVar

from fedcohort import ranges
from fedcohort.deadline.base import Deadline
from fedcohort.types import Population, Values


@dataclass(frozen=True)
class WaitForAll(Deadline[None]):
    """No deadline: the round closes after the last update has arrived, so that no client is late.

    Attributes:
        partial_work: accepted without effect, because all clients complete their work.
    """

    partial_work: bool

    bounded: ClassVar[bool] = False
    announces: ClassVar[bool] = False

    def __post_init__(self) -> None:
        ranges.flag("partial_work", self.partial_work)

    def init(self, population: Population) -> None:
        """Return None, as waiting for all clients needs no state; `population` is not read."""

    def close(self, state: None, finish_s: Values, announced_s: float) -> float:
        """Return the second after the broadcast at which the last update arrives; 0 without clients.

        Args:
            state: None.
            finish_s: seconds at which each selected client's update arrives, [m].
            announced_s: not used, as no deadline is announced.
        """
        return float(finish_s.max(initial=0.0))
