"""How a sweep stands, and its end: fedcohort sweep status|cancel ID [logs=logs wait_s=120]

ID is the name of its folder in logs/sweeps.
status: how many jobs are done, running, failed and left, about how long that takes, and the best so far: by the last
        server_val/acc, for nothing is chosen by the test set
cancel: end it. Under basic and SLURM the jobs that run finish their round and save, or are killed after wait_s seconds.
        Their MLflow runs are marked KILLED; the same sweep with resume=true continues them
"""

import os
import signal
import socket
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from fedcohort.command.sync import sync
from fedcohort.command.words import read_number
from fedcohort.errors import FedcohortError, OptionError
from fedcohort.host import slurm
from fedcohort.host.lock import is_held
from fedcohort.ranges import refuse
from fedcohort.record.folder import status_of
from fedcohort.startup import jobs, outlook
from fedcohort.startup.jobs import JobRecord, Plan
from fedcohort.startup.options import unknown
from fedcohort.startup.sweep import list_submitted
from fedcohort.tracking import identity

WHAT = ("status", "cancel")
POLL_S = 0.2  # seconds between two looks whether the sweep's process has ended


def status(folder: Path, plan: Plan) -> str:
    """Say how the sweep in `folder` stands."""
    queued = bool(slurm.list_queued(list_submitted(folder))) if plan.launcher.endswith("SlurmLauncher") else False
    found = outlook.look(folder, plan, queued=queued)
    counts = [
        (found.count("done"), "done"),
        (found.count("skipped"), "skipped (finished before)"),
        (found.count("running"), "running"),
        (found.count("failed"), "failed"),
        (found.count("stopped"), "stopped"),
        (found.left, "left"),
        (len(plan.refused), "left out (refused)"),
    ]
    first = f"sweep {folder.name}: {', '.join(f'{n} {how}' for n, how in counts if n) or 'no job has begun'}"
    seconds = found.seconds_left(time.time()) if found.alive or found.queued else None
    ended = "" if found.alive or found.queued or found.count("running") else "; no process works on it"
    lines = [f"{first}{f'; {outlook.about(seconds)} left' if seconds is not None else ended}"]
    every = plan.jobs or [record.words for record in found.records.values()]
    for record in found.records.values():
        if record.how == "failed":
            lines.append(f"  failed: {outlook.vary(every, record.words)}: {record.reason}")
        if record.how == "stopped":
            how = outlook.describe_stopped(record, cancelled=outlook.is_cancelled(folder))
            lines.append(f"  {outlook.vary(every, record.words)}: {how}")
    if (best := found.best()) is not None:
        lines.append(f"  best so far: {outlook.METRIC} {100 * best[0]:.1f} % ({outlook.vary(every, best[1].words)})")
    return "\n".join(lines)


def cancel(folder: Path, plan: Plan, wait_s: float) -> str:
    """End the sweep in `folder` within about `wait_s` seconds, and return how it stands then.

    Raises `OptionError` where another machine must do so.
    """
    alive = outlook.look(folder, plan).alive
    if alive and plan.host != socket.gethostname():
        raise OptionError(f"sweep {folder.name} was started on {plan.host}: cancel it there")
    queued = slurm.list_queued(list_submitted(folder)) if plan.launcher.endswith("SlurmLauncher") else []
    if not alive and not queued:
        return status(folder, plan)
    (folder / jobs.CANCELLED).touch()  # before the process ends, which then says so
    sys.stdout.write(f"waiting for the jobs to finish their round, at most {wait_s:g} s\n")
    sys.stdout.flush()
    lines = _end_process(folder, plan.pid, wait_s) if alive else []
    if killed := slurm.cancel(queued, wait_s) if queued else []:
        lines.append(f"  SLURM killed {' '.join(killed)}: not ended within {wait_s:g} s")
    for record in jobs.read(folder).values():
        lines += _mark_killed(record)
    return "\n".join([status(folder, plan), *lines])


def _end_process(folder: Path, pid: int, wait_s: float) -> list[str]:
    """End the process that was started by hand, by SIGTERM and after `wait_s` by SIGKILL; return a line for the latter.

    It holds a lock as long as it lives. Under SLURM it trains nothing, and ends at once.
    """
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    end = time.monotonic() + wait_s
    while is_held(folder / jobs.LOCK):
        if time.monotonic() > end:
            os.kill(pid, signal.SIGKILL)
            return [f"  process {pid} was killed: not ended within {wait_s:g} s"]
        time.sleep(POLL_S)
    return []


def _mark_killed(record: JobRecord) -> list[str]:
    """Mark a job's MLflow run as KILLED if its process could not do so itself; return a line for a failure."""
    path = record.folder
    known = identity.load(path) if path is not None and record.how in ("running", "stopped") else None
    if path is None or known is None or identity.is_complete(path, known.place) or is_held(path / "run.lock"):
        return []
    if status_of(path).get("status") == "finished":
        return []
    try:
        sync(path)
    except FedcohortError as error:
        return [f"  {error}"]
    return []


def main(words: Sequence[str]) -> int:
    """The command. Raises `OptionError`."""
    typed = [word for word in words if "=" not in word]
    options = dict(word.split("=", 1) for word in words if "=" in word)
    for name in options:
        if name not in ("logs", "wait_s"):
            raise unknown("", name, ["logs", "wait_s"])
    if len(typed) != 2 or typed[0] not in WHAT:
        raise OptionError(f"type fedcohort sweep status ID, or fedcohort sweep cancel ID, got {' '.join(words)!r}")
    what, id = typed
    wait_s = read_number("wait_s", options.get("wait_s", "120"), "[0, inf)")
    sweeps = Path(options.get("logs", "logs")) / "sweeps"
    plan = jobs.read_plan(sweeps / id)
    if plan is None:
        known = sorted(path.parent.name for path in sweeps.glob(f"*/{jobs.PLAN}"))
        raise refuse("ID", f"one of those in {sweeps}: {', '.join(known[-5:]) or 'there are none'}", id)
    text = status(sweeps / id, plan) if what == "status" else cancel(sweeps / id, plan, wait_s)
    sys.stdout.write(f"{text}\n")
    return 0
