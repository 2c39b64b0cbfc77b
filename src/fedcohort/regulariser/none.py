"""No regulariser."""

from dataclasses import dataclass

from fedcohort.regulariser.base import Regulariser


@dataclass(frozen=True)
class NoRegulariser(Regulariser):
    """The regulariser; it has no options."""
