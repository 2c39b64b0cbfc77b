"""Undocumented features of Lightning and torch on which this package depends, one per function.

They are those of Lightning 2.6.6 and torch 2.13.0.
"""

import re
from collections.abc import Callable
from datetime import timedelta
from functools import reduce
from typing import Any

import lightning.pytorch as pl
from lightning.pytorch.strategies import DDPStrategy

from fedcohort.errors import LibraryMismatch

LIGHTNING_VERSION, TORCH_VERSION = "2.6.6", "2.13.0"
RANK_ERROR_PATTERN = r"(?:fedcohort\.errors\.\w+|[\w.]+\.MisconfigurationException): (.*)"

try:
    from lightning.pytorch.strategies.launchers.multiprocessing import _MultiProcessingLauncher
except ImportError as error:
    launcher_name, purpose = "_MultiProcessingLauncher", "forks training processes"
    raise LibraryMismatch("lightning", launcher_name, purpose, LIGHTNING_VERSION) from error


class MultiProcessingLauncher(_MultiProcessingLauncher):
    """Lightning's launcher of processes, as a base class of fedcohort's launcher.

    The class is private, and has its strategy in `_strategy`
    (`lightning/pytorch/strategies/launchers/multiprocessing.py`, Lightning 2.6.6).
    """


def make_checkpoint_content(trainer: pl.Trainer) -> dict[str, Any]:
    """Return the whole state of training of `trainer`, as Lightning would write it.

    `Trainer.save_checkpoint` is not used because it writes the file in place. Depends on
    `Trainer._checkpoint_connector.dump_checkpoint(weights_only)` (Lightning 2.6.6).
    """
    dump_checkpoint = _read_private(trainer, "_checkpoint_connector.dump_checkpoint", "makes checkpoints")
    trainer_state: dict[str, Any] = dump_checkpoint(weights_only=False)
    return trainer_state


def advance_global_step(trainer: pl.Trainer) -> None:
    """Advance Lightning's count of steps, `trainer.global_step`, by one.

    It does not advance in manual optimization without an optimizer of Lightning, and a monitored ModelCheckpoint then
    saves nothing. Depends on `Trainer.fit_loop.epoch_loop.manual_optimization.optim_step_progress` (Lightning 2.6.6).
    """
    progress_path = "fit_loop.epoch_loop.manual_optimization.optim_step_progress"
    step_progress = _read_private(trainer, progress_path, "counts rounds as steps")
    step_progress.increment_ready()
    step_progress.increment_completed()


def read_process_timeout(strategy: DDPStrategy) -> timedelta:
    """Return how long the processes of `strategy` wait for each other.

    Depends on `DDPStrategy._timeout` (Lightning 2.6.6).
    """
    process_timeout: timedelta = _read_private(strategy, "_timeout", "bounds how long processes wait for each other")
    return process_timeout


def make_fork_launcher(strategy: DDPStrategy, launcher_class: Callable[..., MultiProcessingLauncher]) -> None:
    """Make `launcher_class` start the processes of `strategy` if it forks them; called in its `_configure_launcher`.

    Depends on `DDPStrategy._start_method`, the way in which processes start, on `_launcher`, which starts them, and on
    `_configure_launcher`, which sets the latter (Lightning 2.6.6).
    """
    if _read_private(strategy, "_start_method", "says whether processes are forked") == "fork":
        _read_private(strategy, "_launcher", "forks training processes")
        strategy._launcher = launcher_class(strategy, start_method="fork")


def is_callback_module(module_name: str) -> bool:
    """Return whether `module_name`, the name of a module that raised an error, belongs to Lightning's callbacks.

    Depends on the package `lightning.pytorch.callbacks` (Lightning 2.6.6).
    """
    return module_name.startswith("lightning.pytorch.callbacks")


def find_rank_message(error_text: str) -> str | None:
    """Return the message of an error of fedcohort or Lightning in a process started by torch; None for other errors.

    `error_text` is that of `torch.multiprocessing.spawn.ProcessRaisedException`: a traceback, whose last line has the
    error's class and message (torch 2.13.0).
    """
    pattern_match = re.match(RANK_ERROR_PATTERN, error_text.strip().splitlines()[-1].strip())
    return pattern_match[1] if pattern_match else None


def _read_private(owner_object: object, attribute_path: str, use_description: str) -> Any:  # noqa: ANN401  attributes of any type
    try:
        return reduce(getattr, attribute_path.split("."), owner_object)
    except AttributeError as error:
        missing_name = f"{type(owner_object).__name__}.{attribute_path}"
        raise LibraryMismatch("lightning", missing_name, use_description, LIGHTNING_VERSION) from error
