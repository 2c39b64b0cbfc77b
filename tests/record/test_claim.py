"""The folder that a run takes, and the folders that are removed."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fedcohort.errors import CheckpointError, OptionError
from fedcohort.record.claim import FolderUse, RunRequest, claim_folder
from fedcohort.record.folder import read_status
from fedcohort.round.budget import Budget

STOP = {"_target_": "lightning.pytorch.callbacks.EarlyStopping", "monitor": "server_val/loss"}
TIMER = {"_target_": "lightning.pytorch.callbacks.Timer", "duration": "00:01:00:00"}
RUN = RunRequest("9326706e", 0, Budget(50))


def make_folder(logs: Path, name: str, started: float, *, checkpoint: bool = True, **status: Any) -> Path:
    """Make the folder of an earlier run; started: its start time in seconds."""
    path = logs / "runs" / name
    path.mkdir(parents=True)
    (path / "config.yaml").write_text("")
    os.utime(path / "config.yaml", (started, started))
    if checkpoint:
        (path / "last.ckpt").write_bytes(b"")
    if status:
        (path / "status.json").write_text(json.dumps({"rounds": 50, "early": False, **status}))
    return path


def make_status(rounds_done: int, **options: Any) -> dict[str, Any]:
    return {"status": "finished", "rounds_done": rounds_done, **options}


def ended_early(*callbacks: Any) -> dict[str, Any]:
    return make_status(12, early=True, callbacks=list(callbacks))


def request(rounds: int, *callbacks: Any) -> RunRequest:
    return RunRequest("9326706e", 0, Budget(rounds), callbacks)


CASES: list[tuple[dict[str, Any], RunRequest, FolderUse]] = [
    ({}, RUN, FolderUse.UNFINISHED_RUN),  # killed before it wrote its status
    ({}, request(50, STOP), FolderUse.UNRELATED_RUN),  # its callbacks are not known
    ({"status": "running", "rounds_done": 3}, RUN, FolderUse.UNFINISHED_RUN),
    ({"status": "running", "rounds_done": 3}, request(3), FolderUse.EXTENDABLE_RUN),
    ({"status": "running", "rounds_done": 3}, request(80), FolderUse.EXTENDABLE_RUN),
    ({"status": "running", "rounds_done": 3}, request(2), FolderUse.UNRELATED_RUN),
    ({"status": "running", "rounds_done": 3}, request(50, STOP), FolderUse.UNRELATED_RUN),
    ({"status": "running", "rounds_done": 3, "callbacks": [STOP]}, request(50, STOP), FolderUse.UNFINISHED_RUN),
    ({"status": "running", "rounds_done": 3, "callbacks": [STOP]}, RUN, FolderUse.UNRELATED_RUN),
    ({"checkpoint": False, "status": "running", "rounds_done": 0}, request(20, STOP), FolderUse.RUN_WITHOUT_CHECKPOINT),
    ({"status": "interrupted", "rounds_done": 50}, RUN, FolderUse.UNFINISHED_RUN),  # its figures are missing
    ({"checkpoint": False, "status": "running", "rounds_done": 0}, RUN, FolderUse.RUN_WITHOUT_CHECKPOINT),
    (make_status(50), RUN, FolderUse.FINISHED_RUN),
    (
        make_status(50),
        request(20),
        FolderUse.UNRELATED_RUN,
    ),  # 20 rounds are not the first 20 of 50
    (make_status(50), request(80), FolderUse.EXTENDABLE_RUN),
    (make_status(50), request(50, STOP), FolderUse.UNRELATED_RUN),
    (make_status(50, callbacks=[STOP]), RUN, FolderUse.UNRELATED_RUN),
    (make_status(50, callbacks=[STOP]), request(80, STOP), FolderUse.EXTENDABLE_RUN),
    (ended_early(STOP), request(50, STOP), FolderUse.FINISHED_RUN),
    (ended_early(STOP), request(80, STOP), FolderUse.FINISHED_RUN),  # with more rounds it would have ended there, too
    (ended_early(STOP), request(12, STOP), FolderUse.FINISHED_RUN),
    (ended_early(STOP), request(11, STOP), FolderUse.UNRELATED_RUN),
    (ended_early(STOP), RUN, FolderUse.UNRELATED_RUN),
    (ended_early(STOP), request(50, TIMER), FolderUse.UNRELATED_RUN),
    (ended_early(STOP), request(12, TIMER), FolderUse.UNRELATED_RUN),
    (ended_early(STOP), request(50, {**STOP, "patience": 9}), FolderUse.UNRELATED_RUN),
]


@pytest.mark.parametrize(("status", "run_request", "expected_use"), CASES)
def test_the_use_of_a_folder_for_a_run(
    tmp_path: Path, status: dict[str, Any], run_request: RunRequest, expected_use: FolderUse
) -> None:
    assert run_request.find_folder_use(make_folder(tmp_path, "a", 0, **status)) is expected_use


def claim_run(logs: Path, run_request: RunRequest = RUN) -> tuple[str, bool, bool]:
    home = claim_folder(logs, "run", run_request, resumes=True)
    home.release_lock()
    return home.path.name, home.is_new, home.is_finished


@pytest.mark.parametrize("empty_start_ms", [1, 9])
def test_a_start_without_a_checkpoint_hides_no_other_run(tmp_path: Path, empty_start_ms: int) -> None:
    make_folder(tmp_path, "run-9326706e-s0-2", empty_start_ms, checkpoint=False)
    assert claim_run(tmp_path) == ("run-9326706e-s0-2", False, False), "it is used again if there is no other run"
    make_folder(tmp_path, "run-9326706e-s0-3", 5, **make_status(20))
    assert claim_run(tmp_path) == ("run-9326706e-s0-3", False, False)
    make_folder(tmp_path, "run-9326706e-s0", 4, **make_status(50))
    assert claim_run(tmp_path) == ("run-9326706e-s0", False, True)
    make_folder(tmp_path, "run-9326706e-s0-4", 3, status="interrupted", rounds_done=10)
    assert claim_run(tmp_path) == ("run-9326706e-s0-4", False, False)


def test_of_equal_runs_the_newest_is_resumed(tmp_path: Path) -> None:
    for number, started in ((2, 5), (3, 9), (4, 7)):
        make_folder(tmp_path, f"run-9326706e-s0-{number}", started, status="interrupted", rounds_done=number)
    assert claim_run(tmp_path)[0] == "run-9326706e-s0-3"


def test_an_extension_resumes_the_run_with_the_most_rounds(tmp_path: Path) -> None:
    for number, (started, rounds_done) in enumerate([(5, 3), (6, 20), (7, 20), (9, 10)], start=2):
        make_folder(tmp_path, f"run-9326706e-s0-{number}", started, **make_status(rounds_done))
    assert claim_run(tmp_path)[0] == "run-9326706e-s0-4"


def test_each_number_of_rounds_finds_its_own_run(tmp_path: Path) -> None:
    """As after a sweep over rounds, of which one job was interrupted."""
    stem = "run-9326706e-s0"
    make_folder(tmp_path, stem, 1, **make_status(10, rounds=10))
    make_folder(tmp_path, f"{stem}-2", 2, **make_status(20, rounds=20))
    make_folder(tmp_path, f"{stem}-3", 3, status="interrupted", rounds=30, rounds_done=5)
    folders_by_rounds = {rounds: claim_run(tmp_path, request(rounds)) for rounds in (10, 20, 30, 50)}
    assert folders_by_rounds[10] == (stem, False, True)
    assert folders_by_rounds[20] == (f"{stem}-2", False, True)
    assert folders_by_rounds[30] == (f"{stem}-3", False, False)
    assert folders_by_rounds[50] == (f"{stem}-2", False, False), "it resumes the run with the most rounds"
    assert claim_run(tmp_path, request(4)) == (f"{stem}-4", True, False)


def test_a_job_does_not_resume_the_runs_of_other_jobs_of_its_sweep(tmp_path: Path) -> None:
    """Except a finished run that it would equal; runs of earlier sweeps are extended."""
    stem = "run-9326706e-s0"
    other_folder = make_folder(tmp_path, stem, 1, **make_status(3, rounds=3))
    siblings = frozenset([other_folder])
    assert claim_run(tmp_path, request(5)) == (stem, False, False)
    assert claim_run(tmp_path, replace(request(5), sibling_folders=siblings)) == (f"{stem}-2", True, False)
    assert claim_run(tmp_path, replace(request(3), sibling_folders=siblings)) == (stem, False, True)


def test_without_a_run_to_resume_the_folder_is_new(tmp_path: Path) -> None:
    make_folder(tmp_path, "run-9326706e-s01", 1)
    make_folder(tmp_path, "run-00000000-s0", 1)
    make_folder(tmp_path, "run-9326706e-s0", 1, **ended_early(STOP))
    assert claim_run(tmp_path, RunRequest("9326706e", 0, Budget(50), [TIMER])) == ("run-9326706e-s0-2", True, False)


@pytest.mark.parametrize("status", [make_status(50), {"status": "interrupted", "rounds_done": 3}])
def test_a_folder_in_use_is_rejected(tmp_path: Path, status: dict[str, Any]) -> None:
    make_folder(tmp_path, "run-9326706e-s0", 1, **status)
    first = claim_folder(tmp_path, "run", RUN, resumes=True)
    with pytest.raises(CheckpointError, match="is being run by another process"):
        claim_folder(tmp_path, "run", RUN, resumes=True)
    first.release_lock()


@pytest.mark.parametrize(
    ("resume", "checkpoint", "rounds_done", "removed"),
    [
        (False, False, None, True),
        (False, False, 0, True),
        (False, False, 1, False),
        (False, True, 0, False),
        (True, False, 0, False),
    ],
)
def test_only_a_new_folder_without_rounds_is_removed(
    tmp_path: Path, resume: bool, checkpoint: bool, rounds_done: int | None, removed: bool
) -> None:
    if resume:
        make_folder(tmp_path, "run-9326706e-s0", 1, checkpoint=False)
    home = claim_folder(tmp_path, "run", RUN, resume)
    if checkpoint:
        (home.path / "last.ckpt").write_bytes(b"")
    if rounds_done is not None:
        (home.path / "status.json").write_text(json.dumps({"status": "dropped", "rounds_done": rounds_done}))
    home.remove_if_untrained()
    home.release_lock()
    assert home.path.exists() != removed


@pytest.mark.parametrize(
    "status", [b"", b"{", b"[]", b"\xff\x00", b'{"status": "finished", "rounds_done": "12"}', b'{"rounds": null}']
)
def test_a_damaged_status_is_ignored(tmp_path: Path, status: bytes) -> None:
    path = make_folder(tmp_path, "run-9326706e-s0", 1)
    (path / "status.json").write_bytes(status)
    assert read_status(path) == {}
    assert claim_run(tmp_path) == ("run-9326706e-s0", False, False), "its checkpoint has the number of rounds"


def test_a_run_without_a_config_is_still_found(tmp_path: Path) -> None:
    path = make_folder(tmp_path, "run-9326706e-s0", 1, status="running", rounds_done=3)
    (path / "config.yaml").unlink()
    make_folder(tmp_path, "run-9326706e-s0-2", 1, status="running", rounds_done=3)
    assert claim_run(tmp_path)[0] == "run-9326706e-s0", "it is the newer one"


def test_a_kill_between_the_renames_of_a_checkpoint_leaves_a_run(tmp_path: Path) -> None:
    path = make_folder(tmp_path, "run-9326706e-s0", 1, status="running", rounds_done=3)
    (path / "last.ckpt").rename(path / "previous.ckpt")
    (path / "last.partial").write_bytes(b"half")
    assert RUN.find_folder_use(path) is FolderUse.UNFINISHED_RUN
    home = claim_folder(tmp_path, "run", RUN, resumes=False)
    (home.path / "previous.ckpt").write_bytes(b"")
    home.remove_if_untrained()
    home.release_lock()
    assert home.path.exists()


def test_a_file_is_no_run_folder(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "old-9326706e-s0").write_text("")
    assert claim_run(tmp_path) == ("run-9326706e-s0", True, False)


def test_logs_may_be_a_link(tmp_path: Path) -> None:
    make_folder(tmp_path / "disk", "run-9326706e-s0", 1, status="running", rounds_done=3)
    (tmp_path / "logs").symlink_to("disk")
    assert claim_run(tmp_path / "logs") == ("run-9326706e-s0", False, False)
    (tmp_path / "broken").symlink_to("nowhere")
    with pytest.raises(OptionError, match=r"paths\.logs must be a writable folder"):
        claim_folder(tmp_path / "broken", "run", RUN, resumes=True)


def test_a_restarted_slurm_job_resumes_its_run(tmp_path: Path) -> None:
    """It does not resume the run of another job with the same options, and starts a new run if it has none."""
    stem = "a-9326706e-s0"
    make_folder(tmp_path, stem, 1, status="running", rounds_done=3, slurm_job="7_1")
    make_folder(tmp_path, f"{stem}-2", 2, status="running", rounds_done=9, slurm_job="7_2")
    repeat = {job: RunRequest("9326706e", 0, Budget(50), slurm_job=job) for job in ("7_1", "7_2", "7_3")}
    claimed = claim_folder(tmp_path, "a", repeat["7_2"], resumes=True)
    assert claimed.path.name == f"{stem}-2"
    with claim_folder(tmp_path, "a", repeat["7_1"], resumes=True).lock_file:
        claimed_folder = claim_folder(tmp_path, "a", repeat["7_3"], resumes=True)
        assert claimed_folder.is_new
        assert claimed_folder.path.name == f"{stem}-3"
    with pytest.raises(CheckpointError, match="being run by another process"):
        claim_folder(tmp_path, "a", RUN, resumes=True)
    claimed.release_lock()
