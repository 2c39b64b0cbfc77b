"""No regulariser."""

from dataclasses import dataclass

from fedcohort.hook import Hook


@dataclass(frozen=True)
class NoRegulariser:
    @property
    def hooks(self) -> tuple[Hook, ...]:
        return ()
