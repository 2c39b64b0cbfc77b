"""What anyone who knows Lightning expects: its callbacks work on rounds as on epochs."""

import json
import os
from pathlib import Path

import lightning.pytorch as pl
import pytest
import torch

import run_harness
from fedcohort.errors import IncompatibleConfig, OptionError
from fedcohort.record.status import RunStatus
from process_kills import act_at_call, kill_self, run_in_child
from run_harness import run_training

BEST = ("+callback.best._target_=lightning.pytorch.callbacks.ModelCheckpoint", "+callback.best.monitor=server_val/loss")
STOP = ("+callback.halt._target_=lightning.pytorch.callbacks.EarlyStopping", "+callback.halt.monitor=server_val/acc")


def test_a_monitored_model_checkpoint_saves(tmp_path: Path) -> None:
    # under manual optimization global_step stays 0, and ModelCheckpoint then saves nothing
    overrides = (*BEST, f"+callback.best.dirpath={tmp_path / 'best'}", "+callback.best.save_top_k=2", "rounds=4")
    run = run_training(tmp_path, *overrides)
    checkpoints = sorted((tmp_path / "best").glob("*.ckpt"))
    assert len(checkpoints) == 2
    steps = {torch.load(path, weights_only=True)["global_step"] for path in checkpoints}
    assert steps <= {1, 2, 3, 4}
    losses = {report.step: report.metrics["server_val/loss"] for report in run.reports[1:]}
    assert steps == set(sorted(losses, key=losses.__getitem__)[:2])


def test_early_stopping_finishes_the_run(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    overrides = (*STOP, "+callback.halt.mode=max", "+callback.halt.patience=1", "client.lr=1e-9", "rounds=9")
    with caplog.at_level("INFO", "fedcohort"):
        run = run_training(tmp_path, *overrides)
    assert 2 <= run.last.step < 9
    assert (
        f"ended after round {run.last.step} of 9. EarlyStopping: Monitored metric server_val/acc did not" in caplog.text
    )
    status = json.loads((run.folder / "status.json").read_text())
    assert (status["status"], status["early"]) == ("finished", True)
    assert run_training(tmp_path, *overrides, "resume=true").reports == [], "it is finished"


def test_a_run_that_a_callback_ended_is_not_resumed_with_another_callback(tmp_path: Path) -> None:
    slow = ("client.lr=1e-9", "rounds=9", "+callback.halt.mode=max")
    early_run = run_training(tmp_path, *STOP, *slow, "+callback.halt.patience=1")
    other_run = run_training(tmp_path, *STOP, *slow, "+callback.halt.patience=2", "resume=true")
    assert (other_run.folder == early_run.folder, other_run.reports[0].step) == (False, 0), (
        "with the other's first rounds"
    )
    plain = run_training(tmp_path, *slow[:2], "resume=true")
    assert (plain.folder in (early_run.folder, other_run.folder), plain.reports[0].step) == (False, 0)
    repeat = run_training(tmp_path, *STOP, *slow, "+callback.halt.patience=1", "rounds=20", "resume=true")
    assert (repeat.folder, repeat.reports) == (early_run.folder, []), "with more rounds it would have ended there, too"


def test_a_run_killed_after_early_stopping_trains_no_further_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last checkpoint is there, and the status isn't; nor where a budget ended the run in the same round."""
    overrides = (*STOP, "+callback.halt.mode=max", "+callback.halt.patience=1", "client.lr=1e-9")
    uninterrupted = run_training(tmp_path / "whole", *overrides, "rounds=9")
    act_at_call(monkeypatch, RunStatus, "finish", 1, kill_self)
    assert os.WIFSIGNALED(run_in_child(lambda: run_training(tmp_path, *overrides, "rounds=9") and None))
    monkeypatch.undo()
    resumed = run_training(tmp_path, *overrides, "rounds=9", "resume=true")
    status = json.loads((resumed.folder / "status.json").read_text())
    assert (status["status"], status["early"], status["rounds_done"]) == ("finished", True, uninterrupted.last.step)
    assert resumed.reports == []
    assert (resumed.weights() == uninterrupted.weights()).all()
    exact = run_training(tmp_path / "exact", *overrides, f"rounds={uninterrupted.last.step}")
    assert run_training(tmp_path / "exact", *overrides, "rounds=9", "resume=true").reports == []
    assert json.loads((exact.folder / "status.json").read_text())["rounds_done"] == uninterrupted.last.step


def test_nothing_is_written_outside_of_the_runs_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    run = run_training(tmp_path / "logs", *BEST)
    assert len(list((run.folder / "checkpoints").iterdir())) == 1
    assert not list((tmp_path / "here").iterdir())


RATE = ("+callback.rate._target_=lightning.pytorch.callbacks.LearningRateMonitor",)
TWO_CHECKPOINT_CALLBACKS = tuple(
    f"+callback.{name}._target_=lightning.pytorch.callbacks.ModelCheckpoint" for name in "ab"
)


@pytest.mark.parametrize(
    ("overrides", "message"), [(RATE, "has no logger"), (TWO_CHECKPOINT_CALLBACKS, "more than one stateful callback")]
)
def test_an_error_of_lightning_gives_one_line_and_no_run_folder(
    tmp_path: Path, overrides: tuple[str, ...], message: str
) -> None:
    with pytest.raises(IncompatibleConfig, match=message) as caught:
        run_training(tmp_path, *overrides)
    assert "\n" not in str(caught.value)
    assert not list((tmp_path / "runs").iterdir())


class UserCallback(pl.Callback):
    """A user's own, which may log what another monitors; so a monitor can't be refused before it runs."""


def test_a_metric_that_is_never_logged_gives_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_harness, "Mine", UserCallback, raising=False)
    user_callback = ("+callback.mine._target_=run_harness.Mine", STOP[0], "+callback.halt.monitor=mine/loss")
    with pytest.raises(IncompatibleConfig, match=r"`mine/loss` which is not available.*`server_val/loss`"):
        run_training(tmp_path, *user_callback)


def test_a_callback_that_monitors_the_test_set_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"callback.halt.monitor must be one of server_val/acc, server_val/loss, got"):
        run_training(tmp_path, *STOP[:1], "+callback.halt.monitor=test/acc")
    assert not list(tmp_path.iterdir()), "it is refused before anything is written"
