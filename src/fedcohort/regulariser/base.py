"""The contract of a regulariser: hooks that any objective and any aggregator can be combined with."""

from typing import Protocol

from fedcohort.hook import Hook


class Regulariser(Protocol):
    @property
    def hooks(self) -> tuple[Hook, ...]: ...
