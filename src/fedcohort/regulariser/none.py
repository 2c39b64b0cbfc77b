"""No regulariser."""

from dataclasses import dataclass

from fedcohort.regulariser.base import Regulariser


@dataclass(frozen=True)
class NoRegulariser(Regulariser):
    """It has no options."""
