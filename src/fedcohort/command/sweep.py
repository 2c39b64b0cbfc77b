"""How a sweep stands, and its end: fedcohort sweep status|cancel ID [logs=logs]

ID is the name of its folder in logs/sweeps.
status: how many jobs are done, running, failed and left, about how long that takes, and the best so far: by the last
        server_val/acc, for nothing is chosen by the test set
cancel: end it. Under basic and SLURM the jobs that run finish their round and save; resume=true goes on with them
"""

import os
import signal
import socket
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from fedcohort.errors import OptionError
from fedcohort.host import slurm
from fedcohort.ranges import refuse
from fedcohort.startup import jobs, outlook
from fedcohort.startup.jobs import Plan
from fedcohort.startup.options import unknown
from fedcohort.startup.sweep import list_submitted

WHAT = ("status", "cancel")


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
    ended = "" if found.alive or found.queued else "; nobody is at work on it"
    lines = [f"{first}{f'; {outlook.about(seconds)} left' if seconds is not None else ended}"]
    every = plan.jobs or [record.words for record in found.records.values()]
    for record in found.records.values():
        if record.how == "failed":
            lines.append(f"  failed: {outlook.vary(every, record.words)}: {record.reason}")
    if (best := found.best()) is not None:
        lines.append(f"  best so far: {outlook.METRIC} {100 * best[0]:.1f} % ({outlook.vary(every, best[1].words)})")
    return "\n".join(lines)


def cancel(folder: Path, plan: Plan) -> str:
    """End the sweep in `folder`, and say what was ended. Raises `OptionError` where another machine must do so."""
    said = []
    if outlook.look(folder, plan).alive:
        if plan.host != socket.gethostname():
            raise OptionError(f"sweep {folder.name} was started on {plan.host}: cancel it there")
        with suppress(ProcessLookupError):
            os.kill(plan.pid, signal.SIGTERM)
            said.append(f"process {plan.pid} was asked to end")
    if plan.launcher.endswith("SlurmLauncher") and (left := slurm.list_queued(list_submitted(folder))):
        slurm.cancel(left)
        said.append(f"SLURM was asked to end {' '.join(left)}")
    return f"sweep {folder.name}: {'; '.join(said) or 'nobody is at work on it'}"


def main(words: Sequence[str]) -> int:
    """The command. Raises `OptionError`."""
    typed = [word for word in words if "=" not in word]
    options = dict(word.split("=", 1) for word in words if "=" in word)
    for name in options:
        if name != "logs":
            raise unknown("", name, ["logs"])
    if len(typed) != 2 or typed[0] not in WHAT:
        raise OptionError(f"type fedcohort sweep status ID, or fedcohort sweep cancel ID, got {' '.join(words)!r}")
    what, id = typed
    sweeps = Path(options.get("logs", "logs")) / "sweeps"
    plan = jobs.read_plan(sweeps / id)
    if plan is None:
        known = sorted(path.parent.name for path in sweeps.glob(f"*/{jobs.PLAN}"))
        raise refuse("ID", f"one of those in {sweeps}: {', '.join(known[-5:]) or 'there are none'}", id)
    sys.stdout.write(f"{(status if what == 'status' else cancel)(sweeps / id, plan)}\n")
    return 0
