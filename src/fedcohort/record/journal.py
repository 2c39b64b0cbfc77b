"""Write the journal, the source of truth of a run, which its other observers, a resume and its figures read.

The line in `journal.jsonl` commits a step; the per-client table of the step is on disk before. A kill at any point
therefore leaves complete steps only. A step that a resumed run trains again is compared with its line, not rewritten.

Each line has the digest of its table, and a running digest of all lines so far, which the checkpoint stores as well. A
resume checks both up to the checkpoint's round. Damaged steps after that round are trained again.
"""

import json
import logging
import os
import time
from collections.abc import Collection
from pathlib import Path
from typing import IO, NamedTuple

from fedcohort.errors import CheckpointError, DamagedFile
from fedcohort.host.disk import is_file
from fedcohort.record import client_files, client_table, digest, metadata, presence
from fedcohort.record.history import JOURNAL_FILE, RESTART_HINT, JournalLine, read_journal_lines, read_undamaged_lines
from fedcohort.record.logged_draws import encode_draws
from fedcohort.record.observer import Observer, RunInfo
from fedcohort.types import RoundReport

log = logging.getLogger("fedcohort")


class CommittedLine(NamedTuple):
    """The fingerprint and digest of a committed round, which the journal keeps in memory.

    Attributes:
        fingerprint: digests of all selections so far and of the global model's weights.
        table: digest of the round's per-client table; None without a table.
        digest: running digest of the journal up to this round.
    """

    fingerprint: str
    table: str | None
    digest: str


class Journal(Observer):
    """The observer that writes each round to the journal exactly once."""

    def __init__(self) -> None:
        self._folder = Path()
        self._file: IO[bytes] | None = None
        self._lines_by_step: dict[int, CommittedLine] = {}
        self._last_digest = ""
        self._is_forced = False

    def start(self, info: RunInfo) -> None:
        """Save the metadata `info`, and open the run's journal after its last undamaged line.

        Raises `CheckpointError` if the journal lacks rounds that the checkpoint has, or one of these is damaged.
        """
        self._folder = info.folder
        self._is_forced = bool(info.starts) and info.starts[-1]["resume"] == "force"
        info.folder.mkdir(parents=True, exist_ok=True)
        lines = cut_damaged_lines(info.folder / JOURNAL_FILE, info.start or -1)
        self._lines_by_step = {line.step: CommittedLine(line.fingerprint, line.table, line.digest) for line in lines}
        self._last_digest = lines[-1].digest if lines else ""
        if info.start:
            _check_all_rounds(info.folder, info.start, self._lines_by_step)
        metadata.save_info(info)
        self._file = (info.folder / JOURNAL_FILE).open("ab")
        folder_descriptor = os.open(info.folder, os.O_RDONLY)
        os.fsync(folder_descriptor)  # so that the name of a new journal is permanent
        os.close(folder_descriptor)

    def observe(self, report: RoundReport) -> None:
        """Commit the round of `report`, or compare it with its line if it is already committed.

        A line that differs stays unchanged: `resume=force` logs a warning, otherwise `CheckpointError` is raised.
        """
        earlier_line = self._lines_by_step.get(report.step)
        if earlier_line is not None:
            if report.fingerprint != earlier_line.fingerprint:
                self._report_difference(report, earlier_line.fingerprint)
            return
        table_digest = client_table.write_rows(self._folder, report.step, report.clients) if report.clients else None
        if self._file is None:
            raise RuntimeError(f"round {report.step} was reported before the run began: call start() first")
        self._last_digest = commit_step(self._file, report, table_digest, self._last_digest)
        self._lines_by_step[report.step] = CommittedLine(report.fingerprint, table_digest, self._last_digest)

    def digest(self, step: int) -> str | None:
        """Return the running digest of the journal at the round `step`, which the checkpoint stores, or None."""
        return self._lines_by_step[step].digest if step in self._lines_by_step else None

    def _report_difference(self, report: RoundReport, earlier_fingerprint: str) -> None:
        """Warn with `resume=force`, or raise `CheckpointError`: a repeated round differs from its line in the journal.

        `report` has the repeated round; `earlier_fingerprint` is the fingerprint in the line.
        """
        fingerprints_text = f"fingerprint {report.fingerprint}, was {earlier_fingerprint}"
        journal_position = f"the journal of {self._folder} at round {report.step}"
        difference_text = f"the resumed run differs from {journal_position} ({fingerprints_text})"
        if self._is_forced:
            log.warning("resume=force: %s; the run continues, and the journal keeps the earlier line", difference_text)
            return
        raise CheckpointError(
            f"{difference_text}, because of other versions of torch or fedcohort, another machine or another number of "
            "threads. Resume it where it ran before, restart with resume=false, or resume it anyway with resume=force"
        )

    def finish(self, status: str) -> None:
        """Close the journal; if `status` is "finished", the per-client tables become one file."""
        if self._file is None:
            return
        self._file.close()
        self._file = None
        if status == "finished":
            table_digests = {step: line.table for step, line in self._lines_by_step.items() if line.table is not None}
            client_table.merge_step_files(self._folder, set(self._lines_by_step), table_digests)


