"""Step 5 of a run: `Trainer.fit` in the run's folder, and the ways in which it may end. This imports Lightning."""

import logging
import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from omegaconf import OmegaConf

from fedcohort.errors import FedcohortError, OptionError
from fedcohort.host import messages
from fedcohort.host.commands import command
from fedcohort.host.interrupt import NOTHING, PIPE, Stopped, interrupts
from fedcohort.host.processes import make_repeatable
from fedcohort.lightning import trainer
from fedcohort.lightning.loop import FederatedLoop
from fedcohort.lightning.tasks import Tasks
from fedcohort.record import folder, manifest, provenance
from fedcohort.roles import Identity, select_options
from fedcohort.round.guard import blame, owners_of
from fedcohort.startup.check import count_processes
from fedcohort.startup.compose import Composed
from fedcohort.startup.observers import Watchers
from fedcohort.startup.restart import Restart, find
from fedcohort.startup.run_info import describe_run

log = logging.getLogger("fedcohort")


@dataclass(frozen=True)
class Beginning:
    """What the tasks of a run agree on before they train: its folder, whether that is new, and where it resumes.

    It travels between processes.
    """

    path: Path
    is_new: bool
    restart: Restart


def fit(
    composition: Composed,
    loop: FederatedLoop,
    network: torch.nn.Module,
    watchers: Watchers,
    tasks: Tasks,
    sweep: str | None,
    home: folder.RunFolder | None,
) -> Path | None:
    """Train from the folder's checkpoint on, to the last artifact, and return the folder.

    home: None for a task that follows another into its folder; then None is returned where that has nothing to do.

    Raises `FedcohortError`; `SystemExit` with the code of the signal that stopped the run.
    """
    messages.quiet_lightning()
    config = composition.config
    processes = count_processes(config)
    identity = {**select_options(config, Identity.FORCED), **{f"trainer.{k}": v for k, v in processes.items()}}
    origin = provenance.this(config, identity, loop.federation.checksum)
    beginning = tasks.agree(lambda: _begin(home, loop, config, origin))
    if beginning is None:
        return None
    path, restart, done = beginning.path, beginning.restart, beginning.restart.rounds
    torch.set_num_threads(config["trainer"]["threads"])
    make_repeatable(config["trainer"]["accelerator"])
    loop.observers, loop.spending = watchers.observers, restart.spending
    loop.ends_early = watchers.ends_early
    loop.info = partial(describe_run, composition, loop, network, sweep, path, restart)
    loop.folder, loop.new_folder = path, beginning.is_new
    loop.lay_out(network)
    to_file = nullcontext() if home is None else messages.to_file(path)
    loop.owners = _owners(composition, loop, network)
    with to_file, _ending(path, _again(composition, sweep), loop.owners):
        if not beginning.is_new:
            where = f"after round {done}" if done else "from the start: no round was saved"
            log.info("resuming %s %s", path, where)
        training = trainer.Training(config, path, loop, watchers.callbacks, processes, origin)
        lightnings = training.trainer(fresh=not done)
        interrupts.forks()  # until `GracefulStop` says otherwise, which it does in the process that trains
        training.fit(lightnings, network, path / folder.NEWEST if done else None)
        if home is not None:
            manifest.seal(path, folder.SEALED)
    return path


def _owners(composition: Composed, loop: FederatedLoop, network: torch.nn.Module) -> dict[str, str]:
    """Return the option, and the class behind it, that each module of the parts' code belongs to."""
    parts = {group: (part, *getattr(part, "hooks", ())) for group, part in vars(loop.parts).items()}
    objects: dict[str, Iterable[object]] = {**parts, "model": list(network.modules())}
    config, words = composition.config, composition.choices
    code = {f"{group}={words[group]} ({config[group]['_target_']})": items for group, items in objects.items()}
    return owners_of(code, loop.parts.needs())


def _begin(
    home: folder.RunFolder | None, loop: FederatedLoop, config: Mapping[str, Any], origin: provenance.Start
) -> Beginning:
    """Find the checkpoint from which the run resumes, and record the start."""
    if home is None:
        raise TypeError("a task that follows begins nothing")
    restart = find(home, loop.settings.config_hash, config["resume"], origin)
    done, rounds = restart.rounds, config["rounds"]
    if done > rounds:
        raise OptionError(f"rounds must be at least {done}, as many as {home.path} has already, got {rounds}")
    loop.settings.budget.check(restart.spending, home.path)
    manifest.withdraw(home.path)  # what it has changes from here on
    folder.write_atomically(home.path / "config.yaml", OmegaConf.to_yaml(OmegaConf.create(dict(config))))
    start = {"round": done, "resume": config["resume"], "forced": restart.forced, **origin}
    provenance.note_start(home.path, start)
    return Beginning(home.path, home.is_new, restart)


@contextmanager
def _ending(path: Path, again: str, owners: Mapping[str, str]) -> Iterator[None]:
    """Report in one line how a fit ends early.

    Args:
        path: the run's folder.
        again: the command that continues the run.
        owners: the option that each module of the parts' code belongs to.
    """
    try:
        yield
    except BaseException as error:
        if refused := trainer.refusal(error):
            raise refused from error
        if blamed := blame(error, owners):
            raise blamed from error
        forked = trainer.is_death(error)
        stopped = forked or isinstance(error, KeyboardInterrupt | SystemExit) or interrupts.waits
        if forked and not interrupts.code:
            raise FedcohortError(trainer.death_of_a_rank(error)) from error
        if not interrupts.code or not stopped:
            raise
    finally:
        interrupts.prepares()
        interrupts.listen()
    if interrupts.code:
        status = folder.status_of(path)
        done = status.get("rounds_done")
        if done and status["status"] != "finished":
            log.warning("stopped after round %d; go on with: %s", done, again)
        elif not done and interrupts.code != PIPE:
            log.warning("%s", NOTHING)
        raise Stopped(interrupts.code, path) if done else SystemExit(interrupts.code)


def _again(composition: Composed, sweep: str | None) -> str:
    """Return the command that resumes the run."""
    if sweep:
        return "the same sweep and resume=true"
    typed = [word for word in composition.overrides if not word.startswith("resume=")]
    return f"{command('python')} {shlex.join(['train.py', *typed, 'resume=true'])}"
