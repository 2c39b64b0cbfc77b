"""Read a run's journal: the rounds that are committed, whatever happened to the process that wrote them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float64

from fedcohort.errors import CheckpointError, DamagedFile, IncompatibleConfig
from fedcohort.host.disk import is_file
from fedcohort.record import client_table, digest, manifest, presence
from fedcohort.round.budget import BudgetUse

if TYPE_CHECKING:
    import pandas as pd

JOURNAL_FILE = "journal.jsonl"
MAIN_METRIC = "test/acc"  # the main metric of a run
RESTART_HINT = "start the run again with resume=false"


@dataclass(frozen=True)
class JournalLine:
    """A line of the journal: one committed round.

    Attributes:
        step: round, 0 for the untrained model.
        time_ms: when the line was written, milliseconds since 1970.
        metrics: value of each metric.
        trace: (mean, standard deviation) of each quantity of the selector's state, by name.
        fingerprint: digests of all selections so far and of the weights.
        cohort: ids of the selected clients.
        arrived: ids of the clients whose updates arrived.
        present: the available clients (`record/presence.py`); None at step 0, and in lines of older versions, whose
            per-client table has a row for every client.
        table: digest of the step's per-client table, a separate file until the run has finished; None without a table,
            and in lines of older versions.
        draws: the draws by which the selector chose the cohort (`record/logged_draws.py`); None at step 0, and in lines
            of older versions.
        digest: digest of this line and all earlier lines; computed for lines of older versions, which have none.
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
    draws: Mapping[str, Any] | None = None
    digest: str = ""


@dataclass(frozen=True)
class History:
    """The committed rounds of a run, read from its journal. Sequences are in the order of `steps`.

    Attributes:
        folder: the run folder.
        steps: numbers of the rounds, 0 for the untrained model.
        times: when each step was committed, milliseconds since 1970.
        values: value of each metric at each step, float64 [n_steps]; NaN if it was not measured or is not a number.
        measured: the steps at which each metric was measured, even if its value is NaN, such as a diverged model's
            loss.
        trace: quantities of the selector's state at each step.
        fingerprints: digests of all selections so far and of the weights at each step.
        cohorts: ids of the selected clients of each step.
        arrived: ids of the clients whose updates arrived in each step.
        presence: the available clients as text, by step, if the journal has them.
        tables: digest of the per-client table, by step, if the journal has one.
        draws: the draws as `record/logged_draws.py` encodes them, by step, if the journal has them.
    """

    folder: Path
    steps: Sequence[int]
    times: Sequence[int]
    values: Mapping[str, Float64[np.ndarray, "steps"]]
    measured: Mapping[str, Sequence[int]]
    trace: Sequence[Mapping[str, tuple[float, float]]]
    fingerprints: Sequence[str]
    cohorts: Sequence[Sequence[int]]
    arrived: Sequence[Sequence[int]]
    presence: Mapping[int, str]
    tables: Mapping[int, str]
    draws: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)

    @cached_property
    def metrics(self) -> "pd.DataFrame":
        """The `values` as a table, with one row per step (the index) and one column per metric."""
        import pandas as pd

        return pd.DataFrame(self.values, pd.Index(np.array(self.steps, dtype=np.int64), name="step"), dtype=float)

    @property
    def last_metrics(self) -> dict[str, float]:
        """Last measured value of each metric, by name, which may be NaN."""
        return {k: float(self.values[k][self.steps.index(rounds[-1])]) for k, rounds in self.measured.items()}

    def available(self, step: int) -> Bool[np.ndarray, "clients"] | None:
        """Return whether each client was available in the round `step`, [n_clients].

        The result is None at step 0, and for older versions, whose per-client table has all clients.
        """
        return presence.decode_available(self.presence[step]) if step in self.presence else None

    def clients(self, columns: Sequence[str] | None = None, *, start: int = 0) -> "pd.DataFrame":
        """Return the per-client table; `record/client_table.py` lists its columns and which clients have a row.

        Args:
            columns: columns in addition to `step` and `client`; None for all.
            start: lowest step whose rows are returned.
        """
        return client_table.load_rows(self.folder, {step for step in self.steps if step >= start}, columns, self.tables)


def read_journal_lines(path: Path, start_offset: int = 0, previous_digest: str = "") -> tuple[list[JournalLine], int]:
    """Read the journal's complete lines; return them, and the offset in bytes at which the last one ends.

    An incomplete or unreadable last line counts as never committed, and is ignored.

    Args:
        path: the journal.
        start_offset: where to start, in bytes.
        previous_digest: digest of the line that ends at `start_offset`.

    Raises:
        DamagedFile: a line before the last one is damaged, or the digest of the last one is wrong.
    """
    lines, offset, damage = read_undamaged_lines(path, start_offset, previous_digest)
    if damage:
        raise DamagedFile(f"{path} is damaged at byte {offset}: {damage}. Restore it from a copy, or {RESTART_HINT}")
    return lines, offset


