"""What anyone who knows Lightning expects: its callbacks work on rounds as on epochs."""

import json
from pathlib import Path

import pytest
import torch

from run_harness import go

BEST = ("+callback.best._target_=lightning.pytorch.callbacks.ModelCheckpoint", "+callback.best.monitor=server_val/loss")
STOP = ("+callback.halt._target_=lightning.pytorch.callbacks.EarlyStopping", "+callback.halt.monitor=server_val/acc")


def test_a_monitored_model_checkpoint_saves(tmp_path: Path) -> None:
    # under manual optimization global_step stays 0, and ModelCheckpoint then saves nothing
    words = (*BEST, f"+callback.best.dirpath={tmp_path / 'best'}", "+callback.best.save_top_k=2", "rounds=4")
    ran = go(tmp_path, *words)
    saved = sorted((tmp_path / "best").glob("*.ckpt"))
    assert len(saved) == 2
    steps = {torch.load(path, weights_only=True)["global_step"] for path in saved}
    assert steps <= {1, 2, 3, 4}
    losses = {report.step: report.metrics["server_val/loss"] for report in ran.reports[1:]}
    assert steps == set(sorted(losses, key=losses.__getitem__)[:2])


def test_early_stopping_finishes_the_run(tmp_path: Path) -> None:
    words = (*STOP, "+callback.halt.mode=max", "+callback.halt.patience=1", "client.lr=1e-9", "rounds=9")
    ran = go(tmp_path, *words)
    assert 2 <= ran.last.step < 9
    status = json.loads((ran.folder / "status.json").read_text())
    assert (status["status"], status["early"]) == ("finished", True)
    assert go(tmp_path, *words, "resume=true").reports == [], "it is finished"


def test_nothing_may_monitor_the_test_set(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="test/acc"):
        go(tmp_path, *STOP[:1], "+callback.halt.monitor=test/acc")
