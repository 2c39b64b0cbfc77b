"""The contract of a regulariser: hooks that any objective and any aggregator can be combined with."""

from typing import Protocol

from fedcohort.component import Component
from fedcohort.hook import ClientHook


class Regulariser(Component, Protocol):
    """What is added to a local objective.

    Attributes:
        hooks: what it does to local training.
    """

    @property
    def hooks(self) -> tuple[ClientHook, ...]:
        return ()
