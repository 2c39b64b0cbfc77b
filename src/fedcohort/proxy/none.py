"""The server holds no inputs beside its validation set."""

from dataclasses import dataclass
from typing import ClassVar

from fedcohort.data.federation import Federation


@dataclass(frozen=True)
class NoProxy:
    holds: ClassVar[bool] = False

    def inputs(self, federation: Federation, seed: int) -> None:
        """Nothing."""
