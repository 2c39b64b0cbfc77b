"""Reading a run's journal: the rounds that are committed, whatever happened to the process that wrote them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool

from fedcohort.errors import CheckpointError, IncompatibleConfig
from fedcohort.record import client_table, presence
from fedcohort.round.budget import Spent

if TYPE_CHECKING:
    import pandas as pd

NAME = "journal.jsonl"


@dataclass(frozen=True)
class Line:
    """A line of the journal: one committed step.

    Attributes:
        time_ms: when it was written, milliseconds since 1970.
        trace: (mean, sd) by name.
        present: who was there (`record/presence.py`); None at step 0, and where the per-client table has everybody's
            row.
    """

    step: int
    time_ms: int
    metrics: Mapping[str, float]
    trace: Mapping[str, tuple[float, float]]
    fingerprint: str
    cohort: Sequence[int]
    arrived: Sequence[int]
    present: str | None = None


@dataclass(frozen=True)
class History:
    """The committed steps of a run, in order.

    Attributes:
        metrics: one row a step (the index), one column a metric; NaN where it wasn't measured, or wasn't a number.
        measured: by metric, the steps that measured it, whatever came out: a diverged model's loss is NaN.
    """

    folder: Path
    steps: Sequence[int]
    times: Sequence[int]
    metrics: "pd.DataFrame"
    measured: Mapping[str, Sequence[int]]
    trace: Sequence[Mapping[str, tuple[float, float]]]
    fingerprints: Sequence[str]
    cohorts: Sequence[Sequence[int]]
    arrived: Sequence[Sequence[int]]
    presence: Mapping[int, str]

    @property
    def final(self) -> dict[str, float]:
        """The last value of each metric that was measured at all; NaN where that is what came out."""
        return {name: float(self.metrics[name].loc[steps[-1]]) for name, steps in self.measured.items()}

    def available(self, step: int) -> Bool[np.ndarray, "clients"] | None:
        """Whether each client was there; None where only the per-client table knows, which then has everybody's row."""
        return presence.decode(self.presence[step]) if step in self.presence else None

    def clients(self, columns: Sequence[str] | None = None, *, first: int = 0) -> "pd.DataFrame":
        """The per-client table from step `first` on; who has a row in a step, `record/client_table.py` says.

        columns: those wanted beside `step` and `client`; None for all.
        """
        return client_table.load(self.folder, {step for step in self.steps if step >= first}, columns)


def lines(path: Path, offset: int = 0) -> tuple[list[Line], int]:
    """The complete lines from `offset` (bytes) on, and the offset behind them.

    A torn last line is not there: it was never committed. Raises `CheckpointError` where a line inside is damaged.
    """
    if not path.exists():
        return [], offset
    with path.open("rb") as file:
        file.seek(offset)
        data = file.read()
    found: list[Line] = []
    rest = data.split(b"\n")
    for number, text in enumerate(rest[:-1]):
        line = _parse(text)
        if line is None and number < len(rest) - 2:
            raise CheckpointError(f"{path} is damaged at byte {offset}: a line that is not the last can't be read")
        if line is None:
            break
        found.append(line)
        offset += len(text) + 1
    return found, offset


def count_spent(committed: Sequence[Line]) -> Spent:
    """What a run has come to by the last of its lines."""
    spent = Spent()
    for line in committed:
        spent = spent.go_on(line.step, line.metrics)
    return spent


def last_ms(folder: Path) -> int | None:
    """When the last step was committed, milliseconds since 1970; None where none was."""
    found, _ = lines(folder / NAME)
    return found[-1].time_ms if found else None


def expect(folder: Path, reader: str) -> None:
    """Raise `IncompatibleConfig` at the start, not after hours, where no journal is written that `reader` can read."""
    if not (folder / NAME).exists():
        raise IncompatibleConfig(f"{reader} reads the journal: leave callback.journal in, before the others")


def _parse(text: bytes) -> Line | None:
    try:
        value: Any = json.loads(text)
        return Line(**{**value, "trace": {name: (mean, sd) for name, (mean, sd) in value["trace"].items()}})
    except (ValueError, TypeError, KeyError):
        return None


def read(folder: Path) -> History:
    """The history in `folder`. Raises `CheckpointError` where there is no journal."""
    import pandas as pd

    path = folder / NAME
    if not path.exists():
        raise CheckpointError(f"{folder} is not the folder of a run: it holds no {NAME}")
    found, _ = lines(path)
    measured: dict[str, list[int]] = {}
    for line in found:
        for name in line.metrics:
            measured.setdefault(name, []).append(line.step)
    index = pd.Index([line.step for line in found], name="step", dtype="int64")
    return History(
        folder=folder,
        steps=[line.step for line in found],
        times=[line.time_ms for line in found],
        metrics=pd.DataFrame([dict(line.metrics) for line in found], index=index, dtype=float),
        measured=measured,
        trace=[line.trace for line in found],
        fingerprints=[line.fingerprint for line in found],
        cohorts=[line.cohort for line in found],
        arrived=[line.arrived for line in found],
        presence={line.step: line.present for line in found if line.present is not None},
    )


def wall_s(starts_ms: Sequence[int], times_ms: Sequence[int]) -> float:
    """Seconds that the processes of a run spent until their last committed step, without the gaps between them."""
    total = 0
    for start, end in zip(starts_ms, [*starts_ms[1:], float("inf")], strict=True):
        own = [time for time in times_ms if start <= time < end]
        total += (own[-1] - start) if own else 0
    return total / 1000
