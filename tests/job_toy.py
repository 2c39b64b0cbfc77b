"""Jobs for tests of worker processes, which import them: an option states what each job does."""

import os
import signal
from collections.abc import Sequence
from pathlib import Path

from fedcohort.jobs.job import JobContext


class Toy(JobContext):
    """Jobs that do not train: `note` writes the process's id, `die` kills it, `wait` waits until a signal comes."""

    def run(self, number: int, words: Sequence[str]) -> float | None:
        (self.folder / f"{number}.pid").write_text(str(os.getpid()))
        print(f"job {number}")
        if words[0] == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if words[0] == "wait":
            signal.pause()
        return None


def toy(folder: Path) -> Toy:
    """Return the jobs of a sweep in `folder`."""
    return Toy(folder, folder)
