"""Decide which folder a run takes: a new one, or with `resume=true` that of an earlier run of its config and seed."""

import enum
import logging
from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedcohort.errors import CheckpointError, OptionError
from fedcohort.host.lock import is_locked
from fedcohort.record.folder import RunFolder, check_file_types, has_checkpoint, read_spending, read_status, take_lock
from fedcohort.round.budget import Budget

log = logging.getLogger("fedcohort")


class FolderUse(enum.IntEnum):
    """The use that a run with `resume=true` can make of the folder of an earlier run.

    The run takes the folder with the highest use, but never one with `UNRELATED_RUN`.
    """

    UNRELATED_RUN = 0  # other callbacks, which may end a run; or more rounds; or another job of the same sweep
    RUN_WITHOUT_CHECKPOINT = 1  # a start without a checkpoint, which must not hide a run with one
    RUN_OVER_BUDGET = 2  # trained further than the requested `until` allows
    EXTENDABLE_RUN = 3  # finished with a smaller budget, or interrupted on its way to another number of rounds
    FINISHED_RUN = 4
    UNFINISHED_RUN = 5


@dataclass(frozen=True)
class RunRequest:
    """The run that claims a folder, with the properties that decide whether it can resume an earlier run.

    Attributes:
        config_digest: hash of the options that decide the run's results.
        seed: the run's seed.
        budget: limits at which the run ends.
        callback_configs: configs of the callbacks that may end the run early.
        slurm_job: id of a SLURM job that was requeued and resumes its own run; None elsewhere.
        sibling_folders: run folders of the sweep's other jobs. `rounds=3,5` are two runs, although the second could
            extend the first.
    """

    config_digest: str
    seed: int
    budget: Budget
    callback_configs: Sequence[Any] = ()
    slurm_job: str | None = None
    sibling_folders: Set[Path] = frozenset()

    def find_folder_use(self, run_path: Path) -> FolderUse:
        """Return the use that this run can make of the run in the run folder `run_path`.

        The use is `UNRELATED_RUN` if the resumed run could give other results than an uninterrupted one. It is also
        `UNRELATED_RUN` if the folder belongs to another job of the sweep and its run is not finished.
        """
        folder_use = self._find_use_without_siblings(run_path)
        is_sibling_run = run_path in self.sibling_folders and folder_use is not FolderUse.FINISHED_RUN
        return FolderUse.UNRELATED_RUN if is_sibling_run else folder_use

    def _find_use_without_siblings(self, run_path: Path) -> FolderUse:
        run_status = read_status(run_path)
        is_finished = run_status.get("status") == "finished"
        if not is_finished and not has_checkpoint(run_path):
            return FolderUse.RUN_WITHOUT_CHECKPOINT
        budget_history = read_spending(run_status)
        if (
            run_status.get("callbacks", []) != list(self.callback_configs)
            or budget_history.now.rounds > self.budget.rounds
        ):
            return FolderUse.UNRELATED_RUN
        if self.budget.list_exceeded_limits(budget_history):
            return FolderUse.RUN_OVER_BUDGET
        if not is_finished and run_status.get("rounds", self.budget.rounds) == self.budget.rounds:
            return FolderUse.UNFINISHED_RUN
        if is_finished and (run_status.get("early") or self.budget.list_reached_limits(budget_history.now)):
            return FolderUse.FINISHED_RUN
        return FolderUse.EXTENDABLE_RUN


