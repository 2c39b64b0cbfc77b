"""The journal: what a run's other observers, its resume and its figures read. The source of truth in the run folder.

A step is committed by its line in `journal.jsonl`; its per-client table is on disk before that. So a kill at any
point leaves whole steps only, and a step that a resumed run does again is compared with what it was, not rewritten.

Each line has the digest of its table, and a running digest of all lines so far, which a checkpoint has as well. A
resume checks both up to the checkpoint's round. What is damaged after that round is trained again.
"""

import json
import logging
import os
import time
from collections.abc import Collection
from dataclasses import asdict
from pathlib import Path
from typing import IO, NamedTuple

from fedcohort.errors import CheckpointError, DamagedFile
from fedcohort.host.disk import is_file
from fedcohort.record import card, client_files, client_table, digest, presence
from fedcohort.record.history import AFRESH, NAME, History, Line, lines, read, scan
from fedcohort.record.observer import Observer, RunInfo
from fedcohort.round.client_facts import ClientFacts
from fedcohort.types import RoundReport

log = logging.getLogger("fedcohort")
__all__ = ["History", "Journal", "read"]


class Committed(NamedTuple):
    """What is remembered of a line: the weights' fingerprint, the table's digest and the journal's running digest."""

    fingerprint: str
    table: str | None
    digest: str

    @classmethod
    def of(cls, line: Line) -> "Committed":
        return cls(line.fingerprint, line.table, line.digest)


class Journal(Observer):
    """Commits every step, once."""

    def __init__(self) -> None:
        self._folder = Path()
        self._file: IO[bytes] | None = None
        self._steps: dict[int, Committed] = {}
        self._last = ""
        self._forced = False

    def start(self, info: RunInfo) -> None:
        """Open the journal behind its last sound line.

        Raises `CheckpointError` where it lacks rounds that the checkpoint has.
        """
        self._folder = info.folder
        self._forced = bool(info.starts) and info.starts[-1]["resume"] == "force"
        info.folder.mkdir(parents=True, exist_ok=True)
        committed = cut_unsound(info.folder / NAME, info.start or -1)
        self._steps = {line.step: Committed.of(line) for line in committed}
        self._last = committed[-1].digest if committed else ""
        if info.start:
            _refuse_gap(info.folder, info.start, self._steps)
        card.save(info)
        self._file = (info.folder / NAME).open("ab")
        _sync_folder(info.folder)

    def observe(self, report: RoundReport) -> None:
        """Commit the step, or compare it with the line that is there.

        Where they differ it stays as it was: after `resume=force` that is said, else `CheckpointError` is raised.
        """
        before = self._steps.get(report.step)
        if before is not None:
            if report.fingerprint != before.fingerprint:
                self._depart(report, before.fingerprint)
            return
        table = client_table.write_part(self._folder, report.step, report.clients) if report.clients else None
        if self._file is None:
            raise RuntimeError("observe before start")
        self._last = commit(self._file, report, table, self._last)
        self._steps[report.step] = Committed(report.fingerprint, table, self._last)

    def digest(self, step: int) -> str | None:
        """Return the journal's running digest at `step`, for the checkpoint."""
        return self._steps[step].digest if step in self._steps else None

    def _depart(self, report: RoundReport, before: str) -> None:
        what = (
            f"the resumed run departs from the journal of {self._folder} at round {report.step} (fingerprint "
            f"{report.fingerprint}, was {before})"
        )
        if self._forced:
            log.warning("resume=force: %s; the journal keeps what it had", what)
            return
        raise CheckpointError(
            f"{what}: other versions of torch or fedcohort, another machine or another number of threads; resume where "
            "it ran before, start afresh with resume=false, or go on all the same with resume=force"
        )

    def finish(self, status: str) -> None:
        """Close; a finished run's per-client tables become one file."""
        if self._file is None:
            return
        self._file.close()
        self._file = None
        if status == "finished":
            tables = {step: line.table for step, line in self._steps.items() if line.table is not None}
            client_table.consolidate(self._folder, set(self._steps), tables)


