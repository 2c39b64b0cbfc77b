"""The status of a sweep, and its end: fedcohort sweep status|cancel ID [logs=logs wait_s=120]

ID is the name of its folder in logs/sweeps, or last for the newest. A study's sweeps are in logs=logs/studies/NAME.
status: how many jobs are done, running, failed and left, the time left, and the best job so far by the last
        server_val/acc, as nothing is chosen by the test set
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
from functools import partial
from pathlib import Path

from fedcohort import ranges
from fedcohort.command.arguments import read_options
from fedcohort.command.sync import send_missing_rounds
from fedcohort.console.terminal import print_line
from fedcohort.errors import DamagedFile, FedcohortError, OptionError
from fedcohort.host import slurm
from fedcohort.host.lock import is_locked
from fedcohort.jobs import cluster
from fedcohort.jobs import status as sweep_status
from fedcohort.record import sweep_folder
from fedcohort.record.folder import read_status
from fedcohort.record.sweep_folder import JobRecord, SweepPlan
from fedcohort.report.render import render
from fedcohort.tracking import identity

SWEEP_ACTIONS = ("status", "cancel")
POLL_INTERVAL_S = 0.2  # seconds between two looks whether the sweep's process has ended


def render_status(folder: Path, sweep_plan: SweepPlan) -> str:
    """Return the status of the sweep in `folder`: one line of counts, and one for each job that did not end well.

    `sweep_plan` has the jobs of the sweep.
    """
    sweep_state = sweep_status.read_sweep_status(folder, sweep_plan)
    job_overrides = sweep_plan.jobs or [r.words for r in sweep_state.records.values()]
    return render(
        "sweep_jobs.txt.j2",
        line=sweep_status.describe_sweep(folder.name, sweep_state),
        records=sweep_state.records.values(),
        how="cancelled by you" if sweep_status.is_cancelled(folder) else "stopped",
        varying=partial(sweep_status.list_varying_overrides, job_overrides),
        read_status=read_status,
    ).rstrip()


def cancel_sweep(folder: Path, sweep_plan: SweepPlan, wait_s: float) -> str:
    """End the sweep in `folder` within about `wait_s` seconds, and return its status as text.

    `sweep_plan` names its machine and process. Raises `OptionError` if the sweep was started on another machine.
    """
    is_sweep_running = is_locked(folder / sweep_folder.SWEEP_LOCK_FILE)
    if is_sweep_running and sweep_plan.host != socket.gethostname():
        raise OptionError(f"sweep {folder.name} was started on {sweep_plan.host}: cancel it there")
    queued_jobs = cluster.list_queued_array_ids(folder)
    if not is_sweep_running and not queued_jobs:
        return render_status(folder, sweep_plan)
    (folder / sweep_folder.CANCELLED_MARKER_FILE).touch()  # before the process ends, which then says so
    print_line(f"waiting for the jobs to finish their round, at most {wait_s:g} s")
    message_lines = _end_process(folder, sweep_plan.pid, wait_s) if is_sweep_running else []
    if killed_jobs := slurm.cancel_jobs(queued_jobs, wait_s) if queued_jobs else []:
        message_lines.append(f"  SLURM killed {' '.join(killed_jobs)}: not ended within {wait_s:g} s")
    for job_record in sweep_folder.read_job_records(folder).values():
        message_lines += _mark_run_killed(job_record)
    return "\n".join([render_status(folder, sweep_plan), *message_lines])


def _end_process(folder: Path, pid: int, wait_s: float) -> list[str]:
    """End a process by SIGTERM, and by SIGKILL after some time; return a line to print if SIGKILL was needed.

    The process has ended when its lock is free. Under SLURM it trains nothing, and ends at once.

    Args:
        folder: folder of the sweep, with the lock.
        pid: id of the process.
        wait_s: seconds until SIGKILL.
    """
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    deadline_s = time.monotonic() + wait_s
    while is_locked(folder / sweep_folder.SWEEP_LOCK_FILE):
        if time.monotonic() > deadline_s:
            os.kill(pid, signal.SIGKILL)
            return [f"  process {pid} was killed: not ended within {wait_s:g} s"]
        time.sleep(POLL_INTERVAL_S)
    return []


def _mark_run_killed(job_record: JobRecord) -> list[str]:
    """Mark a job's MLflow run as KILLED if its process could not do so itself; return a line to print after a failure.

    `job_record` is the record of the job.
    """
    run_folder = job_record.folder if job_record.how in ("running", "stopped") else None
    tracked_run = identity.load_tracked_run(run_folder) if run_folder is not None else None
    if (
        run_folder is None
        or tracked_run is None
        or identity.is_upload_complete(run_folder, tracked_run.server_location)
        or is_locked(run_folder / "run.lock")
        or read_status(run_folder).get("status") == "finished"
    ):
        return []
    try:
        send_missing_rounds(run_folder)
    except FedcohortError as error:
        return [f"  {error}"]
    return []


def main(arguments: Sequence[str]) -> int:
    """Print the status of the sweep that `arguments` name, or cancel it; return the exit code 0.

    Raises `OptionError` for an unknown action or sweep, and `DamagedFile` if the sweep's plan can't be read.
    """
    positional_arguments = [argument for argument in arguments if "=" not in argument]
    typed_options = read_options([argument for argument in arguments if "=" in argument], ("logs", "wait_s"))
    if len(positional_arguments) != 2 or positional_arguments[0] not in SWEEP_ACTIONS:
        raise OptionError(f"type fedcohort sweep status ID, or fedcohort sweep cancel ID, got {' '.join(arguments)!r}")
    sweep_action, sweep_id = positional_arguments
    wait_s = ranges.parse_number("wait_s", typed_options.get("wait_s", "120"), "[0, inf)")
    sweeps_folder = Path(typed_options.get("logs", "logs")) / "sweeps"
    sweep_ids = sorted(plan_path.parent.name for plan_path in sweeps_folder.glob(f"*/{sweep_folder.SWEEP_PLAN_FILE}"))
    folder = sweeps_folder / (sweep_ids[-1] if sweep_id == "last" and sweep_ids else sweep_id)
    sweep_plan = sweep_folder.read_plan(folder)
    if sweep_plan is None:
        if not sweep_ids:
            raise OptionError(
                f"{sweeps_folder} holds no sweep: python train.py -m starts one; logs=FOLDER reads others"
            )
        if folder.name in sweep_ids:
            raise DamagedFile(f"{folder / sweep_folder.SWEEP_PLAN_FILE} is damaged: restore it, or remove {folder}")
        allowed_text = f"last, or one of those in {sweeps_folder}: {', '.join(sweep_ids[-5:])}"
        sweep_hint = ranges.did_you_mean(sweep_id, ["last", *sweep_ids])
        raise OptionError(f"{ranges.range_error('ID', allowed_text, sweep_id)}{sweep_hint}")
    status_text = (
        render_status(folder, sweep_plan) if sweep_action == "status" else cancel_sweep(folder, sweep_plan, wait_s)
    )
    sys.stdout.write(f"{status_text}\n")
    return 0
