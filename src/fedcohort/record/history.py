"""Reading a run's journal: the rounds that are committed, whatever happened to the process that wrote them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool

from fedcohort.errors import CheckpointError, DamagedFile, IncompatibleConfig
from fedcohort.host.disk import is_file
from fedcohort.record import client_table, digest, manifest, presence
from fedcohort.round.budget import Spent

if TYPE_CHECKING:
    import pandas as pd

NAME = "journal.jsonl"
HEADLINE = "test/acc"  # the metric that judges a run
AFRESH = "start the run again with resume=false"


@dataclass(frozen=True)
class Line:
    """A line of the journal: one committed step.

    Attributes:
        time_ms: when it was written, milliseconds since 1970.
        trace: (mean, sd) by name.
        present: who was there (`record/presence.py`); None at step 0, and where the per-client table has everybody's
            row.
        table: digest of the step's per-client table, which is a file of its own until the run has finished; None where
            the step has none, and in lines of older versions.
        digest: of this line and of all lines before it; computed where an older version wrote the line without one.
    """

    step: int
    time_ms: int
    metrics: Mapping[str, float]
    trace: Mapping[str, tuple[float, float]]
    fingerprint: str
    cohort: Sequence[int]
    arrived: Sequence[int]
    present: str | None = None
    table: str | None = None
    digest: str = ""


@dataclass(frozen=True)
class History:
    """The committed steps of a run, in order.

    Attributes:
        metrics: one row a step (the index), one column a metric; NaN where it wasn't measured, or wasn't a number.
        tables: by step, the digest of its per-client table, where the journal has one.
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
    tables: Mapping[int, str]

    @property
    def final(self) -> dict[str, float]:
        """The last value of each metric that was measured at all; NaN where that is what came out."""
        return {name: float(self.metrics[name].loc[steps[-1]]) for name, steps in self.measured.items()}

    def available(self, step: int) -> Bool[np.ndarray, "clients"] | None:
        """Whether each client was there; None where only the per-client table knows, which then has everybody's row."""
        return presence.decode(self.presence[step]) if step in self.presence else None

    def clients(self, columns: Sequence[str] | None = None, *, first: int = 0) -> "pd.DataFrame":
        """Return the per-client table from step `first` on; `record/client_table.py` says who has a row in a step.

        columns: those wanted beside `step` and `client`; None for all.
        """
        return client_table.load(self.folder, {step for step in self.steps if step >= first}, columns, self.tables)


def lines(path: Path, offset: int = 0, before: str = "") -> tuple[list[Line], int]:
    """Read the complete lines from `offset` (bytes) on, and return them with the offset behind them.

    before: the digest of the line that ends at `offset`.

    A torn last line is not there: it was never committed. Raises `DamagedFile` where a line inside is damaged.
    """
    found, end, damage = scan(path, offset, before)
    if damage:
        raise DamagedFile(f"{path} is damaged at byte {end}: {damage}. Restore the file from a copy, or {AFRESH}")
    return found, end


def scan(path: Path, offset: int = 0, before: str = "") -> tuple[list[Line], int, str]:
    """Read as `lines` does, up to the first damage; return that in words as well, "" where there is none."""
    if not is_file(path):
        return [], offset, ""
    with path.open("rb") as file:
        file.seek(offset)
        texts = file.read().split(b"\n")[:-1]
    found: list[Line] = []
    for number, text in enumerate(texts):
        line, sound = _parse(text, before)
        if line is None or not sound:
            torn = line is None and number == len(texts) - 1
            after = f"after round {found[-1].step}" if found else "at its first line"
            return found, offset, "" if torn else f"the line {after} is not what was written"
        found.append(line)
        offset, before = offset + len(text) + 1, line.digest
    return found, offset, ""


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


def _parse(text: bytes, before: str) -> tuple[Line | None, bool]:
    """Return the line, None where it can't be read, and whether its digest, where it has one, is right."""
    try:
        value: Any = json.loads(text)
        trace = {name: (mean, sd) for name, (mean, sd) in value["trace"].items()}
        wanted, sound = digest.unseal(text.decode(), before)
        return Line(**{**value, "trace": trace, "digest": wanted}), bool(sound) or "digest" not in value
    except (ValueError, TypeError, KeyError, AttributeError):
        return None, False


def read(folder: Path) -> History:
    """The history in `folder`. Raises `CheckpointError` where there is no journal."""
    import pandas as pd

    path = folder / NAME
    manifest.check(path)
    if not is_file(path):
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
        tables={line.step: line.table for line in found if line.table is not None},
    )


def wall_s(starts_ms: Sequence[int], times_ms: Sequence[int]) -> float:
    """Seconds that the processes of a run spent until their last committed step, without the gaps between them."""
    total = 0
    for start, end in zip(starts_ms, [*starts_ms[1:], float("inf")], strict=True):
        own = [time for time in times_ms if start <= time < end]
        total += (own[-1] - start) if own else 0
    return total / 1000
