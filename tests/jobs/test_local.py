"""Worker processes: one that dies costs its own job, each job has a log, and none outlives its parent."""

import os
import select
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from config_options import ROOT
from fedcohort.jobs import local
from fedcohort.jobs.local import describe_exit_code, find_worker_log_path, run_in_workers, run_local
from fedcohort.record import sweep_folder
from sweep_jobs import make_toy_jobs

KILLED = "its process was ended by SIGKILL (kill -9, or the kernel for lack of memory)"

SCRIPT = """
import sys
from pathlib import Path

from fedcohort.jobs import local
from fedcohort.jobs.local import run_in_workers
from sweep_jobs import make_toy_jobs

local.PRELOADED_MODULES = ("fedcohort.jobs.fork_server",)
local.start_fork_server(1)
list(run_in_workers(make_toy_jobs(Path(sys.argv[1])), {0: ("wait",), 1: ("wait",)}, 2))
"""


IMPORTING = """
import os
import sys

from multiprocessing import get_context

from fedcohort.jobs import local


def look():
    return str(os.getppid()) == os.environ["STARTED_BY"], os.environ["OMP_NUM_THREADS"], "pyarrow" in sys.modules


if __name__ == "__main__":
    os.environ["STARTED_BY"] = str(os.getpid())
    local.PRELOADED_MODULES = ("pyarrow",)  # what a run needs takes seconds
    local.start_fork_server(3)
    kept = "OMP_NUM_THREADS" in os.environ
    with get_context("forkserver").Pool(2) as pool:
        print(kept, {pool.apply(look) for _ in range(4)})
"""


@pytest.fixture(autouse=True)
def light(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start a fork server with few imports, unless there is one."""
    monkeypatch.setattr(local, "PRELOADED_MODULES", ("fedcohort.jobs.fork_server",))


def pid_of(folder: Path, number: int) -> int:
    path = folder / f"{number}.pid"
    while not path.exists() or not path.read_text():
        time.sleep(0.05)
    return int(path.read_text())


def test_a_killed_worker_fails_only_its_own_job(tmp_path: Path) -> None:
    jobs = {3: ("note",), 4: ("die",), 5: ("note",), 6: ("note",)}
    assert list(run_in_workers(make_toy_jobs(tmp_path), jobs, 1)) == [(3, ""), (4, KILLED), (5, ""), (6, "")]
    assert pid_of(tmp_path, 3) == pid_of(tmp_path, 4) != pid_of(tmp_path, 5) == pid_of(tmp_path, 6)
    assert [find_worker_log_path(tmp_path, number).read_text() for number in jobs] == [
        f"job {number}\n" for number in jobs
    ]


def test_a_job_is_recorded_as_failed_if_its_process_dies(tmp_path: Path) -> None:
    assert sorted(run_local(make_toy_jobs(tmp_path), {0: ("die",), 1: ("note",)}, 2)) == [0, 1]
    record = sweep_folder.read_job_records(tmp_path)[0]
    assert (record.words, record.how, record.reason) == (("die",), "failed", KILLED)


def test_closing_the_generator_ends_running_jobs(tmp_path: Path) -> None:
    with closing(run_in_workers(make_toy_jobs(tmp_path), {0: ("note",), 1: ("wait",), 2: ("note",)}, 2)) as results:
        pid = pid_of(tmp_path, 1) if next(results) else 0
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="processes can be waited for on Linux")
def test_a_killed_command_leaves_no_worker(tmp_path: Path) -> None:
    """Neither one that works nor one that waits for a job."""
    parent = subprocess.Popen([sys.executable, "-c", SCRIPT, str(tmp_path)], cwd=ROOT / "tests")
    workers = [os.pidfd_open(pid_of(tmp_path, number)) for number in (0, 1)]
    parent.kill()
    parent.wait()
    for worker in workers:
        assert select.select([worker], [], [], 20)[0], "it outlives the command"
        os.close(worker)


def test_exit_codes_are_described() -> None:
    assert describe_exit_code(128 + signal.SIGTERM) == "its process was ended by SIGTERM"
    assert describe_exit_code(9) == "its process was ended with exit code 9"


def test_workers_are_forked_from_a_server_with_preloaded_modules(tmp_path: Path) -> None:
    """With the threads that were asked for, which this process itself doesn't get."""
    (tmp_path / "sweep.py").write_text(IMPORTING)
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    process = subprocess.run(
        [sys.executable, str(tmp_path / "sweep.py")], env=environment, capture_output=True, text=True, check=False
    )
    assert process.stdout == "False {(False, '3', True)}\n", process.stderr
