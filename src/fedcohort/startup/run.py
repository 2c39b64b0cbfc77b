"""A run in five steps: compose, check, load, build, fit. Nothing is written before every check has passed.

The first step, `compose`, is done before `run` is called: `train.py` hands over the config that Hydra has composed.
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
from fedcohort.startup import build, load
from fedcohort.startup.check import make_components, make_light_components
from fedcohort.startup.compose import Composition
from fedcohort.startup.observers import RunObservers, make_observers
from fedcohort.tracking import sweeps

log = logging.getLogger("fedcohort")


def run(composition: Composition, job: SweepJob | None = None, *, is_last_run: bool = False) -> Path:
    """Execute a run, and return its folder.

    Args:
        composition: the composed config.
        job: the job of the sweep that the run belongs to; None outside of a sweep.
        is_last_run: whether the process ends after this run, so that the run's memory need not be freed.

    Raises:
        FedcohortError: the run is rejected or fails.
        SystemExit: with the code of the signal that stopped it; `interrupt.StopSignal` before training has begun.
    """
    with interrupts.handle_signals():
        try:
            return _execute_run_steps(composition, job)
        finally:
            if not is_last_run:
                memory.collect_garbage_after_run()  # a process may execute hundreds of runs


def _execute_run_steps(composition: Composition, job: SweepJob | None) -> Path:
    config, sweep_id = composition.config, job.id if job else None
    num_nodes = config["trainer"]["num_nodes"]
    # Step 2: check
    light_components = make_light_components(composition)
    run_observers = make_observers(composition)
    if task.is_non_first_task(num_nodes):  # the first task has the observers, and logs for all
        log.setLevel(logging.ERROR)
        run_observers = replace(run_observers, observers=())
    for observer in run_observers.observers:
        observer.prepare()  # a tracker starts its process, which imports MLflow while this one imports torch
    # Step 3: load
    run_facts = load.load_run_facts(composition, light_components, make_components(composition, light_components))
    # Step 4: build
    network = build.build_network(composition, light_components["model"], run_facts.federation)
    build.check_forward_pass(composition, light_components["model"], network, run_facts)
    loop = build.build_loop(composition, run_facts, network)
    # Step 5: fit, in the folder of the run
    from fedcohort.lightning.tasks import ProgramTasks
    from fedcohort.startup.fit import fit

    memory.enable_garbage_collection()
    program_tasks, logs_folder = ProgramTasks(num_nodes), Path(config["paths"]["logs"])
    restarted_slurm_job = slurm.find_restarted_job()
    if program_tasks.is_follower:
        with program_tasks.connect():
            return fit(composition, loop, network, run_observers, program_tasks, sweep_id, None) or logs_folder
    if restarted_slurm_job:
        log.info("SLURM has restarted job %s: it resumes its run, as with resume=true", restarted_slurm_job)
    sibling_folders = job.list_sibling_folders() if job else frozenset()
    budget, is_resuming = Budget.from_config(config), bool(config["resume"]) or restarted_slurm_job is not None
    run_identity = (folder.config_hash(config), config["seed"], budget)
    run_request = claim.RunRequest(*run_identity, run_observers.callback_configs, restarted_slurm_job, sibling_folders)
    run_folder_lock = _lock_run_folder(logs_folder.absolute(), _name_run_folder(composition), run_request, is_resuming)
    with program_tasks.connect(), run_folder_lock as run_folder:
        if run_folder.is_finished:
            _reuse_finished_run(run_folder.path, budget, run_observers, job)
            return run_folder.path
        if config["resume"] and run_folder.is_new and job is None:  # in a resumed sweep, most jobs have no run yet
            log.info("nothing to resume for this config and seed; starting a new run")
        if job:
            job.write_record("running", run_folder.path)
        fit(composition, loop, network, run_observers, program_tasks, sweep_id, run_folder)
    return run_folder.path


def _name_run_folder(composition: Composition) -> str:
    """Return the first part of the run folder's name, from the choices in the config `composition`."""
    choices = composition.choices
    method_name = f"exp_{choices['experiment']}" if "experiment" in choices else choices["selector"]
    return composition.config["name"] or f"{method_name}-{choices['agg']}-{choices['dataset']}"


def _reuse_finished_run(run_path: Path, budget: Budget, run_observers: RunObservers, job: SweepJob | None) -> None:
    """Check the folder of a finished run, complete the observers' records, and record the run in its sweep.

    Args:
        run_path: the run's folder.
        budget: the budget of the run.
        run_observers: the observers of the run.
        job: the job of the sweep that the run belongs to; None outside of a sweep.
    """
    manifest.check_all_files(run_path)
    reached_limits = budget.list_reached_limits(folder.read_spending(folder.read_status(run_path)).now)
    end_reason = f"raise {'= and '.join(reached_limits)}= to extend it" if reached_limits else "a callback ended it"
    log.info("already finished: %s (%s)", run_path, end_reason)
    for observer in run_observers.observers:
        observer.catch_up(run_path)
    if job:
        is_run_in_sweep = job.id in sweeps.list_sweeps_of_run(run_path)
        sweeps.add_sweep_to_run(run_path, job.id)
        job.folder = run_path
        job.end_state = "done" if is_run_in_sweep and slurm.find_restarted_job() else "skipped"


@contextmanager
def _lock_run_folder(
    logs_folder: Path, name_start: str, run_request: claim.RunRequest, is_resuming: bool
) -> Iterator[folder.RunFolder]:
    """Lock the run's folder in a block. A new folder is removed if nothing was written into it.

    Args:
        logs_folder: folder of all runs.
        name_start: first part of a new folder's name.
        run_request: hash of the config, seed and budget, by which an earlier folder of the run is found.
        is_resuming: whether the run resumes in an earlier folder.
    """
    interrupts.raise_if_interrupted()
    with interrupts.delay_signals(), disk.convert_disk_errors(logs_folder):
        run_folder = claim.claim_folder(logs_folder, name_start, run_request, is_resuming)
    try:
        interrupts.raise_if_interrupted()
        with disk.convert_disk_errors(run_folder.path):
            yield run_folder
    except BaseException as error:
        is_expected_error = isinstance(error, FedcohortError | KeyboardInterrupt | SystemExit)
        if is_expected_error or not folder.read_status(run_folder.path):
            with interrupts.delay_signals():
                run_folder.remove_if_untrained()
        raise
    finally:
        run_folder.release_lock()
