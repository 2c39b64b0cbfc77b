"""A run in five steps: compose, check, load, build, fit. Nothing is written before every check has passed.

`compose` has come before: `train.py` hands over what Hydra composed.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from fedcohort.errors import FedcohortError
from fedcohort.host import disk, memory, slurm, task
from fedcohort.host.interrupt import interrupts
from fedcohort.record import claim, folder, manifest
from fedcohort.record.sweep_folder import SweepJob
from fedcohort.round.budget import Budget
from fedcohort.startup import build, load, nearest_run
from fedcohort.startup.check import make_light, make_parts
from fedcohort.startup.compose import Composed
from fedcohort.startup.observers import Watchers, watchers_of
from fedcohort.tracking import membership

log = logging.getLogger("fedcohort")


def run(composition: Composed, job: SweepJob | None = None) -> Path:
    """Run from the checks at the start to the last artifact, and return the run's folder.

    job: the sweep's, None for a run outside of a sweep.

    Raises `FedcohortError`; `SystemExit` or `interrupt.Stop` with the code of a signal.
    """
    with interrupts.on():
        try:
            return _run(composition, job)
        finally:
            memory.end_run()  # the process of a sweep or a study has hundreds of runs


def _run(composition: Composed, job: SweepJob | None) -> Path:
    config, sweep = composition.config, job.id if job else None
    objects = make_light(composition)
    watchers = watchers_of(composition)
    if task.follows(config["trainer"]["num_nodes"]):
        log.setLevel(logging.ERROR)  # the first task logs the rest, and has the observers
        watchers = replace(watchers, observers=())
    for observer in watchers.observers:
        observer.prepare()  # the tracker's process imports MLflow while this one imports torch
    parts = make_parts(composition, objects)
    facts = load.load(composition, objects, parts)
    network = build.build_network(composition, objects["model"], facts.federation)
    build.probe(composition, objects["model"], network, facts)
    loop = build.build_loop(composition, facts, network)
    from fedcohort.lightning.tasks import Tasks
    from fedcohort.startup.fit import fit

    tasks, logs = Tasks(config["trainer"]["num_nodes"]), Path(config["paths"]["logs"])
    again = slurm.find_restarted_job()
    if tasks.follows:
        with tasks.together():
            return fit(composition, loop, network, watchers, tasks, sweep, None) or logs
    if again:
        log.info("SLURM has started job %s before: it goes on where it was, as with resume=true", again)
    siblings = job.list_siblings() if job else frozenset()
    digest, budget = folder.config_hash(config), Budget.from_config(config)
    request = claim.Request(digest, config["seed"], budget, watchers.ends_early, again, siblings)
    resume = bool(config["resume"]) or again is not None
    with tasks.together(), _claim(logs.absolute(), _name(composition), request, resume) as home:
        if home.finished:
            _reuse(home.path, budget, watchers, job)
            return home.path
        if config["resume"] and home.is_new and job is None:  # most jobs of a resumed sweep have not begun
            hint = nearest_run.describe(home.path.parent, home.path, config)
            log.info("nothing to resume for this config and seed; starting anew%s", hint and f" ({hint})")
        if job:
            job.note("running", home.path)
        fit(composition, loop, network, watchers, tasks, sweep, home)
    return home.path


def _name(composition: Composed) -> str:
    """Return the first part of the run folder's name."""
    choices = composition.choices
    first = f"exp_{choices['experiment']}" if "experiment" in choices else choices["selector"]
    return composition.config["name"] or f"{first}-{choices['agg']}-{choices['dataset']}"


def _reuse(path: Path, budget: Budget, watchers: Watchers, job: SweepJob | None) -> None:
    """Check the folder of a finished run, let observers catch up, and note it in the sweep."""
    manifest.check_all(path)
    ends = budget.list_reached(folder.spending_of(folder.status_of(path)).now)
    reason = f"raise {'= and '.join(ends)}= to extend it" if ends else "a callback ended it"
    log.info("already finished: %s (%s)", path, reason)
    for observer in watchers.observers:
        observer.catch_up(path)
    if job:  # skipped, unless it is this very job that SLURM has started again
        before = membership.sweeps_of(path)
        membership.join(path, job.id)
        job.folder = path
        job.end = "done" if job.id in before and slurm.find_restarted_job() else "skipped"


@contextmanager
def _claim(logs: Path, name: str, request: claim.Request, resume: bool) -> Iterator[folder.RunFolder]:
    """Hold the run's folder until the end. A new folder is removed where the run writes nothing into it."""
    interrupts.check()
    with interrupts.hold(), disk.in_one_line(logs):
        home = claim.claim(logs, name, request, resume)
    try:
        interrupts.check()
        with disk.in_one_line(home.path):
            yield home
    except BaseException as error:
        if isinstance(error, FedcohortError | KeyboardInterrupt | SystemExit) or not folder.status_of(home.path):
            with interrupts.hold():
                home.discard()
        raise
    finally:
        home.release()
