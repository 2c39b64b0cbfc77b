"""A run that is killed at any point resumes to the same bits as an uninterrupted run."""

import json
import os
import resource
import shutil
import signal
from pathlib import Path

import pytest
import torch

from fedcohort.errors import CheckpointError
from fedcohort.lightning import checkpoint
from fedcohort.record import folder
from fedcohort.round import round as rounds
from fedcohort.training.local import LocalTrainer
from process_kills import act_at_call, kill_self, run_in_child
from run_harness import FinishedRun, run_training, same_bits

STRATEGY = ("selector=flash", "agg=scaffold", "server=momentum", "client=adam", "objective=flash_robust")
SIX_ROUNDS = (*STRATEGY, "split.limit=240", "rounds=6")


@pytest.fixture(scope="module")
def uninterrupted_run(tmp_path_factory: pytest.TempPathFactory) -> FinishedRun:
    return run_training(tmp_path_factory.mktemp("whole"), *SIX_ROUNDS)


@pytest.fixture(scope="module")
def two_rounds(tmp_path_factory: pytest.TempPathFactory) -> FinishedRun:
    return run_training(tmp_path_factory.mktemp("two"), "rounds=2")


@pytest.fixture
def copied_folder(two_rounds: FinishedRun, tmp_path: Path) -> Path:
    """The folder of a run of two rounds, among the runs of `tmp_path`."""
    return shutil.copytree(two_rounds.folder, tmp_path / "runs" / two_rounds.folder.name)


@pytest.mark.parametrize(
    ("rounds_before", "overrides"),
    [
        (1, ()),
        (3, ("eval.every=2",)),
        (1, ("checkpoint.every=2",)),
        (5, ("checkpoint.every=2",)),
        (3, ("engine.slices=3",)),
    ],
    ids=str,
)
def test_a_killed_run_ends_like_an_uninterrupted_one(
    uninterrupted_run: FinishedRun,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    rounds_before: int,
    overrides: tuple[str, ...],
) -> None:
    act_at_call(monkeypatch, rounds, "make_round_report", rounds_before + 2, kill_self)  # step 0 is a report too
    status = run_in_child(lambda: run_training(tmp_path, *SIX_ROUNDS, *overrides) and None)
    assert os.WIFSIGNALED(status)
    monkeypatch.undo()
    resumed = run_training(tmp_path, *SIX_ROUNDS, *overrides, "resume=true")
    checkpoint_every = 2 if "checkpoint.every=2" in overrides else 1
    last_checkpoint = rounds_before // checkpoint_every * checkpoint_every
    assert resumed.reports[0].step == (last_checkpoint + 1 if last_checkpoint else 0)
    assert same_bits(uninterrupted_run, resumed)
    assert len(list((tmp_path / "runs").iterdir())) == 1


