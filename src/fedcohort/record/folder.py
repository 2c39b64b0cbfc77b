"""Run folders: one per run, never overwritten, found again by the hash of the config.

<logs>/runs/<name>-<hash>-s<seed>[-2, -3, ...]/   config.yaml status.json run.log journal.jsonl clients.parquet
                                                  info.json info.npz starts.jsonl last.ckpt previous.ckpt
                                                  weights.pt summary.json manifest.json figures/ report.html
"""

import enum
import hashlib
import json
import logging
import os
import shutil
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from fedcohort.errors import CheckpointError, DamagedFile, OptionError
from fedcohort.host import disk
from fedcohort.host.disk import is_file
from fedcohort.host.lock import hold
from fedcohort.record import digest
from fedcohort.roles import Identity, select_options
from fedcohort.round.budget import Budget, Spending, Spent

log = logging.getLogger("fedcohort")


def config_hash(config: Mapping[str, Any]) -> str:
    """Eight hex digits over what decides a run's results, its seed apart: the options of `Identity.HASH`."""
    text = json.dumps(select_options(config, Identity.HASH), sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=4).hexdigest()


def write_atomically(path: Path, content: str | bytes | memoryview) -> None:
    """All of `content`, or what was there before."""
    with disk.replacing(path) as draft, draft.open("xb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
        file.flush()
        os.fsync(file.fileno())


NEWEST, BEFORE = "last.ckpt", "previous.ckpt"
LOG = "run.log"
SEALED = (  # what the manifest of an ended run has
    *("config.yaml", "status.json", "journal.jsonl", "clients.parquet", "info.json", "info.npz", "starts.jsonl"),
    *("weights.pt", "summary.json"),
)
OTHERS = ("manifest.json", LOG, "run.lock", NEWEST, BEFORE, "mlflow.json", "report.html")
FOLDERS = ("clients", "figures")


@dataclass
class RunFolder:
    """A folder that this process owns until `release`. is_new: this process made it."""

    path: Path
    lock: IO[str]
    is_new: bool = False
    finished: bool = False

    @property
    def checkpoint(self) -> Path:
        return self.path / NEWEST

    @property
    def previous(self) -> Path:
        """The checkpoint before the newest; the only one where a kill came while the newest was put in its place."""
        return self.path / BEFORE

    def discard(self) -> None:
        """Remove the folder, if this process made it and no round was trained in it."""
        if self.is_new and not _has_checkpoint(self.path) and not status_of(self.path).get("rounds_done"):
            shutil.rmtree(self.path, ignore_errors=True)

    def release(self) -> None:
        self.lock.close()


class Use(enum.IntEnum):
    """What a folder is to a config that is to be resumed; the highest is taken."""

    OTHERS = 0  # of other callbacks, which may end a run; or with more rounds; or another job's of the same sweep
    EMPTY = 1  # a start that was broken off: a newer one must not hide a run that got somewhere
    BEYOND = 2  # further than the `until` that is wanted would have let it
    EXTENSION = 3  # finished with a smaller budget than is wanted, or broken off on its way to other rounds
    FINISHED = 4
    UNFINISHED = 5


@dataclass(frozen=True)
class Wanted:
    """What is to be run.

    It is told by the hash of its config, its seed, its budget, and the callbacks that may end it early.

    again: the id of the SLURM job that does so for a second time, and goes on with its own run; None elsewhere.
    siblings: folders of the sweep's other jobs. `rounds=3,5` are two runs, however the second could extend the first.
    """

    digest: str
    seed: int
    budget: Budget
    callbacks: Sequence[Any] = ()
    again: str | None = None
    siblings: Set[Path] = frozenset()

    def use_of(self, path: Path) -> Use:
        """What the run in `path` is to this one: going on with it must give the bits of a run of its own."""
        use = self._use_alone(path)
        return Use.OTHERS if path in self.siblings and use is not Use.FINISHED else use

    def _use_alone(self, path: Path) -> Use:
        """As `use_of`, were there no other jobs."""
        status = status_of(path)
        done = status.get("status") == "finished"
        if not done and not _has_checkpoint(path):
            return Use.EMPTY
        spending = spending_of(status)
        if status.get("callbacks", []) != list(self.callbacks) or spending.now.rounds > self.budget.rounds:
            return Use.OTHERS
        if self.budget.list_exceeded(spending):
            return Use.BEYOND
        if not done:
            return Use.UNFINISHED if status.get("rounds", self.budget.rounds) == self.budget.rounds else Use.EXTENSION
        return Use.FINISHED if status.get("early") or self.budget.list_reached(spending.now) else Use.EXTENSION


def _has_checkpoint(path: Path) -> bool:
    return (path / NEWEST).exists() or (path / BEFORE).exists()


def check_kinds(path: Path) -> None:
    """Raise `DamagedFile` where a file or a folder of the run in `path` has become something else, as a pipe."""
    for name in (*SEALED, *OTHERS):
        is_file(path / name)
    for name in FOLDERS:
        if (path / name).exists() and not (path / name).is_dir():
            raise DamagedFile(f"{path / name} is damaged: it must be a folder. Restore it from a copy, or remove it")


def status_of(path: Path) -> dict[str, Any]:
    """Read `status.json`: status and rounds done.

    {} where a run was killed before it wrote one, or where it is damaged: the checkpoint says how far the run came.
    """
    try:
        text = (path / "status.json").read_text() if is_file(path / "status.json") else "{}"
        found = json.loads(text)
    except (OSError, ValueError):
        return {}
    whole = isinstance(found, dict) and all(isinstance(found.get(key, 0), int) for key in ("rounds_done", "rounds"))
    return found if whole and digest.unseal(text)[1] is not False else {}


def spending_of(status: Mapping[str, Any]) -> Spending:
    """What the run of a `status.json` has spent; that of an older fedcohort knows its rounds alone."""
    if "spent" in status:
        return Spending.unpack(status["spent"])
    return Spending(Spent(status.get("rounds_done", 0)))


def claim(logs: Path, name: str, wanted: Wanted, resume: bool) -> RunFolder:
    """A new folder, or with `resume` the newest unfinished one of the same config, seed and rounds.

    Where there is none, the finished one that a run of its own would equal; then the one that is furthest goes on, if
    it has less than the budget. One with more rounds is another run. Raises `CheckpointError` where another process is
    at work in it, `OptionError` where the folder can't be written, or where all that is there has gone beyond `until`.
    """
    runs = logs / "runs"
    try:
        runs.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OptionError(f"paths.logs must be a folder that can be written, got {str(logs)!r} ({error})") from error
    if resume:
        earlier = _resumable(runs, wanted)
        if earlier is not None:
            return earlier
    return _new(runs, f"{name}-{wanted.digest}-s{wanted.seed}")


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
            return RunFolder(path, lock, is_new=True)
    raise OptionError(f"paths.logs holds too many runs called {stem}")


def list_runs(runs: Path, digest: str, seed: int) -> list[Path]:
    """Return the run folders of a config, by its hash, and a seed."""
    key = f"-{digest}-s{seed}"
    return [path for path in runs.glob(f"*{key}*") if path.name.split(key)[1][:1] in ("", "-") and path.is_dir()]


def log_of(path: Path | None) -> str:
    """Return "; log: <run folder>/run.log" for the end of a message; "" where the run has no log."""
    return f"; log: {path / LOG}" if path is not None and (path / LOG).exists() else ""


def _resumable(runs: Path, wanted: Wanted) -> RunFolder | None:
    found = [path for path in list_runs(runs, wanted.digest, wanted.seed) if wanted.use_of(path) is not Use.OTHERS]
    if wanted.again is not None:  # never with the run of another job that has the same words
        own = [path for path in found if status_of(path).get("slurm_job") == wanted.again]
        found = own or [path for path in found if _is_free(path)]
    if not found:
        return None
    for path in found:
        check_kinds(path)
        if not status_of(path) and (path / "status.json").exists():
            log.warning("%s is damaged and is ignored: the checkpoint says how far the run came", path / "status.json")
    best = max(found, key=lambda path: (wanted.use_of(path), _count_reached(wanted, path), _born(path)))
    if wanted.use_of(best) is Use.BEYOND:
        wanted.budget.check(spending_of(status_of(best)), best)
    lock = _lock(best)
    if lock is None:
        raise CheckpointError(f"resume=true: {best} is being run by another process")
    return RunFolder(best, lock, finished=wanted.use_of(best) is Use.FINISHED)


def _count_reached(wanted: Wanted, path: Path) -> int:
    """Rounds that an extension need not do again; of unfinished runs the newest is meant."""
    return int(status_of(path).get("rounds_done", 0)) if wanted.use_of(path) is Use.EXTENSION else 0


def _born(path: Path) -> float:
    config = path / "config.yaml"
    return config.stat().st_mtime if config.exists() else path.stat().st_ctime


def _is_free(path: Path) -> bool:
    lock = _lock(path)
    if lock is not None:
        lock.close()
    return lock is not None


def _lock(path: Path) -> IO[str] | None:
    """The folder's lock, or None where another process holds it. It dies with its process."""
    is_file(path / "run.lock")  # a pipe would be waited for
    return hold(path / "run.lock")
