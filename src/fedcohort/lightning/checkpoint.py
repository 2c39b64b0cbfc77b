"""The resume checkpoint: at the end of every k-th round, atomic, last of all callbacks, loadable with weights_only.

`last.ckpt` is what `torch.save` writes and, behind it, a digest of that, which is checked before anything is read;
`previous.ckpt` is the one before it. FORMAT counts what a checkpoint holds; CHANGELOG.md says what each one was.
"""

import hashlib
import io
import logging
import math
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

import lightning.pytorch as pl
import torch
from lightning.pytorch.callbacks import Checkpoint

from fedcohort.errors import CheckpointError, DamagedCheckpoint
from fedcohort.host.stopwatch import Stopwatch
from fedcohort.lightning.compat import dumped
from fedcohort.ranks import reduce_max

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

FORMAT = 3
READERS = {
    1: "fedcohort 0.1.0 up to commit 2e9eefb",
    2: "fedcohort 0.1.0 up to commit 656e03a",
}  # of the formats that this version doesn't read
OURS = "fedcohort"  # the entry beside Lightning's
TRAILER = b"\nfedcohort checkpoint, blake2b %b\n"
TRAILER_BYTES = len(TRAILER % (b"0" * 64))
log = logging.getLogger("fedcohort")


class RoundCheckpoint(Checkpoint):
    """Saves `<folder>/last.ckpt`. A `Checkpoint` subclass, so that Lightning calls it after every other callback."""

    def __init__(
        self,
        folder: Path,
        every: int,
        every_s: float,
        stopwatch: Stopwatch,
        saved: Callable[[], None],
        origin: Mapping[str, Any],
    ) -> None:
        """every, every_s: rounds and seconds between two. saved: told after each checkpoint that is on disk.

        origin: what `provenance.this` says of the process, plain data.
        """
        self.path, self.previous = folder / "last.ckpt", folder / "previous.ckpt"
        self.every, self.every_s, self.stopwatch, self.saved, self.origin = every, every_s, stopwatch, saved, origin
        self.last = -math.inf

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        done = trainer.current_epoch + 1
        due = done % self.every == 0 and time.monotonic() - self.last >= self.every_s
        if int(reduce_max(torch.tensor(int(due)))) or done == trainer.max_epochs or trainer.should_stop:
            with self.stopwatch.stage("checkpoint"):
                self.save(trainer)
            self.saved()
            self.last = time.monotonic()

    def save(self, trainer: pl.Trainer) -> None:
        """Write beside, sync, rename: whatever happens, the newest checkpoint that is there is a whole one."""
        checkpoint = dumped(trainer)
        checkpoint[OURS] = {"format": FORMAT, **self.origin}
        if not trainer.is_global_zero:
            return
        partial = self.path.with_suffix(".partial")
        try:
            write(checkpoint, partial)
            if self.path.exists():
                os.replace(self.path, self.previous)
            rename(partial, self.path)
        except OSError as error:
            kept = "the one before it is intact" if self.path.exists() else "there is none yet"
            what = f"the checkpoint of round {trainer.current_epoch + 1} could not be written to {self.path.parent}"
            raise CheckpointError(f"{what} ({error}); {kept}. Make room and go on with resume=true") from error
        finally:
            partial.unlink(missing_ok=True)


class FinalWeights(pl.Callback):
    """Writes `<folder>/weights.pt` at the end: the network's state_dict, plain tensors by name."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "weights.pt"

    def on_fit_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if trainer.is_global_zero:
            partial = self.path.with_suffix(".partial")
            network: torch.nn.Module = pl_module.network  # type: ignore[assignment]
            weights = {
                name: tensor.detach().cpu().contiguous().clone() for name, tensor in network.state_dict().items()
            }
            try:
                with partial.open("wb", buffering=0) as file:
                    _save(weights, _Digested(file))
                rename(partial, self.path)
            finally:
                partial.unlink(missing_ok=True)


class _Digested(io.RawIOBase):
    """A file that keeps a digest of what goes into it, and the error that torch would wrap."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file, self.digest = file, hashlib.blake2b(digest_size=32)
        self.error: OSError | None = None

    def write(self, data: "ReadableBuffer") -> int:
        view = memoryview(data).cast("B")
        self.digest.update(view)
        try:
            rest = view
            while rest:
                rest = rest[self.file.write(rest) :]
        except OSError as error:
            self.error = error
            raise
        return len(view)


def write(checkpoint: Mapping[str, Any], path: Path) -> None:
    """The whole file, seen to the disk. Raises `OSError` where there is no room for it."""
    with path.open("wb", buffering=0) as file:
        digested = _Digested(file)
        _save(checkpoint, digested)
        digested.write(TRAILER % digested.digest.hexdigest().encode())
        os.fsync(file.fileno())


def _save(data: object, digested: _Digested) -> None:
    try:
        torch.save(data, cast(IO[bytes], digested))
    except RuntimeError as error:
        if digested.error is not None:
            raise digested.error from error
        raise


def rename(partial: Path, path: Path) -> None:
    """The commit point of a checkpoint."""
    os.replace(partial, path)


def load(path: Path, config_hash: str) -> dict[str, Any]:
    """The checkpoint, checked.

    Raises `DamagedCheckpoint` where its bytes aren't those that were written, `CheckpointError` where it is of another
    format or of another config.
    """
    checkpoint = _read(path)
    ours = checkpoint.get(OURS, {}) if isinstance(checkpoint, dict) else {}
    if ours.get("format") != FORMAT:
        raise CheckpointError(_other_format(path, ours))
    found = next((s["config_hash"] for s in checkpoint["callbacks"].values() if "config_hash" in s), None)
    if found != config_hash:
        raise CheckpointError(f"{path} belongs to another config (hash {found}, this run has {config_hash})")
    return checkpoint


def _read(path: Path) -> dict[str, Any]:
    """What `path` holds: tensors and plain data only, whatever else somebody put into it."""
    try:
        whole = is_whole(path)
        checkpoint: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise DamagedCheckpoint(f"{path} is damaged and can't be resumed ({type(error).__name__})") from error
    ours = checkpoint.get(OURS, {}) if isinstance(checkpoint, dict) else {}
    if not whole and ours.get("format") != 1:  # which had no digest
        raise DamagedCheckpoint(f"{path} is damaged and can't be resumed (its digest is another)")
    return checkpoint


def is_whole(path: Path) -> bool:
    """Whether the digest at the end of the file is that of what comes before it."""
    digest = hashlib.blake2b(digest_size=32)
    rest = path.stat().st_size - TRAILER_BYTES
    with path.open("rb") as file:
        while rest > 0 and (data := file.read(min(rest, 1 << 20))):
            digest.update(data)
            rest -= len(data)
        return file.read() == TRAILER % digest.hexdigest().encode()


def _other_format(path: Path, ours: Mapping[str, Any]) -> str:
    found = ours.get("format")
    reader = READERS.get(found) if isinstance(found, int) else None
    if "versions" in ours:  # a newer one
        reader = f"fedcohort {ours['versions'].get('fedcohort')} at commit {ours.get('commit')}"
    reads = f"{reader} reads it" if reader else "CHANGELOG.md says which version reads it"
    return f"{path} has the format {found}, this version of fedcohort reads {FORMAT}; {reads}"


def rounds_in(checkpoint: dict[str, Any]) -> int:
    """The rounds that a checkpoint holds: it is made at the end of its last one, which Lightning counts from 0."""
    return int(checkpoint["epoch"]) + 1
