"""The process from which a local sweep's jobs are forked imports what they need, and leaves no other trace."""

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import os
import sys

from multiprocessing import get_context

from fedcohort.jobs import preload


def look():
    return str(os.getppid()) == os.environ["STARTED_BY"], os.environ["OMP_NUM_THREADS"], "pyarrow" in sys.modules


if __name__ == "__main__":
    os.environ["STARTED_BY"] = str(os.getpid())
    preload.IMPORTED = ("pyarrow",)  # what a run needs takes seconds
    preload.start_fork_server(3)
    kept = "OMP_NUM_THREADS" in os.environ
    with get_context("forkserver").Pool(2) as pool:
        print(kept, {pool.apply(look) for _ in range(4)})
"""


def test_workers_are_forked_from_a_process_that_has_imported_for_them(tmp_path: Path) -> None:
    """With the threads that were asked for, which this process itself doesn't get."""
    (tmp_path / "sweep.py").write_text(SCRIPT)
    bare = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    done = subprocess.run(
        [sys.executable, str(tmp_path / "sweep.py")], env=bare, capture_output=True, text=True, check=False
    )
    assert done.stdout == "False {(False, '3', True)}\n", done.stderr
