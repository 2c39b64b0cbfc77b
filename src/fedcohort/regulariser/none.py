"""No regulariser: clients minimise their objective.

Departures from the paper: none (no paper).
"""

from dataclasses import dataclass

from fedcohort.regulariser.base import Regulariser


@dataclass(frozen=True)
class NoRegulariser(Regulariser):
    """Training without regulariser: clients minimise their objective alone. There are no options."""
