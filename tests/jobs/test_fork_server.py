"""A local sweep that is killed leaves no worker: neither one with a job, nor one that waits, nor their server."""

import os
import select
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import signal
import sys

from multiprocessing import get_context

from fedcohort.host.orphan import end_when_parent_ends
from fedcohort.jobs import local


def work(path, watches):
    if watches:
        end_when_parent_ends()
    with open(path, "w") as pipe:
        pipe.write("x")
        pipe.flush()
        signal.pause()


if __name__ == "__main__":
    path, imported, watches = sys.argv[1:]
    local.PRELOADED_MODULES = tuple(imported.split(","))
    local.start_fork_server(1)
    for _ in range(2):
        get_context("forkserver").Process(target=work, args=(path, watches == "True")).start()
    signal.pause()
"""


@pytest.mark.parametrize(("imported", "is_watched"), [("fedcohort.jobs.fork_server", False), ("json", True)])
def test_a_killed_sweep_ends_its_workers(tmp_path: Path, imported: str, is_watched: bool) -> None:
    """The first way is Linux's. The pipe ends when both workers, its only writers, are gone."""
    (tmp_path / "sweep.py").write_text(SCRIPT)
    os.mkfifo(pipe := tmp_path / "pipe")
    process = subprocess.Popen([sys.executable, str(tmp_path / "sweep.py"), str(pipe), imported, str(is_watched)])
    with pipe.open("rb", buffering=0) as reader:
        received = reader.read(1)
        while received != b"xx":
            received += reader.read(1)
        process.kill()
        process.wait()
        assert select.select([reader], [], [], 60)[0], "a worker outlives the sweep"
        assert reader.read(1) == b""
