"""One `Trainer.fit` in a run's folder, and the ways in which it may end. Importing this imports Lightning."""

import logging
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import torch
from lightning.fabric.plugins.environments.lightning import LightningEnvironment
from lightning.fabric.utilities.exceptions import MisconfigurationException
from omegaconf import OmegaConf
from torch.multiprocessing.spawn import ProcessExitedException, ProcessRaisedException

from fedcohort import folder, messages, provenance
from fedcohort.assemble import Composed
from fedcohort.callback.status import RunStatus
from fedcohort.commands import command
from fedcohort.engine.checkpoint import FinalWeights, RoundCheckpoint
from fedcohort.engine.data import CohortDataModule
from fedcohort.engine.loop import FederatedLoop
from fedcohort.engine.module import ClientModule
from fedcohort.engine.stop import GracefulStop
from fedcohort.engine.strategy import strategy_for
from fedcohort.errors import FedcohortError, IncompatibleConfig, OptionError
from fedcohort.interrupt import NOTHING, PIPE, Phase, watch
from fedcohort.restart import find
from fedcohort.roles import Identity, kept

log = logging.getLogger("fedcohort")


def fit(
    made: Composed,
    home: folder.RunFolder,
    loop: FederatedLoop,
    network: torch.nn.Module,
    observers: Sequence[Any],
    processes: Mapping[str, Any],
    info: Callable[..., Any],
    sweep: str | None,
) -> None:
    """Train from the folder's checkpoint on, to the last artifact.

    observers: those of `callback.base` and Lightning's callbacks; the run's status comes last. info: makes what they
    are told at the start. Raises `FedcohortError`; `SystemExit` with the code of the signal that stopped the run.
    """
    messages.quiet_lightning()
    config = made.config
    held = {**kept(config, Identity.HELD), **{f"trainer.{k}": v for k, v in processes.items()}}
    origin = provenance.this(config, held)
    restart = find(home, loop.settings.config_hash, config["resume"], origin)
    done = _checked(restart.rounds, home.path, config["rounds"])
    folder.write_atomically(home.path / "config.yaml", OmegaConf.to_yaml(OmegaConf.create(dict(config))))
    start = {"round": done, "resume": config["resume"], "forced": restart.forced, **origin}
    provenance.note_start(home.path, start)
    torch.set_num_threads(config["trainer"]["threads"])
    loop.observers = [part for part in observers if not isinstance(part, pl.Callback)]
    loop.info = partial(info, done=done)
    loop.folder, loop.new_folder = home.path, home.made
    loop.lay_out(network)
    with messages.to_file(home.path), _ending(home.path, _again(made, sweep)):
        if not home.made:
            where = f"after round {done}" if done else "from the start: no round was saved"
            log.info("resuming %s %s", home.path, where)
        trainer = _trainer(config, home.path, loop, observers, processes, origin, fresh=not done)
        watch.phase = Phase.FORKED  # until `GracefulStop` says otherwise, which it does in the process that trains
        trainer.fit(
            ClientModule(network),
            datamodule=CohortDataModule(loop.federation, config["engine"]["slices"]),
            ckpt_path=home.checkpoint if done else None,
            weights_only=True,
        )


def _checked(done: int, path: Path, rounds: int) -> int:
    """`done`, the rounds that the run has. Raises `OptionError` where they are more than are wanted."""
    if done > rounds:
        raise OptionError(f"rounds must be at least {done}, as many as {path} has already, got {rounds}")
    return done


def _trainer(
    config: Mapping[str, Any],
    path: Path,
    loop: FederatedLoop,
    observers: Sequence[Any],
    processes: Mapping[str, Any],
    origin: provenance.Start,
    *,
    fresh: bool,
) -> pl.Trainer:
    status = next(part for part in observers if isinstance(part, RunStatus))

    def saved() -> None:
        loop.checkpointed()
        status.checkpointed()

    pauses = (config["checkpoint"]["every"], config["checkpoint"]["every_s"])
    theirs = [part for part in observers if isinstance(part, pl.Callback)]
    last = RoundCheckpoint(path, *pauses, loop.watch, saved, origin)
    # On one node the processes are ours, forked: inside of a SLURM job Lightning would take each for SLURM's rank 0.
    ours = LightningEnvironment() if processes["num_nodes"] == 1 else None
    try:
        return pl.Trainer(
            strategy=strategy_for(**processes),
            **processes,
            plugins=ours,
            max_epochs=config["rounds"],
            check_val_every_n_epoch=config["eval"]["every"],
            num_sanity_val_steps=-1 if fresh else 0,  # it scores w_0: step 0
            callbacks=[GracefulStop(), FinalWeights(path), loop, *theirs, last],
            default_root_dir=path,  # a ModelCheckpoint without a folder of its own writes here
            logger=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            use_distributed_sampler=False,
        )
    except RuntimeError as error:  # two callbacks whose states could not be told apart
        raise _refused(error) from error


@contextmanager
def _ending(path: Path, again: str) -> Iterator[None]:
    """A line for each way in which a fit may end before its time. again: what goes on with it."""
    try:
        yield
    except BaseException as error:
        if isinstance(error, MisconfigurationException) or _by_a_callback(error):
            raise _refused(error) from error
        forked = isinstance(error, ProcessExitedException | ProcessRaisedException)
        stopped = forked or isinstance(error, KeyboardInterrupt | SystemExit) or watch.phase is Phase.DEAF
        if forked and not watch.code:
            raise FedcohortError(_death_of_a_rank(error)) from error
        if not watch.code or not stopped:
            raise
    finally:
        watch.phase = Phase.START
        watch.listen()
    if watch.code:
        _say_how_far(path, again)
        raise SystemExit(watch.code)


def _say_how_far(path: Path, again: str) -> None:
    status = folder.status_of(path)
    if done := status.get("rounds_done"):
        if status["status"] != "finished":
            log.warning("stopped after round %d; go on with: %s", done, again)
    elif watch.code != PIPE:
        log.warning("%s", NOTHING)


def _again(made: Composed, sweep: str | None) -> str:
    """The command that goes on with the run."""
    if sweep:
        return "the same sweep and resume=true"
    typed = [word for word in made.overrides if not word.startswith("resume=")]
    return f"{command('python')} {shlex.join(['train.py', *typed, 'resume=true'])}"


def _by_a_callback(error: BaseException) -> bool:
    """Whether one of Lightning's own callbacks raised it, say because nothing logs what it monitors."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    module = trace.tb_frame.f_globals.get("__name__", "") if trace is not None else ""
    return isinstance(error, RuntimeError) and module.startswith("lightning.pytorch.callbacks")


def _refused(error: BaseException) -> IncompatibleConfig:
    return IncompatibleConfig(f"Lightning refuses these callbacks: {str(error).splitlines()[0]}")


def _death_of_a_rank(error: Any) -> str:
    """One line from what torch says of a process that died or raised."""
    last = str(error).strip().splitlines()[-1].strip()
    if said := re.match(r"(?:fedcohort\.errors\.\w+|[\w.]+\.MisconfigurationException): (.*)", last):
        return said[1]
    return f"training process {error.error_index} ended ({last}); go on from the last checkpoint with resume=true"
