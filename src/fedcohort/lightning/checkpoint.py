"""The checkpoint from which a run resumes: written atomically after rounds, loadable with weights_only.

`last.ckpt` is the output of `torch.save`, followed by its digest, which is checked before the file is read.
`previous.ckpt` is the checkpoint before it. FORMAT is the number of the format; CHANGELOG.md describes each format.
"""

import hashlib
import io
import logging
import math
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

import lightning.pytorch as pl
import torch
from lightning.pytorch.callbacks import Checkpoint

from fedcohort.errors import CheckpointError, DamagedCheckpoint
from fedcohort.host.disk import write_file_atomically
from fedcohort.lightning.compat import make_checkpoint_content
from fedcohort.process_ranks import reduce_max
from fedcohort.round.average import ModelAverage

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

    from fedcohort.lightning.loop import FederatedLoop

CHECKPOINT_FORMAT = 4
READING_VERSION_BY_FORMAT = {
    1: "fedcohort 0.1.0 up to commit 2e9eefb",
    2: "fedcohort 0.1.0 up to commit 656e03a",
    3: "fedcohort 0.1.0 up to commit 201f3ad8",
}  # versions that read the formats that this version does not read
CHECKPOINT_KEY = "fedcohort"  # the entry in addition to Lightning's
TRAILER_TEMPLATE = b"\nfedcohort checkpoint, blake2b %b\n"
TRAILER_BYTES = len(TRAILER_TEMPLATE % (b"0" * 64))
log = logging.getLogger("fedcohort")


class RoundCheckpoint(Checkpoint):
    """A Lightning callback that saves `<folder>/last.ckpt` after some rounds, once all other callbacks have run.

    It first lets the loop decide whether the run ends, which the checkpoint saves: Lightning calls EarlyStopping after
    all other callbacks, and subclasses of `Checkpoint` after that.
    """

    def __init__(
        self, folder: Path, options: Mapping[str, Any], loop: "FederatedLoop", run_origin: Mapping[str, Any]
    ) -> None:
        """Set the folder of the run, the interval and the content of checkpoints.

        Args:
            folder: the run's folder.
            options: `every`, rounds between two checkpoints, and `every_s`, the smallest number of seconds.
            loop: the loop, which measures the time of saving, and is notified when a checkpoint is on disk.
            run_origin: versions and commit of this process (`record.provenance`), plain data.
        """
        self.path, self.previous_path = folder / "last.ckpt", folder / "previous.ckpt"
        self.every_rounds, self.every_s = options["every"], options["every_s"]
        self.loop, self.run_origin, self.last_saved_s = loop, run_origin, -math.inf

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self.loop.decide_end(trainer)
        rounds_done = trainer.current_epoch + 1
        is_checkpoint_due = (
            rounds_done % self.every_rounds == 0 and time.monotonic() - self.last_saved_s >= self.every_s
        )
        if (
            int(reduce_max(torch.tensor(int(is_checkpoint_due))))
            or rounds_done == trainer.max_epochs
            or trainer.should_stop
        ):
            with self.loop.stopwatch.measure_stage_time("checkpoint"):
                self.save_checkpoint(trainer)
            self.loop.record_checkpoint()
            self.last_saved_s = time.monotonic()

    def save_checkpoint(self, trainer: pl.Trainer) -> None:
        """Write the state of `trainer` to a new file, sync and rename it, so that the newest checkpoint is complete.

        Raises `CheckpointError` if the file can't be written.
        """
        checkpoint = make_checkpoint_content(trainer)
        checkpoint[CHECKPOINT_KEY] = {"format": CHECKPOINT_FORMAT, **self.run_origin}
        if not trainer.is_global_zero:
            return
        partial_path = self.path.with_suffix(".partial")
        try:
            write_checkpoint(checkpoint, partial_path)
            if self.path.exists():
                os.replace(self.path, self.previous_path)
            rename_checkpoint(partial_path, self.path)
        except OSError as error:
            previous_text = "the previous checkpoint is intact" if self.path.exists() else "there is none yet"
            raise CheckpointError(
                f"the checkpoint of round {trainer.current_epoch + 1} could not be written to {self.path.parent} "
                f"({error}); {previous_text}. Free disk space and resume with resume=true"
            ) from error
        finally:
            partial_path.unlink(missing_ok=True)


def write_final_weights(folder: Path, network: torch.nn.Module, model_average: ModelAverage) -> None:
    """Write `weights.pt`, the state_dict of `network`, into the run folder `folder` at the end of a run.

    With an average of the model over rounds (`eval.average`), `weights_average.pt` has the averaged weights.
    """
    _write_weights(network, folder / "weights.pt")
    if model_average.vectors:
        with model_average.load_average():
            _write_weights(network, folder / "weights_average.pt")


def _write_weights(network: torch.nn.Module, path: Path) -> None:
    weights_by_name = {k: tensor.detach().cpu().contiguous().clone() for k, tensor in network.state_dict().items()}
    with write_file_atomically(path) as draft_path, draft_path.open("wb", buffering=0) as weights_file:
        _save_with_digest(weights_by_name, _DigestingFile(weights_file))


