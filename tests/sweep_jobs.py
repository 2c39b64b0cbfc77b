"""Jobs for tests of worker processes, which import this module: an option states the action of each job."""

import os
import signal
from collections.abc import Sequence
from pathlib import Path

from fedcohort.jobs.job import JobContext


class ToyJobs(JobContext):
    """Jobs that do not train: `note` writes the process's id, `die` kills it, `wait` waits until a signal comes."""

    def run(self, number: int, overrides: Sequence[str]) -> float | None:
        (self.folder / f"{number}.pid").write_text(str(os.getpid()))
        print(f"job {number}")
        if overrides[0] == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if overrides[0] == "wait":
            signal.pause()
        return None


def make_toy_jobs(folder: Path) -> ToyJobs:
    """Return the jobs of a sweep in `folder`."""
    return ToyJobs(folder, folder)
