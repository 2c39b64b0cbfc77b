"""The local work that a round sends to clients, as one table."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from jaxtyping import Bool

from fedcohort.device.base import Timing
from fedcohort.training.upload import Kept
from fedcohort.types import Ids, ReadOnly, Values

UNTIMED = Timing(*(np.empty(0) for _ in range(4)))


@dataclass(frozen=True)
class Jobs(ReadOnly):
    """A row per client that works, sorted by id; arrays and lists of arrays only, so that jobs can be saved.

    A job is filled in three steps: what is asked (up to `bytes_up`), what is announced and chosen (`expected_down_s` to
    `losses`), and how long it takes (`timing`, `duration_s`). The deadline then cuts `units` and `duration_s`.

    Attributes:
        client: ids, [m].
        broadcast: round whose global model the client was sent, [m].
        plain: whether it trains as in FedAvg (`Selection.plain`), [m].
        asked: units of local work that it was asked for, [m].
        units: units that it does, 0 for a client that is dropped, [m].
        start_s: virtual second of the run's clock at which it begins, [m].
        kept: tensors of the update that it sends, None for all.
        bytes_up: of its whole answer, [m].
        announced_s: the deadline that it was told, in seconds after its start; inf without one, [m].
        expected: expected timing on all of its samples, forward passes on them included.
        rows: positions of the samples that it trains on, None for all.
        losses: known losses of its samples when they were chosen; None for a client that keeps no list.
        timing: seconds of the phases of its job, if it is never away.
        duration_s: seconds from its start to its answer, with those in which it is away, [m].
    """

    client: Ids
    broadcast: Ids
    plain: Bool[np.ndarray, "_m"]
    asked: Ids
    units: Ids
    start_s: Values
    kept: Sequence[Kept | None]
    bytes_up: Values
    announced_s: Values = field(default_factory=lambda: np.empty(0))
    expected: Timing = UNTIMED
    rows: Sequence[Ids | None] = ()
    losses: Sequence[Values | None] = ()
    timing: Timing = UNTIMED
    duration_s: Values = field(default_factory=lambda: np.empty(0))

    def __len__(self) -> int:
        return len(self.client)

    @property
    def end_s(self) -> Values:
        """Virtual second of the run's clock at which each answers, [m]."""
        end_s: Values = self.start_s + self.duration_s
        return end_s

    def take(self, which: Bool[np.ndarray, "_m"]) -> "Jobs":
        """Return the jobs of the rows in `which`."""
        index = np.flatnonzero(which)
        return Jobs(**{f.name: _take(getattr(self, f.name), index) for f in fields(self)})


def _take(column: Any, index: Ids) -> Any:  # noqa: ANN401  a column of any type, and the same of fewer rows
    if isinstance(column, np.ndarray):
        return column[index]
    if isinstance(column, Timing):
        return Timing(*(getattr(column, f.name)[index] for f in fields(Timing)))
    return [column[i] for i in index.tolist()]