class _DigestingFile(io.RawIOBase):
    """A file with a digest of the data written to it, and with the error of a write, which torch would hide.

    Attributes:
        binary_file: the underlying file, open for writing.
        digest: blake2b digest of 32 bytes of the data so far.
        error: the first error of a write; None without one.
    """

    def __init__(self, binary_file: IO[bytes]) -> None:
        self.file, self.digest = binary_file, hashlib.blake2b(digest_size=32)
        self.error: OSError | None = None

    def write(self, byte_data: "ReadableBuffer") -> int:
        byte_view = memoryview(byte_data).cast("B")
        self.digest.update(byte_view)
        try:
            unwritten_bytes = byte_view
            while unwritten_bytes:
                unwritten_bytes = unwritten_bytes[self.file.write(unwritten_bytes) :]
        except OSError as error:
            self.error = error
            raise
        return len(byte_view)


def write_checkpoint(checkpoint: Mapping[str, Any], checkpoint_path: Path) -> None:
    """Write `checkpoint`, tensors and plain data, with its digest to `checkpoint_path`, and sync the file to disk.

    Raises `OSError` if the disk is full.
    """
    with checkpoint_path.open("wb", buffering=0) as checkpoint_file:
        digesting_file = _DigestingFile(checkpoint_file)
        _save_with_digest(checkpoint, digesting_file)
        digesting_file.write(TRAILER_TEMPLATE % digesting_file.digest.hexdigest().encode())
        os.fsync(checkpoint_file.fileno())


def _save_with_digest(saved_object: object, digesting_file: _DigestingFile) -> None:
    try:
        torch.save(saved_object, cast(IO[bytes], digesting_file))
    except RuntimeError as error:
        if digesting_file.error is not None:
            raise digesting_file.error from error
        raise


def rename_checkpoint(partial_path: Path, checkpoint_path: Path) -> None:
    """Rename the complete file `partial_path` to `checkpoint_path`, which makes it the newest checkpoint."""
    os.replace(partial_path, checkpoint_path)


def load_checkpoint(path: Path, config_hash: str) -> dict[str, Any]:
    """Return the content of the checkpoint `path` after checking its digest, format and config.

    It holds tensors and plain data only, as other objects could run code when loaded.

    Raises:
        DamagedCheckpoint: the file differs from what was written; `find_resume_point` adds the cure to the message.
        CheckpointError: the file has another format, or is of a config with another hash than `config_hash`.
    """
    try:
        has_valid_digest = has_intact_digest(path)
        checkpoint: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        error_name = type(error).__name__
        raise DamagedCheckpoint(
            f"{path} is damaged and can't be resumed (torch: {error_name}): restore it from a copy"
        ) from error
    saved_metadata = checkpoint.get(CHECKPOINT_KEY, {}) if isinstance(checkpoint, dict) else {}
    if not has_valid_digest and saved_metadata.get("format") != 1:  # format 1 had no digest
        raise DamagedCheckpoint(
            f"{path} is damaged and can't be resumed: its content has changed; restore it from a copy"
        )
    if saved_metadata.get("format") != CHECKPOINT_FORMAT:
        raise CheckpointError(_describe_other_format(path, saved_metadata))
    saved_hash = next((s["config_hash"] for s in checkpoint["callbacks"].values() if "config_hash" in s), None)
    if saved_hash != config_hash:
        raise CheckpointError(
            f"{path} is of a run with other options (hash {saved_hash}, not {config_hash}): type the options of that "
            "run, or start a new run with resume=false"
        )
    return checkpoint


def has_intact_digest(checkpoint_path: Path) -> bool:
    """Return whether the digest at the end of the file `checkpoint_path` is that of the content before it."""
    digest = hashlib.blake2b(digest_size=32)
    remaining_bytes = checkpoint_path.stat().st_size - TRAILER_BYTES
    with checkpoint_path.open("rb") as checkpoint_file:
        while remaining_bytes > 0 and (file_chunk := checkpoint_file.read(min(remaining_bytes, 1 << 20))):
            digest.update(file_chunk)
            remaining_bytes -= len(file_chunk)
        return checkpoint_file.read() == TRAILER_TEMPLATE % digest.hexdigest().encode()


def _describe_other_format(path: Path, saved_metadata: Mapping[str, Any]) -> str:
    saved_format = saved_metadata.get("format")
    reading_version = READING_VERSION_BY_FORMAT.get(saved_format) if isinstance(saved_format, int) else None
    if "versions" in saved_metadata:  # a newer format
        reading_version = (
            f"fedcohort {saved_metadata['versions'].get('fedcohort')} at commit {saved_metadata.get('commit')}"
        )
    reader_text = f"{reading_version} reads it" if reading_version else "CHANGELOG.md says which version reads it"
    return f"{path} has the format {saved_format}, this version of fedcohort reads {CHECKPOINT_FORMAT}; {reader_text}"


def count_checkpoint_rounds(checkpoint: dict[str, Any]) -> int:
    """Return the number of completed rounds in a checkpoint, which stores the index of the last one, counted from 0."""
    return int(checkpoint["epoch"]) + 1
