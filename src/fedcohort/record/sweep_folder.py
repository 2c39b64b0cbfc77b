"""The folder of a sweep: its plan, and the record of each of its jobs, whichever launcher runs them.

<logs>/sweeps/<id>/sweep.json            the jobs, the launcher, and the process that the user started
<logs>/sweeps/<id>/jobs/<number>.json    a job's overrides, its state, since when, its run's folder, why it failed
<logs>/sweeps/<id>/jobs/<number>.log     the output of a job that ran in a process of its own
<logs>/sweeps/<id>/cancelled             there once `fedcohort sweep cancel` has ended the sweep

The process that runs a job writes its record, perhaps on another machine: the files are all that the launchers have in
common. The record of a job that was killed still says "running".
"""

import json
import logging
import os
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from fedcohort.record.folder import write_atomically

log = logging.getLogger("fedcohort")
NAME = "jobs"
PLAN = "sweep.json"
LOCK = "sweep.lock"  # held by the process that the user started, as long as it lives
CANCELLED = "cancelled"
STATES = ("running", "done", "skipped", "failed", "stopped")


@dataclass(frozen=True)
class JobRecord:
    """The record of a job.

    Attributes:
        words: its overrides.
        how: one of STATES.
        folder: of its run, once it has one.
        reason: of a failure.
        began: when it did, in seconds since 1970; None for one of an older fedcohort.
        ended: when it did; None while it runs.
        kind: of a failure, the class of its error.
        value: the objective metric, None where none was asked for.
    """

    words: tuple[str, ...]
    how: str
    folder: Path | None = None
    reason: str = ""
    began: float | None = field(default=None, compare=False)
    ended: float | None = field(default=None, compare=False)
    kind: str = field(default="", compare=False)
    value: float | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Plan:
    """The plan of a sweep.

    Attributes:
        jobs: the overrides of each, by number; empty where the sweeper chooses them as it goes.
        refused: overrides and reason of each job that was left out (`sweep.skip_refused`).
        launcher: the class that starts the jobs.
        host: the machine of the process that the user started.
        pid: that process.
    """

    jobs: Sequence[Sequence[str]] = ()
    refused: Sequence[tuple[Sequence[str], str]] = ()
    launcher: str = ""
    host: str = field(default_factory=socket.gethostname)
    pid: int = field(default_factory=os.getpid)


@dataclass
class SweepJob:
    """A job of a sweep, in the process that runs it.

    Attributes:
        sweep: the sweep's folder.
        number: from 0 on.
        folder: of its run, once it has one.
        end: how it is where nothing goes wrong.
        began: when it was noted for the first time, in seconds since 1970.
    """

    sweep: Path
    number: int
    words: tuple[str, ...]
    folder: Path | None = None
    end: str = "done"
    began: float | None = None

    @property
    def id(self) -> str:
        """The sweep's id."""
        return self.sweep.name

    def list_siblings(self) -> frozenset[Path]:
        """Return the folders of the sweep's other jobs, as far as they have some by now."""
        others = (record.folder for number, record in read(self.sweep).items() if number != self.number)
        return frozenset(folder for folder in others if folder is not None)

    def note(
        self, how: str, folder: Path | None = None, reason: str = "", kind: str = "", value: float | None = None
    ) -> None:
        """Write the record of the job: its state, and what `JobRecord` has of it. A folder stays known."""
        self.folder = folder or self.folder
        now = time.time()
        self.began = self.began or now
        ended = None if how == "running" else now
        record = asdict(JobRecord(self.words, how, self.folder, reason, self.began, ended, kind, value))
        try:
            (self.sweep / NAME).mkdir(parents=True, exist_ok=True)
            write_atomically(self.sweep / NAME / f"{self.number}.json", json.dumps(record, default=str) + "\n")
        except OSError as error:  # the sweep will count it as failed
            log.warning("%s can't be written (%s)", self.sweep / NAME, error)


def read(sweep: Path) -> Mapping[int, JobRecord]:
    """Return the records in a sweep's folder, by the job's number and in that order."""
    numbers = sorted(int(path.stem) for path in (sweep / NAME).glob("*.json"))
    records = {number: read_record(sweep, number) for number in numbers}
    return {number: record for number, record in records.items() if record is not None}


def read_record(sweep: Path, number: int) -> JobRecord | None:
    """Return the record of a job; None where it has not begun."""
    try:
        facts = json.loads((sweep / NAME / f"{number}.json").read_text())
    except FileNotFoundError:
        return None
    folder = Path(facts["folder"]) if facts["folder"] else None
    return JobRecord(**{**facts, "words": tuple(facts["words"]), "folder": folder})


def save_plan(sweep: Path, plan: Plan) -> None:
    """Write the plan of the sweep in the folder `sweep`."""
    sweep.mkdir(parents=True, exist_ok=True)
    write_atomically(sweep / PLAN, json.dumps(asdict(plan)) + "\n")


def read_plan(sweep: Path) -> Plan | None:
    """Return the plan of the sweep; None where there is none."""
    try:
        return Plan(**json.loads((sweep / PLAN).read_text()))
    except (OSError, ValueError, TypeError):
        return None