def test_a_run_killed_during_training_resumes_with_the_same_bits(
    uninterrupted_run: FinishedRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    act_at_call(monkeypatch, LocalTrainer, "begin_client_hooks", 19, kill_self)
    assert os.WIFSIGNALED(run_in_child(lambda: run_training(tmp_path, *SIX_ROUNDS) and None))
    monkeypatch.undo()
    assert same_bits(uninterrupted_run, run_training(tmp_path, *SIX_ROUNDS, "resume=true"))


@pytest.mark.parametrize("moment", ["rename_checkpoint", "fsync"])
def test_a_run_killed_while_a_checkpoint_is_renamed_resumes_with_the_same_bits(
    uninterrupted_run: FinishedRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    owner = checkpoint if moment == "rename_checkpoint" else os
    act_at_call(monkeypatch, owner, moment, 3, kill_self)
    assert os.WIFSIGNALED(run_in_child(lambda: run_training(tmp_path, *SIX_ROUNDS) and None))
    monkeypatch.undo()
    assert same_bits(uninterrupted_run, run_training(tmp_path, *SIX_ROUNDS, "resume=true"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_run_after_the_round_with_a_checkpoint(
    uninterrupted_run: FinishedRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    act_at_call(monkeypatch, LocalTrainer, "begin_client_hooks", 19, lambda: os.kill(os.getpid(), number))
    status = run_in_child(lambda: run_training(tmp_path, *SIX_ROUNDS, "checkpoint.every=5") and None)
    monkeypatch.undo()
    assert os.waitstatus_to_exitcode(status) == 128 + number
    (path,) = (tmp_path / "runs").iterdir()
    result = json.loads((path / "status.json").read_text())
    assert (result["status"], result["rounds_done"]) == (
        "interrupted",
        3,
    )  # 12 clients, then 4 a round: the 19th is in 3
    resumed = run_training(tmp_path, *SIX_ROUNDS, "checkpoint.every=5", "resume=true")
    assert resumed.reports[0].step == 4
    assert same_bits(uninterrupted_run, resumed)


def test_more_rounds_extend_a_finished_run(uninterrupted_run: FinishedRun, tmp_path: Path) -> None:
    run_training(tmp_path, *STRATEGY, "split.limit=240", "rounds=2")
    longer = run_training(tmp_path, *SIX_ROUNDS, "resume=true")
    assert longer.reports[0].step == 3
    assert same_bits(uninterrupted_run, longer)


def test_a_finished_run_stays_unchanged(copied_folder: Path, tmp_path: Path) -> None:
    repeat = run_training(tmp_path, "rounds=2", "resume=true")
    assert repeat.folder == copied_folder
    assert repeat.reports == []


def test_a_repeated_run_gets_a_new_folder(copied_folder: Path, tmp_path: Path) -> None:
    assert run_training(tmp_path, "rounds=2").folder == copied_folder.with_name(copied_folder.name + "-2")


def test_resume_starts_a_new_run_for_another_config(copied_folder: Path, tmp_path: Path) -> None:
    other_run = run_training(tmp_path, "rounds=1", "client.lr=0.2", "resume=true")
    assert other_run.folder != copied_folder
    assert other_run.reports[0].step == 0


def test_the_checkpoint_is_plain_data(uninterrupted_run: FinishedRun) -> None:
    content = torch.load(uninterrupted_run.folder / "last.ckpt", weights_only=True)
    assert content["fedcohort"]["format"] == checkpoint.CHECKPOINT_FORMAT
    network = {k.removeprefix("network."): v for k, v in content["state_dict"].items()}
    final = torch.load(uninterrupted_run.folder / "weights.pt", weights_only=True)
    assert network.keys() == final.keys()
    assert all(torch.equal(network[name], final[name]) for name in final)


def test_a_checkpoint_of_another_config_is_rejected(copied_folder: Path, tmp_path: Path) -> None:
    path = copied_folder / "last.ckpt"
    content = torch.load(path, weights_only=True)
    next(s for s in content["callbacks"].values() if "config_hash" in s)["config_hash"] = "0badf00d-s0"
    checkpoint.write_checkpoint(content, path)
    with pytest.raises(CheckpointError, match="a run with other options"):
        run_training(tmp_path, "rounds=4", "resume=true")


def test_a_full_disk_keeps_the_previous_checkpoint(copied_folder: Path, tmp_path: Path) -> None:
    path = copied_folder / "last.ckpt"
    before = path.read_bytes()

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) // 2, len(before) // 2))
        try:
            run_training(tmp_path, "rounds=4", "resume=true")
        except CheckpointError as error:
            (tmp_path / "said").write_text(str(error))
            raise SystemExit(3) from error

    assert os.waitstatus_to_exitcode(run_in_child(limited)) == 3
    assert "the previous checkpoint is intact" in (tmp_path / "said").read_text()
    assert "resume=true" in (tmp_path / "said").read_text()
    assert path.read_bytes() == before
    assert not path.with_suffix(".partial").exists()
    assert run_training(tmp_path, "rounds=4", "resume=true").reports[0].step == 3


def test_two_processes_never_share_a_run(copied_folder: Path, tmp_path: Path) -> None:
    lock = folder.take_lock(copied_folder)
    assert lock is not None
    with pytest.raises(CheckpointError, match="is being run by another process"):
        run_training(tmp_path, "rounds=3", "resume=true")
    lock.close()


def test_a_logs_path_that_cannot_be_written_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match=r"paths.logs must be a writable folder, got '.*file'"):
        run_training(tmp_path / "file")


def test_resume_ignores_a_newer_folder_without_a_checkpoint(copied_folder: Path, tmp_path: Path) -> None:
    unfinished_folder = copied_folder.with_name(copied_folder.name + "-2")
    unfinished_folder.mkdir()
    (unfinished_folder / "config.yaml").write_text("")
    resumed = run_training(tmp_path, "rounds=3", "resume=true")
    assert resumed.folder == copied_folder
    assert resumed.reports[0].step == 3
