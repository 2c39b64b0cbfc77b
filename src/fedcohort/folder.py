"""Run folders: one per run, never overwritten, found again by the hash of the config.

<logs>/runs/<name>-<hash>-s<seed>[-2, -3, ...]/   config.yaml status.json run.log journal.jsonl clients.parquet
                                                  last.ckpt weights.pt summary.json figures/
"""

import fcntl
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from fedcohort.errors import CheckpointError, OptionError

NOT_IN_HASH = ("resume", "rounds", "trainer", "logger", "callback", "paths", "name", "seed", "requires", "hydra")


def config_hash(config: Mapping[str, Any]) -> str:
    """Eight hex digits over what decides a run's results, its seed apart."""
    kept = {key: value for key, value in config.items() if key not in NOT_IN_HASH}
    text = json.dumps(kept, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=4).hexdigest()


def write_atomically(path: Path, text: str) -> None:
    """All of `text`, or what was there before."""
    partial = path.with_name(path.name + ".partial")
    with partial.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, path)


@dataclass
class RunFolder:
    """A folder that this process owns until `release`."""

    path: Path
    lock: IO[str]
    finished: bool = False

    @property
    def checkpoint(self) -> Path:
        return self.path / "last.ckpt"

    def release(self) -> None:
        self.lock.close()


def status_of(path: Path) -> dict[str, Any]:
    """`status.json`: status and rounds done; {} for a run that was killed before it wrote one."""
    try:
        found: dict[str, Any] = json.loads((path / "status.json").read_text())
    except (OSError, json.JSONDecodeError):
        return {}
    return found


def claim(logs: Path, name: str, digest: str, seed: int, rounds: int, resume: bool) -> RunFolder:
    """A new folder, or with `resume` the newest unfinished one of the same config and seed.

    A finished run that has fewer rounds than asked counts as unfinished. Raises `CheckpointError` where another process
    is at work in it, `OptionError` where the folder can't be written.
    """
    runs = logs / "runs"
    try:
        runs.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OptionError(f"paths.logs must be a folder that can be written, got {str(logs)!r} ({error})") from error
    if resume:
        earlier = _resumable(runs, digest, seed, rounds)
        if earlier is not None:
            return earlier
    return _new(runs, f"{name}-{digest}-s{seed}")


def _new(runs: Path, stem: str) -> RunFolder:
    for number in range(1, 10**6):
        path = runs / (stem if number == 1 else f"{stem}-{number}")
        try:
            path.mkdir()
        except FileExistsError:
            continue
        except OSError as error:
            raise OptionError(
                f"paths.logs must be a folder that can be written, got {str(runs)!r} ({error})"
            ) from error
        lock = _lock(path)
        if lock is not None:
            return RunFolder(path, lock)
    raise OptionError(f"paths.logs holds too many runs called {stem}")


def _resumable(runs: Path, digest: str, seed: int, rounds: int) -> RunFolder | None:
    found = [p for p in runs.glob(f"*-{digest}-s{seed}*") if p.name.split(f"-{digest}-s{seed}")[1][:1] in ("", "-")]
    found.sort(key=lambda path: path.stat().st_ctime if not (path / "config.yaml").exists() else _born(path))
    unfinished = [p for p in found if not _is_finished(p, rounds)]
    # a start that was broken off leaves a newer folder with nothing in it: it must not hide a run that got somewhere
    unfinished.sort(key=lambda path: (path / "last.ckpt").exists())
    if unfinished:
        lock = _lock(unfinished[-1])
        if lock is None:
            raise CheckpointError(f"resume=true: {unfinished[-1]} is being run by another process")
        return RunFolder(unfinished[-1], lock)
    if found and (lock := _lock(found[-1])) is not None:
        return RunFolder(found[-1], lock, finished=True)
    return None


def _born(path: Path) -> float:
    return (path / "config.yaml").stat().st_mtime


def _is_finished(path: Path, rounds: int) -> bool:
    status = status_of(path)
    if status.get("status") != "finished":
        return False
    stopped_early = status.get("early", False) and rounds <= status["rounds"]
    return bool(stopped_early or status.get("rounds_done", 0) >= rounds)


def _lock(path: Path) -> IO[str] | None:
    """The folder's lock, or None where another process holds it. It dies with its process."""
    lock = (path / "run.lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        return None
    return lock
