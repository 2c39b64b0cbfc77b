"""Decide which folder a run takes: a new one, or with `resume=true` that of an earlier run of its config and seed."""

import enum
import logging
from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedcohort.errors import CheckpointError, OptionError
from fedcohort.record.folder import RunFolder, check_files, has_checkpoint, list_runs, spending_of, status_of, take_lock
from fedcohort.round.budget import Budget

log = logging.getLogger("fedcohort")


class FolderUse(enum.IntEnum):
    """The use that a resuming run can make of an existing folder; the highest value is taken, but never `UNRELATED`."""

    UNRELATED = 0  # other callbacks, which may end a run; or more rounds; or another job of the same sweep
    NO_CHECKPOINT = 1  # a start without a checkpoint, which must not hide a run with one
    OVER_BUDGET = 2  # trained further than the requested `until` allows
    EXTENDABLE = 3  # finished with a smaller budget, or interrupted on its way to another number of rounds
    FINISHED = 4
    UNFINISHED = 5


@dataclass(frozen=True)
class RunRequest:
    """The run that claims a folder, with the properties that decide whether it can resume an earlier run.

    Attributes:
        digest: hash of the options that decide the run's results.
        seed: the run's seed.
        budget: limits at which the run ends.
        callbacks: configs of the callbacks that may end the run early.
        slurm_job: id of a SLURM job that was requeued and resumes its own run; None elsewhere.
        siblings: folders of the sweep's other jobs. `rounds=3,5` are two runs, although the second could extend the
            first.
    """

    digest: str
    seed: int
    budget: Budget
    callbacks: Sequence[Any] = ()
    slurm_job: str | None = None
    siblings: Set[Path] = frozenset()

    def find_folder_use(self, path: Path) -> FolderUse:
        """Return the use that this run can make of the run in the run folder `path`.

        The folder is `UNRELATED` if the resumed run could give other results than an uninterrupted one. It is also
        `UNRELATED` if it belongs to another job of the sweep and is not `FINISHED`.
        """
        folder_use = self._find_use_without_siblings(path)
        return FolderUse.UNRELATED if path in self.siblings and folder_use is not FolderUse.FINISHED else folder_use

    def _find_use_without_siblings(self, path: Path) -> FolderUse:
        status = status_of(path)
        is_finished = status.get("status") == "finished"
        if not is_finished and not has_checkpoint(path):
            return FolderUse.NO_CHECKPOINT
        budget_history = spending_of(status)
        if status.get("callbacks", []) != list(self.callbacks) or budget_history.now.rounds > self.budget.rounds:
            return FolderUse.UNRELATED
        if self.budget.list_exceeded_options(budget_history):
            return FolderUse.OVER_BUDGET
        if not is_finished and status.get("rounds", self.budget.rounds) == self.budget.rounds:
            return FolderUse.UNFINISHED
        if is_finished and (status.get("early") or self.budget.list_reached_options(budget_history.now)):
            return FolderUse.FINISHED
        return FolderUse.EXTENDABLE


def claim_folder(logs_folder: Path, name: str, request: RunRequest, resume: bool) -> RunFolder:
    """Return the folder for a run, with its lock held.

    With `resume` it is the newest unfinished run of the same config, seed and rounds. If there is no such run, it is
    the finished run that this run would equal, else the run with the most rounds that this run extends. The next choice
    is the newest run without a checkpoint. A run with more rounds is never taken. If there is none, or without
    `resume`, the folder is new.

    Args:
        logs_folder: folder of logs, whose subfolder `runs` has the run folders.
        name: start of a new folder's name.
        request: the run that needs a folder.
        resume: whether the run may take an existing folder.

    Raises:
        CheckpointError: another process runs in the folder, or a file in an earlier folder is no regular file.
        OptionError: the folder cannot be written, or holds too many runs of this name. With `resume` also if earlier
            runs went beyond `until`, and none can be resumed or reused.
    """
    runs_folder = logs_folder / "runs"
    with _name_folder_in_errors(logs_folder):
        runs_folder.mkdir(parents=True, exist_ok=True)
    run_folder = _find_resumable_run(runs_folder, request) if resume else None
    return _make_folder(runs_folder, f"{name}-{request.digest}-s{request.seed}") if run_folder is None else run_folder


@contextmanager
def _name_folder_in_errors(folder: Path) -> Iterator[None]:
    """Return a context manager that raises `OptionError`, which names `folder`, if the block can't write into it."""
    try:
        yield
    except OSError as error:
        raise OptionError(f"paths.logs must be a folder that can be written, got {str(folder)!r} ({error})") from error


def _make_folder(runs_folder: Path, name_stem: str) -> RunFolder:
    for folder_number in range(1, 10**6):
        run_path = runs_folder / (name_stem if folder_number == 1 else f"{name_stem}-{folder_number}")
        with _name_folder_in_errors(runs_folder), suppress(FileExistsError):
            run_path.mkdir()
            if (lock := take_lock(run_path)) is not None:
                return RunFolder(run_path, lock, is_new=True)
    raise OptionError(f"{runs_folder} holds too many runs called {name_stem}: choose another paths.logs")


def _find_resumable_run(runs_folder: Path, request: RunRequest) -> RunFolder | None:
    run_paths = [path for path in list_runs(runs_folder, request.digest, request.seed) if request.find_folder_use(path)]
    if request.slurm_job is not None:  # never the run of another job with the same options
        job_paths = [path for path in run_paths if status_of(path).get("slurm_job") == request.slurm_job]
        run_paths = job_paths or [path for path in run_paths if _is_unlocked(path)]
    if not run_paths:
        return None
    for path in run_paths:
        check_files(path)
        if not status_of(path) and (status_file := path / "status.json").exists():
            log.warning("%s is damaged and is ignored: the checkpoint has the number of completed rounds", status_file)

    def rank_run(path: Path) -> tuple[FolderUse, int, float]:
        """Return the rank of the run folder `path`: the highest is the run to resume.

        An extension resumes the run with the most rounds, another run resumes the newest one.
        """
        folder_use, config_file = request.find_folder_use(path), path / "config.yaml"
        rounds_done = int(status_of(path).get("rounds_done", 0)) if folder_use is FolderUse.EXTENDABLE else 0
        return folder_use, rounds_done, config_file.stat().st_mtime if config_file.exists() else path.stat().st_ctime

    best_run_path = max(run_paths, key=rank_run)
    folder_use = request.find_folder_use(best_run_path)
    if folder_use is FolderUse.OVER_BUDGET:
        request.budget.check_not_exceeded(spending_of(status_of(best_run_path)), best_run_path)
    lock = take_lock(best_run_path)
    if lock is None:
        raise CheckpointError(f"resume=true: {best_run_path} is being run by another process: wait for its end")
    return RunFolder(best_run_path, lock, is_finished=folder_use is FolderUse.FINISHED)


def _is_unlocked(run_path: Path) -> bool:
    lock = take_lock(run_path)
    if lock is not None:
        lock.close()
    return lock is not None
