"""Step 5 of a run: `Trainer.fit` in the run's folder, and the reports of how it ends. This imports Lightning."""

import logging
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import torch

from fedcohort.errors import FedcohortError
from fedcohort.host import messages
from fedcohort.host.commands import shell_command
from fedcohort.host.interrupt import CLOSED_PIPE_CODE, STOPPED_BEFORE_TRAINING, RunPhase, StoppedBySignal, interrupts
from fedcohort.host.processes import make_gpu_results_repeatable, read_process_options
from fedcohort.lightning import trainer
from fedcohort.lightning.loop import FederatedLoop
from fedcohort.lightning.tasks import ProgramTasks
from fedcohort.ranges import range_error
from fedcohort.record import folder, manifest, provenance
from fedcohort.roles import RunIdentity, select_options
from fedcohort.round.guard import find_faulty_component, map_modules_to_options
from fedcohort.round.setup import choose_memory_layout
from fedcohort.startup.compose import Composition, format_config
from fedcohort.startup.observers import RunObservers
from fedcohort.startup.restart import ResumePoint, find_resume_point
from fedcohort.startup.run_info import describe_run

log = logging.getLogger("fedcohort")


def fit(
    composition: Composition,
    loop: FederatedLoop,
    network: torch.nn.Module,
    run_observers: RunObservers,
    program_tasks: ProgramTasks,
    sweep_id: str | None,
    run_folder: folder.RunFolder | None,
) -> Path | None:
    """Train, starting from the checkpoint in the run's folder, and return the folder.

    Args:
        composition: the composed config.
        loop: the loop over the rounds, with the components.
        network: the network to train.
        run_observers: observers and callbacks.
        program_tasks: connects the processes of a run on several machines.
        sweep_id: id of the sweep that the run belongs to, or None.
        run_folder: the run's folder in the first of these processes; None in the others. These return None if the first
            one has nothing to train.

    Raises:
        FedcohortError: training fails.
        SystemExit: with the code of the signal that stopped the run.
    """
    messages.silence_lightning()
    config = composition.config
    process_options = {f"trainer.{k}": v for k, v in read_process_options(config).items()}
    identity_options = {**select_options(config, RunIdentity.SAME_RUN_WITH_FORCE), **process_options}
    start_record = provenance.describe_start(config, identity_options, loop.federation.checksum)
    recorded_start = program_tasks.run_on_first_process(
        lambda: _record_run_start(run_folder, loop, config, start_record) if run_folder else None
    )
    if recorded_start is None:
        return None
    run_path, is_new_run, resume_point = recorded_start
    rounds_done = resume_point.rounds_done
    make_gpu_results_repeatable(config["trainer"]["accelerator"], config["engine"]["precision"])
    loop.observers, loop.spending = run_observers.observers, resume_point.spending
    loop.ends_early = run_observers.callback_configs
    loop.make_run_info = partial(describe_run, composition, loop, network, sweep_id, run_path, resume_point)
    loop.folder, loop.new_folder = run_path, is_new_run
    choose_memory_layout(loop.settings, network, loop.federation)  # before processes are forked, which share it
    log_file_context = nullcontext() if run_folder is None else messages.log_to_file(run_path)
    loop.component_by_module = _list_module_options(composition, loop, network)
    ending_context = _report_ending(run_path, _format_resume_command(composition, sweep_id), loop.component_by_module)
    with log_file_context, _set_torch_threads(config["trainer"]["threads"]), ending_context:
        if not is_new_run:
            resume_text = f"after round {rounds_done}" if rounds_done else "from the start: no round was saved"
            log.info("resuming %s %s", run_path, resume_text)
        trainer.train(config, run_path, loop, network, run_observers.callbacks, start_record, rounds_done)
        if run_folder is not None:
            manifest.write_manifest(run_path, folder.MANIFEST_FILES)
    return run_path


