"""The resume checkpoint: at the end of every k-th round, atomic, last of all callbacks, loadable with weights_only."""

import logging
import math
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import torch
from lightning.pytorch.callbacks import Checkpoint

from fedcohort.engine.stopwatch import Stopwatch
from fedcohort.engine.strategy import reduce_max
from fedcohort.errors import CheckpointError

FORMAT = 1
log = logging.getLogger("fedcohort")


class RoundCheckpoint(Checkpoint):
    """Saves `<folder>/last.ckpt`. A `Checkpoint` subclass, so that Lightning calls it after every other callback."""

    def __init__(self, folder: Path, every: int, every_s: float, watch: Stopwatch, saved: Callable[[], None]) -> None:
        """every, every_s: rounds and seconds between two. saved: told after each checkpoint that is on disk."""
        self.path = folder / "last.ckpt"
        self.every, self.every_s, self.watch, self.saved = every, every_s, watch, saved
        self.last = -math.inf

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        done = trainer.current_epoch + 1
        due = done % self.every == 0 and time.monotonic() - self.last >= self.every_s
        if int(reduce_max(torch.tensor(int(due)))) or done == trainer.max_epochs or trainer.should_stop:
            with self.watch.stage("checkpoint"):
                save(trainer, self.path)
            self.saved()
            self.last = time.monotonic()


def save(trainer: pl.Trainer, path: Path) -> None:
    """Write beside, sync, rename: whatever happens, `path` is a whole checkpoint."""
    partial = path.with_suffix(".partial")
    try:
        checkpoint = trainer._checkpoint_connector.dump_checkpoint(weights_only=False)
        checkpoint["fedcohort"] = {"format": FORMAT}
        if trainer.is_global_zero:
            with partial.open("wb") as file:
                torch.save(checkpoint, file)
                file.flush()
                os.fsync(file.fileno())
            rename(partial, path)
    except (OSError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "PytorchStreamWriter" not in str(error) and "iostream" not in str(error):
            raise
        kept = "the one before it is intact" if path.exists() else "there is none yet"
        what = f"the checkpoint of round {trainer.current_epoch + 1} could not be written to {path.parent} ({error})"
        raise CheckpointError(f"{what}; {kept}. Make room and go on with resume=true") from error
    finally:
        if trainer.is_global_zero:
            partial.unlink(missing_ok=True)


class FinalWeights(pl.Callback):
    """Writes `<folder>/weights.pt` at the end: the network's state_dict, plain tensors by name."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "weights.pt"

    def on_fit_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if trainer.is_global_zero:
            partial = self.path.with_suffix(".partial")
            network: torch.nn.Module = pl_module.network  # type: ignore[assignment]
            torch.save(
                {name: tensor.detach().cpu().contiguous().clone() for name, tensor in network.state_dict().items()},
                partial,
            )
            rename(partial, self.path)


def rename(partial: Path, path: Path) -> None:
    """The commit point of a checkpoint."""
    os.replace(partial, path)


def load(path: Path, config_hash: str) -> dict[str, Any]:
    """The checkpoint, checked. Raises `CheckpointError` if it is truncated, newer, or of another config."""
    try:
        checkpoint: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise CheckpointError(f"{path} is damaged and can't be resumed ({type(error).__name__})") from error
    version = checkpoint.get("fedcohort", {}).get("format")
    if version != FORMAT:
        raise CheckpointError(f"{path} has the format {version}, this version of fedcohort reads {FORMAT}")
    found = next((s["config_hash"] for s in checkpoint["callbacks"].values() if "config_hash" in s), None)
    if found != config_hash:
        raise CheckpointError(f"{path} belongs to another config (hash {found}, this run has {config_hash})")
    return checkpoint


def rounds_in(checkpoint: dict[str, Any]) -> int:
    """The rounds that a checkpoint holds: it is made at the end of its last one, which Lightning counts from 0."""
    return int(checkpoint["epoch"]) + 1
