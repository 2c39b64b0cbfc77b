"""One line on the terminal with the status of a sweep: rewritten on a terminal, else printed when it changes."""

import logging
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fedcohort.jobs import status
from fedcohort.record import sweep_folder

log = logging.getLogger("fedcohort")
POLL_S, SHARE = 1.0, 0.02  # seconds between two looks, and the share of time that they may take
CLEAR = "\r\x1b[K"  # back to the start of the line, which is cleared


@contextmanager
def show_live_line(sweep: Path) -> Iterator[None]:
    """Show the line while the sweep in the folder `sweep` runs."""
    done = threading.Event()
    thread = threading.Thread(target=_watch, args=(sweep, done), name="live line", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _watch(sweep: Path, done: threading.Event) -> None:
    plan, is_terminal, last_counts, pause_s = sweep_folder.read_plan(sweep), sys.stderr.isatty(), "", POLL_S
    while plan is not None and not done.wait(pause_s):
        begin = time.monotonic()
        standing = status.read_status(sweep, plan, waits=True)
        counts = status.describe_counts(standing)
        if is_terminal:
            sys.stderr.write(f"{CLEAR}{status.describe(sweep.name, standing)[:200]}")
            sys.stderr.flush()
        elif counts != last_counts and standing.count("done", "failed", "skipped"):
            log.info("%s", status.describe(sweep.name, standing))
        last_counts, pause_s = counts, max(POLL_S, (time.monotonic() - begin) / SHARE)
    if is_terminal and last_counts:
        sys.stderr.write(CLEAR)