def claim_folder(logs_folder: Path, folder_stem: str, request: RunRequest, resumes: bool) -> RunFolder:
    """Return the folder for a run, with its lock held.

    With `resumes` it is the newest unfinished run of the same config, seed and rounds. If there is no such run, it is
    the finished run that this run would equal, else the run with the most rounds that this run extends. The next choice
    is the newest run without a checkpoint. A run with more rounds is never taken. If no run can be taken, or without
    `resumes`, the folder is new.

    Args:
        logs_folder: folder of logs, whose subfolder `runs` has the run folders.
        folder_stem: start of a new folder's name.
        request: the run that needs a folder.
        resumes: whether the run may take an existing folder.

    Raises:
        CheckpointError: another process runs in the folder, or a file in an earlier folder is no regular file.
        OptionError: the folder cannot be written, or holds too many runs of this name. With `resumes` also if earlier
            runs went beyond `until`, and none can be resumed or reused.
    """
    runs_folder = logs_folder / "runs"
    with _name_folder_in_errors(logs_folder):
        runs_folder.mkdir(parents=True, exist_ok=True)
    if resumes and (run_folder := _find_resumable_run(runs_folder, request)):
        return run_folder
    return _make_run_folder(runs_folder, f"{folder_stem}-{request.config_digest}-s{request.seed}")


@contextmanager
def _name_folder_in_errors(folder: Path) -> Iterator[None]:
    """Return a context manager that raises `OptionError`, which names `folder`, if the block can't write into it."""
    try:
        yield
    except OSError as error:
        raise OptionError(f"paths.logs must be a writable folder, got {str(folder)!r} ({error})") from error


def _make_run_folder(runs_folder: Path, folder_stem: str) -> RunFolder:
    for folder_number in range(1, 10**6):
        run_path = runs_folder / (folder_stem if folder_number == 1 else f"{folder_stem}-{folder_number}")
        with _name_folder_in_errors(runs_folder), suppress(FileExistsError):
            run_path.mkdir()
            if (lock_file := take_lock(run_path)) is not None:
                return RunFolder(run_path, lock_file, is_new=True)
    raise OptionError(f"{runs_folder} holds too many runs called {folder_stem}: choose another paths.logs")


def _find_resumable_run(runs_folder: Path, request: RunRequest) -> RunFolder | None:
    run_paths = [p for p in _list_runs(runs_folder, request.config_digest, request.seed) if request.find_folder_use(p)]
    if request.slurm_job is not None:  # never the run of another job with the same options
        paths_of_slurm_job = [p for p in run_paths if read_status(p).get("slurm_job") == request.slurm_job]
        run_paths = paths_of_slurm_job or [p for p in run_paths if not is_locked(p / "run.lock")]
    if not run_paths:
        return None
    for p in run_paths:
        check_file_types(p)
        if not read_status(p) and (status_file := p / "status.json").exists():
            log.warning("%s is damaged and is ignored: the checkpoint has the number of completed rounds", status_file)

    def rank_run(p: Path) -> tuple[FolderUse, int, float]:
        """Return the rank of the run folder `p`: the run with the highest rank is resumed.

        If this run extends finished runs, the one with the most rounds has the highest rank, otherwise the newest one.
        """
        folder_use, config_file = request.find_folder_use(p), p / "config.yaml"
        rounds_done = int(read_status(p).get("rounds_done", 0)) if folder_use is FolderUse.EXTENDABLE_RUN else 0
        return folder_use, rounds_done, config_file.stat().st_mtime if config_file.exists() else p.stat().st_ctime

    best_run_path = max(run_paths, key=rank_run)
    folder_use = request.find_folder_use(best_run_path)
    if folder_use is FolderUse.RUN_OVER_BUDGET:
        request.budget.check_budget_left(read_spending(read_status(best_run_path)), best_run_path)
    lock_file = take_lock(best_run_path)
    if lock_file is None:
        raise CheckpointError(f"resume=true: {best_run_path} is being run by another process: wait for its end")
    return RunFolder(best_run_path, lock_file, is_finished=folder_use is FolderUse.FINISHED_RUN)


def _list_runs(runs_folder: Path, config_digest: str, seed: int) -> list[Path]:
    """Return the run folders in `runs_folder` with the hash `config_digest` and the seed in their names."""
    folder_suffix = f"-{config_digest}-s{seed}"
    paths = runs_folder.glob(f"*{folder_suffix}*")
    return [path for path in paths if path.name.split(folder_suffix)[1][:1] in ("", "-") and path.is_dir()]