def check_journal(folder: Path, rounds_done: int, running_digest: str | None) -> None:
    """Check the journal up to the checkpoint's round, and the per-client tables of these rounds.

    Args:
        folder: the run folder.
        rounds_done: round of the checkpoint.
        running_digest: digest of the journal that the checkpoint stores; None if the run had no journal, or an older
            version wrote the checkpoint.

    Raises:
        CheckpointError: the journal or a table is damaged or lacks rounds.
    """
    lines, _, damage_text = read_undamaged_lines(folder / JOURNAL_FILE)
    committed_lines = [line for line in lines if line.step <= rounds_done]
    if damage_text and len(committed_lines) <= rounds_done:
        read_journal_lines(folder / JOURNAL_FILE)  # raises
    if running_digest is not None:
        _check_all_rounds(folder, rounds_done, {line.step for line in committed_lines})
        if committed_lines[-1].digest != running_digest:
            raise DamagedFile(
                f"{folder / JOURNAL_FILE} is damaged: up to round {rounds_done} it differs from the journal at the "
                f"checkpoint. Restore the file from a copy, or {RESTART_HINT}"
            )
    for damage_text in client_files.find_damaged_steps(
        folder, {line.step: line.table for line in committed_lines}
    ).values():
        raise DamagedFile(damage_text)


def cut_damaged_lines(journal_path: Path, rounds_done: int) -> list[JournalLine]:
    """Cut the journal after its last undamaged line; return the remaining lines.

    An incomplete line, which a kill leaves, is cut without a message. If the digest or the table of a line is damaged,
    a warning is logged, and the round is trained again.

    Args:
        journal_path: the journal.
        rounds_done: round of the checkpoint, -1 without one.

    Raises:
        DamagedFile: a line up to the checkpoint's round is damaged, so that its round cannot be trained again.
    """
    lines, _, damage_text = read_undamaged_lines(journal_path)
    if damage_text and len(lines) <= rounds_done:
        read_journal_lines(journal_path)  # raises
    digests_after_checkpoint = {line.step: line.table for line in lines if line.step > rounds_done}
    if damage_by_step := client_files.find_damaged_steps(journal_path.parent, digests_after_checkpoint):
        lines, damage_text = (
            [line for line in lines if line.step < min(damage_by_step)],
            damage_by_step[min(damage_by_step)],
        )
    if damage_text:
        log.warning(
            "%s: %s. The rounds after round %d are trained again", journal_path, damage_text, max(rounds_done, 0)
        )
    if is_file(journal_path):
        end_offset = sum(len(line_text) + 1 for line_text in journal_path.read_bytes().split(b"\n")[: len(lines)])
        if journal_path.stat().st_size > end_offset:
            with journal_path.open("r+b") as journal_file:
                journal_file.truncate(end_offset)
                os.fsync(journal_file.fileno())
    return lines


def commit_step(journal_file: IO[bytes], report: RoundReport, table_digest: str | None, previous_digest: str) -> str:
    """Append the line of a round to the journal, sync it to the disk, and return its digest.

    The round is committed as soon as its line is on the disk.

    Args:
        journal_file: the journal, opened for binary writing.
        report: results of the round.
        table_digest: digest of the step's per-client table; None without a table.
        previous_digest: digest of the previous line.
    """
    line = JournalLine(
        step=report.step,
        time_ms=time.time_ns() // 1_000_000,
        metrics={n: float(v) for n, v in report.metrics.items()},
        trace={n: (float(m), float(s)) for n, (m, s) in report.trace.items()},
        fingerprint=report.fingerprint,
        cohort=report.cohort.tolist(),
        arrived=report.arrived.tolist(),
        present=presence.encode_available(report.clients["available"]) if "available" in report.clients else None,
        table=table_digest,
        draws=None if report.draw_log is None else encode_draws(report.draw_log),
    )
    line_fields = {n: v for n, v in vars(line).items() if n != "digest"}
    line_text = digest.append_digest(json.dumps(line_fields), previous_digest)
    journal_file.write(f"{line_text}\n".encode())
    journal_file.flush()
    os.fsync(journal_file.fileno())
    return digest.read_digest(line_text)


def _check_all_rounds(folder: Path, rounds_done: int, journal_steps: Collection[int]) -> None:
    missing_steps = [step for step in range(rounds_done + 1) if step not in journal_steps]
    if missing_steps:
        raise CheckpointError(
            f"the checkpoint in {folder} is at round {rounds_done} but its {JOURNAL_FILE} lacks round "
            f"{missing_steps[0]}: the folder was copied in part or edited, or rounds were trained without "
            f"callback.journal. {RESTART_HINT.capitalize()}"
        )
