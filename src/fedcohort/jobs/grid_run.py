"""Run all combinations of several values from Python: the jobs, checks, records and launchers of a typed sweep."""

import logging
import time
from collections.abc import Sequence
from contextlib import closing, nullcontext
from datetime import datetime
from pathlib import Path

from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser

from fedcohort.errors import OptionError
from fedcohort.host.lock import try_to_lock
from fedcohort.jobs import live_line, status
from fedcohort.jobs.launch import Launch
from fedcohort.jobs.refused import leave_out_rejected, list_refused
from fedcohort.record import sweep_folder
from fedcohort.record.sweep_folder import Plan, save_plan
from fedcohort.startup import compat
from fedcohort.startup.compose import initialised_hydra
from fedcohort.startup.compose_jobs import compose_job

log = logging.getLogger("fedcohort")


def expand(words: Sequence[str], configs: Path) -> list[list[str]]:
    """Return the overrides of each job: all combinations of the values that `words` hold, separated by commas."""
    with initialised_hydra(configs):
        parser = OverridesParser.create(config_loader=GlobalHydra.instance().config_loader())
        return compat.combinations(parser.parse_overrides(list(words)))


def begin_grid(words: Sequence[str], configs: Path, launcher: str) -> Path:
    """Check all jobs, write the plan of the sweep, and return its new folder.

    Raises `IncompatibleConfig` if jobs would be rejected and `sweep.skip_refused` is false.
    """
    jobs = expand(words, configs)
    config = compose_job(tuple(jobs[0]), configs).config
    if not config["sweep"]["wait"]:
        raise OptionError("sweep.wait=false is for `python train.py -m`: a sweep from Python waits for its jobs")
    refused = list(list_refused(jobs, lambda job: compose_job(job, configs), configs))
    started = leave_out_rejected(refused, jobs, skip=config["sweep"]["skip_refused"])
    folder = Path(config["paths"]["logs"]).absolute() / "sweeps" / f"{datetime.now():%Y-%m-%d_%H-%M-%S_%f}"
    save_plan(folder, Plan(started, [(refusal.words, refusal.reason) for refusal in refused], launcher))
    return folder


def run_grid(sweep: Path, configs: Path, launch: Launch) -> None:
    """Run the jobs of the plan in the folder `sweep`. A job that fails does not end the others."""
    plan = sweep_folder.read_plan(sweep)
    if plan is None:
        raise FileNotFoundError(f"{sweep} holds no {sweep_folder.PLAN_FILE}")
    in_process = launch.launcher == "local" and launch.n_jobs == 1
    lock = try_to_lock(sweep / sweep_folder.LOCK_FILE)

    def announce(number: int) -> None:
        if in_process and number < len(plan.jobs):
            standing = status.SweepStatus(plan, sweep_folder.read(sweep), waits=True)
            line = status.progress_line(number, len(plan.jobs), standing.seconds_left(time.time()))
            log.info("%s: %s", line, status.varying_overrides(plan.jobs, plan.jobs[number]))

    try:
        announce(0)
        live = nullcontext() if in_process else live_line.show_live_line(sweep)
        with live, closing(launch.run(sweep, dict(enumerate(plan.jobs)), configs)) as ended:
            for number in ended:
                announce(number + 1)
    finally:
        if lock is not None:
            lock.close()
        for record in sweep_folder.read(sweep).values():
            if record.how == "failed":
                log.error("failed: %s: %s", " ".join(record.words), record.reason)
