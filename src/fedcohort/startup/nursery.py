"""`hydra/launcher=local`: its processes are forked from one that has imported what every run needs.

Each process by itself would import torch, Lightning and the tables' libraries again: seconds of a core, as long as a
short run takes. The one that is forked from starts before the jobs are looked at, and imports while they are.
"""

import multiprocessing
import os
import sys
from importlib.util import find_spec
from multiprocessing import forkserver

from fedcohort.startup import compat

LIBRARIES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")  # as joblib sets them
QUIET = "ignore:resource_tracker:UserWarning"  # a sweep that a signal ends leaves semaphores, which that cleans up
IMPORTED = (
    "fedcohort.startup.fork_server",
    "fedcohort.startup.start",
    "fedcohort.startup.fit",
    "pandas",
    "pyarrow.parquet",
    "matplotlib.figure",
)


def begin(threads: int) -> None:
    """Start it, where the platform can fork. threads: of a job's libraries, which read them when they are imported."""
    if "forkserver" not in multiprocessing.get_all_start_methods() or find_spec("joblib") is None:
        return
    compat.start_workers_by("forkserver")
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
