"""What has become of each job of a sweep: a file for each in the sweep's folder, written by the process that runs it.

<logs>/sweeps/<id>/jobs/<number>.json    its words, how it is, its run's folder, and why it failed

That process may be another one, on another machine: the files are all that every launcher of Hydra's has in common. A
job that was killed still says "running".
"""

import json
import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from fedcohort.record.folder import write_atomically

log = logging.getLogger("fedcohort")
NAME = "jobs"
STATES = ("running", "done", "skipped", "failed", "stopped")


@dataclass(frozen=True)
class JobRecord:
    """What is known of a job.

    Attributes:
        words: what the job was given.
        how: one of STATES.
        folder: of its run, once it has one.
        reason: of a failure.
    """

    words: tuple[str, ...]
    how: str
    folder: Path | None = None
    reason: str = ""


@dataclass
class SweepJob:
    """A job of a sweep, in the process that runs it.

    Attributes:
        sweep: the sweep's folder.
        number: from 0 on.
        folder: of its run, once it has one.
        end: how it is where nothing goes wrong.
    """

    sweep: Path
    number: int
    words: tuple[str, ...]
    folder: Path | None = None
    end: str = "done"

    @property
    def id(self) -> str:
        """The sweep's id."""
        return self.sweep.name

    def note(self, how: str, folder: Path | None = None, reason: str = "") -> None:
        """Write down how the job is. A folder stays known once it was given."""
        self.folder = folder or self.folder
        record = asdict(JobRecord(self.words, how, self.folder, reason))
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
        found[int(path.stem)] = JobRecord(tuple(facts["words"]), facts["how"], folder, facts["reason"])
    return found
