"""No regulariser: clients minimise their objective.

Departures from the paper: none (no paper).
"""

from dataclasses import dataclass

from fedcohort.regulariser.base import Regulariser


@dataclass(frozen=True)
class NoRegulariser(Regulariser):
    """The absence of a regulariser: clients minimise their objective alone. It has no options."""
