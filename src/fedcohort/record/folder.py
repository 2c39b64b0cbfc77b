"""Run folders: the files of a run, its hash and its status. `record/claim.py` decides which folder a run takes.

<logs>/runs/<name>-<hash>-s<seed>[-2, -3, ...]/   config.yaml status.json run.log journal.jsonl clients.parquet
                                                  info.json info.npz starts.jsonl last.ckpt previous.ckpt
                                                  weights.pt weights_average.pt summary.json manifest.json
                                                  figures/ report.html
"""

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from fedcohort.errors import DamagedFile
from fedcohort.host import disk
from fedcohort.host.disk import is_file
from fedcohort.host.lock import try_to_lock
from fedcohort.record import digest
from fedcohort.roles import RunIdentity, select_options
from fedcohort.round.budget import BudgetHistory, BudgetUse

LAST_CKPT, PREVIOUS_CKPT = "last.ckpt", "previous.ckpt"
LOG_FILE, LOCK_FILE = "run.log", "run.lock"
MANIFEST_FILES = (  # files in the manifest of a run that has ended
    *("config.yaml", "status.json", "journal.jsonl", "clients.parquet", "info.json", "info.npz", "starts.jsonl"),
    *("weights.pt", "weights_average.pt", "summary.json"),
)
UNLISTED_RUN_FILES = ("manifest.json", LOG_FILE, LOCK_FILE, LAST_CKPT, PREVIOUS_CKPT, "mlflow.json", "report.html")
RUN_SUBFOLDERS = ("clients", "figures")


@dataclass
class RunFolder:
    """A run folder whose lock this process holds until `release_lock`.

    Attributes:
        path: the folder.
        lock_file: the locked file.
        is_new: whether this process made the folder.
        is_finished: whether the folder holds the finished run that this run would equal, so that nothing is trained.
    """

    path: Path
    lock_file: IO[str]
    is_new: bool = False
    is_finished: bool = False

    def remove_if_untrained(self) -> None:
        """Remove the folder if this process made it and no round was trained in it."""
        if self.is_new and not has_checkpoint(self.path) and not read_status(self.path).get("rounds_done"):
            shutil.rmtree(self.path, ignore_errors=True)

    def release_lock(self) -> None:
        """Release the lock of the run folder, so that another process can take it."""
        self.lock_file.close()


def config_hash(config: Mapping[str, Any]) -> str:
    """Return a hash, eight hex digits, of the options in `config` that decide results, without the seed.

    These are the options with `RunIdentity.OTHER_RUN_BY_HASH`.
    """
    options_json = json.dumps(
        select_options(config, RunIdentity.OTHER_RUN_BY_HASH), sort_keys=True, separators=(",", ":")
    )
    return hashlib.blake2b(options_json.encode(), digest_size=4).hexdigest()


def write_atomically(path: Path, new_content: str | bytes | memoryview) -> None:
    """Write `new_content` to the file `path`. If the process is killed, the file has all of it or the old content."""
    with disk.write_file_atomically(path) as draft_path, draft_path.open("xb") as draft_file:
        draft_file.write(new_content.encode() if isinstance(new_content, str) else new_content)
        draft_file.flush()
        os.fsync(draft_file.fileno())


def has_checkpoint(run_path: Path) -> bool:
    """Return whether the run folder `run_path` holds a checkpoint."""
    return (run_path / LAST_CKPT).exists() or (run_path / PREVIOUS_CKPT).exists()


def check_file_types(path: Path) -> None:
    """Raise `DamagedFile` if a file of the run folder `path` is no regular file, or a subfolder is no folder."""
    for k in (*MANIFEST_FILES, *UNLISTED_RUN_FILES):
        is_file(path / k)
    for k in RUN_SUBFOLDERS:
        if (path / k).exists() and not (path / k).is_dir():
            raise DamagedFile(f"{path / k} is damaged: it must be a folder. Restore it from a copy, or remove it")


def read_status(run_path: Path) -> dict[str, Any]:
    """Return the content of `status.json` in the run folder `run_path`.

    The result is {} if the file is damaged, or the run was killed before it wrote the file. The checkpoint also has the
    number of completed rounds. Raises `DamagedFile` if `status.json` is no regular file, such as a pipe.
    """
    try:
        status_text = (run_path / "status.json").read_text() if is_file(run_path / "status.json") else "{}"
        status_content = json.loads(status_text)
    except (OSError, ValueError):
        return {}
    if not isinstance(status_content, dict) or digest.check_digest(status_text)[1] is False:
        return {}
    return status_content if all(isinstance(status_content.get(f, 0), int) for f in ("rounds_done", "rounds")) else {}


def read_spending(status_content: Mapping[str, Any]) -> BudgetHistory:
    """Return what a run has spent of its budget, from `status_content`, the content of its `status.json`.

    Files of older versions have the rounds only.
    """
    if "spent" in status_content:
        return BudgetHistory.from_plain_data(status_content["spent"])
    return BudgetHistory(BudgetUse(status_content.get("rounds_done", 0)))


def describe_log(run_path: Path | None) -> str:
    """Return "; log: <run_path>/run.log" for the end of a message; "" if `run_path` is None or holds no log."""
    return f"; log: {run_path / LOG_FILE}" if run_path is not None and (run_path / LOG_FILE).exists() else ""


def take_lock(run_path: Path) -> IO[str] | None:
    """Return the locked file of the run folder `run_path`; None if another process holds the lock.

    The lock ends when the file is closed or its process ends. Raises `DamagedFile` if `run.lock` is no regular file.
    """
    is_file(run_path / LOCK_FILE)  # raises for a pipe, which would block
    return try_to_lock(run_path / LOCK_FILE)
