"""The contract of a regulariser: hooks that can be combined with any objective and any aggregator."""

from typing import Protocol

from fedcohort.component import Component
from fedcohort.hook import ClientHook


class Regulariser(Component, Protocol):
    """A term that is added to the local objective of clients.

    Attributes:
        hooks: client hooks that add the term's gradient in local training.
    """

    @property
    def hooks(self) -> tuple[ClientHook, ...]:
        return ()