def read_undamaged_lines(path: Path, offset: int = 0, previous_digest: str = "") -> tuple[list[JournalLine], int, str]:
    """Read the journal's lines up to the first damaged one.

    Args:
        path: the journal.
        offset: where to start, in bytes.
        previous_digest: digest of the line that ends at `offset`.

    Returns:
        The lines, the offset of their end in bytes, and a description of the damage; "" without any.
    """
    if not is_file(path):
        return [], offset, ""
    with path.open("rb") as journal_file:
        journal_file.seek(offset)
        line_texts = journal_file.read().split(b"\n")[:-1]
    lines: list[JournalLine] = []
    for line_number, line_text in enumerate(line_texts):
        line, is_undamaged = _parse_journal_line(line_text, previous_digest)
        if line is None or not is_undamaged:
            is_incomplete_last_line = line is None and line_number == len(line_texts) - 1
            location = f"after round {lines[-1].step}" if lines else "at its first line"
            return lines, offset, "" if is_incomplete_last_line else f"the content of the line {location} has changed"
        lines.append(line)
        offset, previous_digest = offset + len(line_text) + 1, line.digest
    return lines, offset, ""


def sum_spending(lines: Sequence[JournalLine]) -> BudgetUse:
    """Return what a run has spent of its budget up to the last of `lines`, the lines of its journal."""
    budget_use = BudgetUse()
    for line in lines:
        budget_use = budget_use.add_round_metrics(line.step, line.metrics)
    return budget_use


def require_journal(folder: Path, reader_name: str) -> None:
    """Raise `IncompatibleConfig` if the starting run writes no journal.

    Args:
        folder: the run folder.
        reader_name: the component that reads the journal, for the message.
    """
    if not (folder / JOURNAL_FILE).exists():
        raise IncompatibleConfig(f"{reader_name} reads the journal: do not remove callback.journal, the first callback")


def _parse_journal_line(line_text: bytes, previous_digest: str) -> tuple[JournalLine | None, bool]:
    """Return a line of the journal, and whether its digest is right or missing.

    Args:
        line_text: the line, in JSON.
        previous_digest: digest of the line before, in hex digits.

    Returns:
        The line, None if it can't be read; and whether its digest is right, or missing as in older versions.
    """
    try:
        entry: Any = json.loads(line_text)
        trace = {name: (m, s) for name, (m, s) in entry["trace"].items()}
        checksum, is_undamaged = digest.check_digest(line_text.decode(), previous_digest)
        return JournalLine(**{**entry, "trace": trace, "digest": checksum}), bool(is_undamaged) or "digest" not in entry
    except (ValueError, TypeError, KeyError, AttributeError):
        return None, False


def read_history(folder: Path) -> History:
    """Read the history of the run in `folder`. Raises `CheckpointError` without a journal, or for a damaged line."""
    journal_path = folder / JOURNAL_FILE
    manifest.check_file(journal_path)
    if not is_file(journal_path):
        raise CheckpointError(f"{folder} is not the folder of a run: it holds no {JOURNAL_FILE}. Name one in logs/runs")
    lines, _ = read_journal_lines(journal_path)
    measured_steps: dict[str, list[int]] = {}
    for line in lines:
        for metric_name in line.metrics:
            measured_steps.setdefault(metric_name, []).append(line.step)
    return History(
        folder=folder,
        steps=[line.step for line in lines],
        times=[line.time_ms for line in lines],
        values={k: np.array([line.metrics.get(k) for line in lines], dtype=float) for k in measured_steps},
        measured=measured_steps,
        trace=[line.trace for line in lines],
        fingerprints=[line.fingerprint for line in lines],
        cohorts=[line.cohort for line in lines],
        arrived=[line.arrived for line in lines],
        presence={line.step: line.present for line in lines if line.present is not None},
        tables={line.step: line.table for line in lines if line.table is not None},
        draws={line.step: line.draws for line in lines if line.draws is not None},
    )


def wall_s(process_starts_ms: Sequence[int], commit_times_ms: Sequence[int]) -> float:
    """Return the seconds from the start of each process to its last committed round, summed over processes.

    Args:
        process_starts_ms: when each process started, in milliseconds since 1970.
        commit_times_ms: when each round was committed, in milliseconds since 1970.
    """
    total_wall_ms = 0
    for process_start_ms, process_end_ms in zip(process_starts_ms, [*process_starts_ms[1:], float("inf")], strict=True):
        process_commits_ms = [t for t in commit_times_ms if process_start_ms <= t < process_end_ms]
        total_wall_ms += (process_commits_ms[-1] - process_start_ms) if process_commits_ms else 0
    return total_wall_ms / 1000
