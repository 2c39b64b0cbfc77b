"""Start the process that workers are forked from: it has imported what every run needs.

Otherwise each worker would import torch, Lightning and the tables' libraries: seconds of a core, as long as a short run
takes. The process starts before the jobs are checked, and imports while they are.
"""

import multiprocessing
import os
import sys
from multiprocessing import forkserver

LIBRARIES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")  # which limit threads
QUIET = "ignore:resource_tracker:UserWarning"  # a sweep that a signal ends leaves semaphores, which that cleans up
IMPORTED = (
    "fedcohort.jobs.fork_server",
    "fedcohort.jobs.job",
    "fedcohort.startup.fit",
    "pandas",
    "pyarrow.parquet",
)


def start_fork_server(threads: int) -> None:
    """Start the process, where the platform can fork. threads: of a job's libraries, which read them at import."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return
    before = {name: os.environ.get(name) for name in LIBRARIES}
    os.environ.update({name: before[name] or str(threads) for name in LIBRARIES})
    sys.warnoptions.append(QUIET)
    try:
        forkserver.set_forkserver_preload(list(IMPORTED))
        forkserver.ensure_running()
    finally:
        sys.warnoptions.remove(QUIET)
        for name, value in before.items():
            if value is None:
                del os.environ[name]