def check(folder: Path, done: int, wanted: str | None) -> None:
    """Check the journal of the run in `folder` up to the checkpoint's round `done`, and these rounds' tables.

    wanted: the journal's running digest in the checkpoint; None where no journal was kept, or by an older version.
    Raises `CheckpointError`.
    """
    committed, _, damage = scan(folder / NAME)
    sound = [line for line in committed if line.step <= done]
    if damage and len(sound) <= done:
        lines(folder / NAME)  # raises
    if wanted is not None:
        _refuse_gap(folder, done, {line.step for line in sound})
        if sound[-1].digest != wanted:
            raise DamagedFile(
                f"{folder / NAME} is damaged: up to round {done} it is not the journal that the checkpoint was written "
                f"with. Restore the file from a copy, or {AFRESH}"
            )
    for why in client_files.find_damage(folder, {line.step: line.table for line in sound}).values():
        raise DamagedFile(why)


def cut_unsound(path: Path, done: int) -> list[Line]:
    """Cut the journal behind its last sound line; return the lines that stay.

    A kill leaves half a line, which is cut without a message. Of a line whose digest or table is damaged a warning is
    logged: its round is trained again.

    done: the checkpoint's round, -1 without one; damage up to there can't be mended, and raises `DamagedFile`.
    """
    committed, _, damage = scan(path)
    if damage and len(committed) <= done:
        lines(path)  # raises
    ahead = {line.step: line.table for line in committed if line.step > done}
    if broken := client_files.find_damage(path.parent, ahead):
        committed, damage = [line for line in committed if line.step < min(broken)], broken[min(broken)]
    if damage:
        log.warning("%s: %s. The rounds after round %d are trained again", path, damage, max(done, 0))
    if is_file(path):
        end = sum(len(text) + 1 for text in path.read_bytes().split(b"\n")[: len(committed)])
        if path.stat().st_size > end:
            with path.open("r+b") as file:
                file.truncate(end)
                os.fsync(file.fileno())
    return committed


def commit(file: IO[bytes], report: RoundReport, table: str | None, before: str) -> str:
    """Append the step's line and see it to the disk: from here on the step has happened. Return its digest.

    table: digest of its per-client table. before: the digest of the line before.
    """
    line = Line(
        step=report.step,
        time_ms=time.time_ns() // 1_000_000,
        metrics={name: float(value) for name, value in report.metrics.items()},
        trace={name: (float(mean), float(sd)) for name, (mean, sd) in report.trace.items()},
        fingerprint=report.fingerprint,
        cohort=report.cohort.tolist(),
        arrived=report.arrived.tolist(),
        present=_present(report),
        table=table,
    )
    facts = {name: value for name, value in asdict(line).items() if name != "digest"}
    text = digest.seal(json.dumps(facts), before)
    file.write(f"{text}\n".encode())
    file.flush()
    os.fsync(file.fileno())
    return digest.unseal(text, before)[0]


def _present(report: RoundReport) -> str | None:
    """Who was there, where the report knows."""
    facts = report.clients
    if "available" not in facts:
        return None
    if not isinstance(facts, ClientFacts):
        facts = ClientFacts.from_columns({"available": facts["available"]})
    return presence.encode(facts.flags["available"], facts.n_clients)


def _refuse_gap(folder: Path, done: int, committed: Collection[int]) -> None:
    missing = [step for step in range(done + 1) if step not in committed]
    if missing:
        raise CheckpointError(
            f"the checkpoint in {folder} is at round {done} but its {NAME} lacks round {missing[0]}: "
            "the folder was copied in part or edited, or rounds were trained without callback.journal; start afresh "
            "with resume=false"
        )


def _sync_folder(folder: Path) -> None:
    """Names of new files reach the disk with their folder."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
