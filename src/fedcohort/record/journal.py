"""The journal: what a run's other observers, its resume and its figures read. The source of truth in the run folder.

A step is committed by its line in `journal.jsonl`; its per-client table is on disk before that. So a kill at any
point leaves whole steps only, and a step that a resumed run does again is compared with what it was, not rewritten.
"""

import json
import logging
import os
import time
from dataclasses import asdict
from pathlib import Path
from typing import IO

from fedcohort.errors import CheckpointError
from fedcohort.record import card, client_table, presence
from fedcohort.record.history import NAME, History, Line, lines, read
from fedcohort.record.observer import Observer, RunInfo
from fedcohort.round.client_facts import ClientFacts
from fedcohort.types import RoundReport

log = logging.getLogger("fedcohort")
__all__ = ["History", "Journal", "read"]


class Journal(Observer):
    """Commits every step, once."""

    def __init__(self) -> None:
        self._folder = Path()
        self._file: IO[bytes] | None = None
        self._fingerprints: dict[int, str] = {}
        self._forced = False

    def start(self, info: RunInfo) -> None:
        """Open the journal behind its last whole line.

        Raises `CheckpointError` where it lacks rounds that the checkpoint has.
        """
        self._folder = info.folder
        self._forced = bool(info.starts) and info.starts[-1]["resume"] == "force"
        info.folder.mkdir(parents=True, exist_ok=True)
        committed = cut_torn_line(info.folder / NAME)
        self._fingerprints = {line.step: line.fingerprint for line in committed}
        _refuse_gap(info, self._fingerprints)
        card.save(info)
        self._file = (info.folder / NAME).open("ab")
        _sync_folder(info.folder)

    def observe(self, report: RoundReport) -> None:
        """Commit the step, or compare it with the line that is there.

        Where they differ it stays as it was: after `resume=force` that is said, else `CheckpointError` is raised.
        """
        before = self._fingerprints.get(report.step)
        if before is not None:
            if report.fingerprint != before:
                self._depart(report, before)
            return
        if report.clients:
            client_table.write_part(self._folder, report.step, report.clients)
        if self._file is None:
            raise RuntimeError("observe before start")
        commit(self._file, report)
        self._fingerprints[report.step] = report.fingerprint

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
            client_table.consolidate(self._folder, set(self._fingerprints))


def cut_torn_line(path: Path) -> list[Line]:
    """Remove what a kill left behind the last whole line; returns the lines that stay."""
    committed, end = lines(path)
    if path.exists() and path.stat().st_size > end:
        with path.open("r+b") as file:
            file.truncate(end)
            os.fsync(file.fileno())
    return committed


def commit(file: IO[bytes], report: RoundReport) -> None:
    """Append the step's line and see it to the disk: from here on the step has happened."""
    line = Line(
        step=report.step,
        time_ms=time.time_ns() // 1_000_000,
        metrics={name: float(value) for name, value in report.metrics.items()},
        trace={name: (float(mean), float(sd)) for name, (mean, sd) in report.trace.items()},
        fingerprint=report.fingerprint,
        cohort=report.cohort.tolist(),
        arrived=report.arrived.tolist(),
        present=_present(report),
    )
    file.write((json.dumps(asdict(line)) + "\n").encode())
    file.flush()
    os.fsync(file.fileno())


def _present(report: RoundReport) -> str | None:
    """Who was there, where the report knows."""
    facts = report.clients
    if "available" not in facts:
        return None
    if not isinstance(facts, ClientFacts):
        facts = ClientFacts.of({"available": facts["available"]})
    return presence.encode(facts.flags["available"], facts.n_clients)


def _refuse_gap(info: RunInfo, committed: dict[int, str]) -> None:
    missing = [step for step in range(info.start + 1) if step not in committed] if info.start else []
    if missing:
        raise CheckpointError(
            f"the checkpoint in {info.folder} is at round {info.start} but its {NAME} lacks round {missing[0]}: "
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
