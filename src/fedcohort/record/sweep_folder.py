"""The folder of a sweep: its plan, and the record of each of its jobs, for every launcher.

- <logs>/sweeps/<id>/sweep.json: the jobs, the launcher, and the process that the user started
- <logs>/sweeps/<id>/jobs/<number>.json: a job's overrides, state, times, run folder and reason of failure
- <logs>/sweeps/<id>/jobs/<number>.log: the output of a job that ran in a separate process
- <logs>/sweeps/<id>/cancelled: exists once `fedcohort sweep cancel` has ended the sweep

The process that runs a job writes its record, perhaps on another machine. All launchers share these files. The record
of a killed job still has the state "running".
"""

import json
import logging
import os
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from fedcohort.errors import DamagedFile
from fedcohort.record.folder import write_atomically

log = logging.getLogger("fedcohort")
JOB_RECORDS_FOLDER, SWEEP_PLAN_FILE = "jobs", "sweep.json"
SWEEP_LOCK_FILE = "sweep.lock"  # held by the process that the user started until it ends
CANCELLED_MARKER_FILE = "cancelled"


@dataclass(frozen=True)
class JobRecord:
    """The stored state of one job of a sweep.

    Attributes:
        words: overrides of the job.
        how: state of the job: running, done, skipped, failed or stopped.
        folder: folder of its run, once it has one.
        reason: reason of a failure.
        began: start time, in seconds since 1970; None in records of older versions.
        ended: end time, in seconds since 1970; None while the job runs.
        kind: class of the error of a failure.
        value: the objective metric, None if the sweep has none.
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
class SweepPlan:
    """The jobs of a sweep, and the process that started them.

    Attributes:
        jobs: overrides of each job, by number; empty if the sweeper chooses them during the sweep.
        refused: overrides and reason of each invalid job that was skipped (`sweep.skip_refused`).
        launcher: class that starts the jobs.
        host: machine of the process that the user started.
        pid: id of that process.
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
        sweep: folder of the sweep.
        job_number: number of the job, from 0.
        words: overrides of the job.
        folder: folder of its run, once it has one.
        end_state: state of the job when it ends without an error.
        began: when its record was first written, in seconds since 1970.
    """

    sweep: Path
    job_number: int
    words: tuple[str, ...]
    folder: Path | None = None
    end_state: str = "done"
    began: float | None = None

    @property
    def id(self) -> str:
        """Id of the sweep, which is the name of its folder."""
        return self.sweep.name

    def list_sibling_folders(self) -> frozenset[Path]:
        """Return the run folders of the other jobs of the sweep, without jobs that have none."""
        job_records = read_job_records(self.sweep).items()
        return frozenset(r.folder for n, r in job_records if n != self.job_number and r.folder is not None)

    def write_record(
        self, state: str, folder: Path | None = None, reason: str = "", error_name: str = "", value: float | None = None
    ) -> None:
        """Write the record of the job, with the fields of `JobRecord`; an error of the disk is only logged.

        Args:
            state: state of the job: running, done, skipped, failed or stopped.
            folder: folder of its run; None keeps the known one.
            reason: reason of a failure.
            error_name: name of the class of the error.
            value: the objective metric; None if the sweep has none.
        """
        self.folder = folder or self.folder
        now_s = time.time()
        self.began = self.began or now_s
        ended_s = None if state == "running" else now_s
        job_record = asdict(JobRecord(self.words, state, self.folder, reason, self.began, ended_s, error_name, value))
        try:
            (self.sweep / JOB_RECORDS_FOLDER).mkdir(parents=True, exist_ok=True)
            record_file = self.sweep / JOB_RECORDS_FOLDER / f"{self.job_number}.json"
            write_atomically(record_file, json.dumps(job_record, default=str) + "\n")
        except OSError as error:  # the sweep will count it as failed
            log.warning("the record of job %d in %s cannot be written (%s)", self.job_number, self.sweep, error)


def read_job_records(sweep_folder: Path) -> Mapping[int, JobRecord]:
    """Return the records of jobs in the folder `sweep_folder` of a sweep, by job number, in order."""
    job_numbers = sorted(int(record_path.stem) for record_path in (sweep_folder / JOB_RECORDS_FOLDER).glob("*.json"))
    return {n: job_record for n in job_numbers if (job_record := read_job_record(sweep_folder, n)) is not None}


def read_job_record(sweep_folder: Path, job_number: int) -> JobRecord | None:
    """Return the record of the job `job_number` in the folder `sweep_folder` of a sweep; None if it has not begun.

    Raises `DamagedFile` if the record can't be read.
    """
    record_path = sweep_folder / JOB_RECORDS_FOLDER / f"{job_number}.json"
    try:
        record_fields = json.loads(record_path.read_text())
        run_folder = Path(record_fields["folder"]) if record_fields["folder"] else None
        return JobRecord(**{**record_fields, "words": tuple(record_fields["words"]), "folder": run_folder})
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedFile(
            f"{record_path} is damaged: restore it from a copy, or remove it, so that the job counts as not begun"
        ) from error


def save_plan(sweep_folder: Path, plan: SweepPlan) -> None:
    """Write the jobs and the launcher of a sweep, `plan`, to `sweep.json` in the sweep's folder `sweep_folder`."""
    sweep_folder.mkdir(parents=True, exist_ok=True)
    write_atomically(sweep_folder / SWEEP_PLAN_FILE, json.dumps(asdict(plan)) + "\n")


def read_plan(sweep_folder: Path) -> SweepPlan | None:
    """Return the plan of the sweep in `sweep_folder`; None if there is none or it cannot be read."""
    try:
        return SweepPlan(**json.loads((sweep_folder / SWEEP_PLAN_FILE).read_text()))
    except (OSError, ValueError, TypeError):
        return None
