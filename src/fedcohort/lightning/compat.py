"""What this room rests on of Lightning and torch that they don't document: each part in a function of its own.

All of it was read in Lightning 2.6.6 and torch 2.13.0.
"""

import re
from collections.abc import Callable
from datetime import timedelta
from functools import reduce
from typing import Any

import lightning.pytorch as pl
from lightning.pytorch.strategies import DDPStrategy

from fedcohort.errors import ForeignChange

LIGHTNING, TORCH = "2.6.6", "2.13.0"
RAISED_IN_A_RANK = r"(?:fedcohort\.errors\.\w+|[\w.]+\.MisconfigurationException): (.*)"

try:
    from lightning.pytorch.strategies.launchers.multiprocessing import _MultiProcessingLauncher
except ImportError as error:
    raise ForeignChange("lightning", "_MultiProcessingLauncher", "forks training processes", LIGHTNING) from error


class MultiProcessingLauncher(_MultiProcessingLauncher):
    """Lightning's launcher of processes, for ours to inherit.

    The class is private, and keeps what launches in `_strategy`
    (`lightning/pytorch/strategies/launchers/multiprocessing.py`, Lightning 2.6.6).
    """


def dumped(trainer: pl.Trainer) -> dict[str, Any]:
    """Return the whole state of training, as Lightning would write it.

    `Trainer.save_checkpoint` writes it by itself, and in place. Rests on
    `Trainer._checkpoint_connector.dump_checkpoint(weights_only)` (Lightning 2.6.6).
    """
    dump = _part(trainer, "_checkpoint_connector.dump_checkpoint", "makes checkpoints")
    state: dict[str, Any] = dump(weights_only=False)
    return state


def count_a_step(trainer: pl.Trainer) -> None:
    """Let `Trainer.global_step` advance by one.

    Manual optimization never does where no Lightning optimizer steps, and a monitored ModelCheckpoint then saves
    nothing. Rests on `Trainer.fit_loop.epoch_loop.manual_optimization.optim_step_progress` (Lightning 2.6.6).
    """
    path = "fit_loop.epoch_loop.manual_optimization.optim_step_progress"
    progress = _part(trainer, path, "counts rounds as steps")
    progress.increment_ready()
    progress.increment_completed()


def timeout_of(strategy: DDPStrategy) -> timedelta:
    """How long processes wait for each other. Rests on `DDPStrategy._timeout` (Lightning 2.6.6)."""
    found: timedelta = _part(strategy, "_timeout", "bounds how long processes wait for each other")
    return found


def launch_forked(strategy: DDPStrategy, launcher: Callable[..., MultiProcessingLauncher]) -> None:
    """Let `launcher` make the processes of a strategy that forks them; called in its `_configure_launcher`.

    Rests on `DDPStrategy._start_method`, which says how, `_launcher`, which is used, and on `_configure_launcher` being
    what sets the latter (Lightning 2.6.6).
    """
    if _part(strategy, "_start_method", "says whether processes are forked") == "fork":
        _part(strategy, "_launcher", "forks training processes")
        strategy._launcher = launcher(strategy, start_method="fork")


def raised_by_a_callback(module: str) -> bool:
    """Whether `module`, in which an error was raised, is of Lightning's own callbacks: they raise plain RuntimeErrors.

    Rests on the package `lightning.pytorch.callbacks` (Lightning 2.6.6).
    """
    return module.startswith("lightning.pytorch.callbacks")


def said_in_a_rank(text: str) -> str | None:
    """What an error of ours, or Lightning's, said in a process that torch has started; None of any other error.

    Rests on the traceback being the text of `torch.multiprocessing.spawn.ProcessRaisedException`, whose last line is
    the error's class and what it says (torch 2.13.0).
    """
    said = re.match(RAISED_IN_A_RANK, text.strip().splitlines()[-1].strip())
    return said[1] if said else None


def _part(of: object, path: str, use: str) -> Any:  # noqa: ANN401  whatever stands there
    try:
        return reduce(getattr, path.split("."), of)
    except AttributeError as error:
        raise ForeignChange("lightning", f"{type(of).__name__}.{path}", use, LIGHTNING) from error
