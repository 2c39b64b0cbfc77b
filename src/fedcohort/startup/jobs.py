"""What a sweep is, and what has become of each of its jobs: files in its folder, whichever launcher it has.

<logs>/sweeps/<id>/sweep.json            its jobs, its launcher, and the process that was started by hand
<logs>/sweeps/<id>/jobs/<number>.json    a job's words, how it is, since when, its run's folder, and why it failed
<logs>/sweeps/<id>/cancelled             there once `fedcohort sweep cancel` has ended the sweep

A job's file is written by the process that runs it, perhaps another one, on another machine: the files are all that
every launcher of Hydra's has in common. A job that was killed still says "running".
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
LOCK = "sweep.lock"  # held by the process that was started by hand, as long as it lives
CANCELLED = "cancelled"
STATES = ("running", "done", "skipped", "failed", "stopped")


@dataclass(frozen=True)
class JobRecord:
    """What is known of a job.

    Attributes:
        words: what the job was given.
        how: one of STATES.
        folder: of its run, once it has one.
        reason: of a failure.
        began: when it did, in seconds since 1970; None for one of an older fedcohort.
        ended: when it did; None while it runs.
    """

    words: tuple[str, ...]
    how: str
    folder: Path | None = None
    reason: str = ""
    began: float | None = field(default=None, compare=False)
    ended: float | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Plan:
    """What a sweep is to do.

    Attributes:
        jobs: the words of each, by number; none where the sweeper makes them up as it goes.
        refused: words and reason of each job that was left out (`sweep.skip_refused`).
        launcher: the class of Hydra's that starts the jobs.
        host: the machine of the process that was started by hand.
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

    def note(self, how: str, folder: Path | None = None, reason: str = "") -> None:
        """Write down how the job is. A folder stays known once it was given."""
        self.folder = folder or self.folder
        now = time.time()
        self.began = self.began or now
        ended = None if how == "running" else now
        record = asdict(JobRecord(self.words, how, self.folder, reason, self.began, ended))
        try:
            (self.sweep / NAME).mkdir(parents=True, exist_ok=True)
            write_atomically(self.sweep / NAME / f"{self.number}.json", json.dumps(record, default=str) + "\n")
        except OSError as error:  # whoever counts the jobs will miss its end, and call it failed
            log.warning("%s can't be written (%s)", self.sweep / NAME, error)


def read(sweep: Path) -> Mapping[int, JobRecord]:
    """Read the records in a sweep's folder, by the job's number and in that order."""
    found = {}
    for path in sorted((sweep / NAME).glob("*.json"), key=lambda path: int(path.stem)):
        facts = json.loads(path.read_text())
        folder = Path(facts["folder"]) if facts["folder"] else None
        times = (facts.get("began"), facts.get("ended"))
        found[int(path.stem)] = JobRecord(tuple(facts["words"]), facts["how"], folder, facts["reason"], *times)
    return found


def save_plan(sweep: Path, plan: Plan) -> None:
    """Write down what the sweep in the folder `sweep` is to do."""
    sweep.mkdir(parents=True, exist_ok=True)
    write_atomically(sweep / PLAN, json.dumps(asdict(plan)) + "\n")


def read_plan(sweep: Path) -> Plan | None:
    """Return what the sweep was to do; None where nobody wrote it down."""
    try:
        return Plan(**json.loads((sweep / PLAN).read_text()))
    except (OSError, ValueError, TypeError):
        return None