def _list_module_options(composition: Composition, loop: FederatedLoop, network: torch.nn.Module) -> dict[str, str]:
    """Return a text with option and class, such as "model=mlp", for each Python module with a component's code.

    The keys are the names of the modules. The texts are for errors that the code of a component raises.

    Args:
        composition: the composed config.
        loop: the loop of the run, which has the components.
        network: the network.
    """
    objects_by_group = {group: (c, *getattr(c, "hooks", ())) for group, c in vars(loop.components).items()}
    objects_by_group["model"] = tuple(network.modules())
    options = {k: f"{composition.format_choice(k)} ({composition.config[k]['_target_']})" for k in objects_by_group}
    objects_by_option = {options[group]: group_objects for group, group_objects in objects_by_group.items()}
    return map_modules_to_options(objects_by_option, loop.components.needed_signals())


def _record_run_start(
    run_folder: folder.RunFolder, loop: FederatedLoop, config: Mapping[str, Any], start_record: provenance.StartRecord
) -> tuple[Path, bool, ResumePoint]:
    """Find the checkpoint from which the run resumes, and record the start.

    Args:
        run_folder: the run's folder.
        loop: the loop of the run.
        config: the composed config.
        start_record: code, versions and processes of this start.

    Returns:
        The run's folder, whether it is new, and the state from which the run resumes.

    Raises:
        OptionError: the run has more rounds already than its budget allows.
        CheckpointError: the files of the run are damaged, or were written under other conditions.
    """
    resume_point = find_resume_point(run_folder, loop.settings.config_hash, config["resume"], start_record)
    rounds_done, n_rounds = resume_point.rounds_done, config["rounds"]
    if rounds_done > n_rounds:
        raise range_error("rounds", f"at least {rounds_done}, as many as {run_folder.path} has already", n_rounds)
    loop.settings.budget.check_budget_left(resume_point.spending, run_folder.path)
    manifest.remove_manifest(run_folder.path)  # the files change from here on
    folder.write_atomically(run_folder.path / "config.yaml", format_config(config))
    resume_record = {"round": rounds_done, "resume": config["resume"], "forced": resume_point.forced_differences}
    provenance.append_start_record(run_folder.path, {**resume_record, **start_record})
    return run_folder.path, run_folder.is_new, resume_point


@contextmanager
def _set_torch_threads(n_threads: int) -> Iterator[None]:
    """Let torch use `n_threads` threads in a block, and restore the caller's number afterwards."""
    previous_n_threads = torch.get_num_threads()
    torch.set_num_threads(n_threads)
    try:
        yield
    finally:
        torch.set_num_threads(previous_n_threads)


@contextmanager
def _report_ending(run_path: Path, resume_command: str, option_by_module: Mapping[str, str]) -> Iterator[None]:
    """Turn an error or a signal during training into a message of one line.

    Args:
        run_path: the run's folder.
        resume_command: the command that resumes the run.
        option_by_module: the option to which each module of the components' code belongs.
    """
    try:
        yield
    except BaseException as error:
        if user_error := trainer.find_rejection(error) or find_faulty_component(error, option_by_module):
            raise user_error from error
        has_rank_died = trainer.is_process_death(error)
        is_run_stopped = (
            has_rank_died or isinstance(error, KeyboardInterrupt | SystemExit) or interrupts.has_pending_signal
        )
        if has_rank_died and not interrupts.exit_code:
            raise FedcohortError(trainer.describe_rank_death(error)) from error
        if not interrupts.exit_code or not is_run_stopped:
            raise
    finally:
        interrupts.enter_phase(RunPhase.BEFORE_ROUNDS)
        interrupts.reinstall_handlers()
    if interrupts.exit_code:
        run_status = folder.read_status(run_path)
        rounds_done = run_status.get("rounds_done")
        if rounds_done and run_status["status"] != "finished":
            log.warning("stopped after round %d; resume with: %s", rounds_done, resume_command)
        elif not rounds_done and interrupts.exit_code != CLOSED_PIPE_CODE:
            log.warning("%s", STOPPED_BEFORE_TRAINING)
        raise StoppedBySignal(interrupts.exit_code, run_path) if rounds_done else SystemExit(interrupts.exit_code)


def _format_resume_command(composition: Composition, sweep_id: str | None) -> str:
    """Return the command that resumes the run.

    Args:
        composition: the composed config.
        sweep_id: id of the sweep that the run belongs to, or None.
    """
    if sweep_id:
        return "the command of the sweep with resume=true"
    overrides = [override for override in composition.overrides if not override.startswith("resume=")]
    return f"{shell_command('python')} {shlex.join(['train.py', *overrides, 'resume=true'])}"
