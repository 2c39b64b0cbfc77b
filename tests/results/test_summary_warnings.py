"""Warnings about a run that diverged, or whose updates never changed the model."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from console.summary_harness import make_observers, play_metrics, read_summary
from record.example_run import make_report, make_run_info


def test_a_rising_loss_is_reported(tmp_path: Path) -> None:
    """25 is 12.5 times 2.0; 19 isn't ten times it, and one that wasn't measured before training says nothing."""
    high = play_metrics(make_run_info(tmp_path / "high", rounds=2), *({"test/loss": loss} for loss in (2.0, 9.0, 25.0)))
    assert [line for line in high["warnings"] if line.startswith("test/loss is 25 at round 2, 12 times the untrained")]
    low = play_metrics(make_run_info(tmp_path / "low", rounds=1), {"test/loss": 0.05}, {"test/loss": 0.9})
    assert any(line.startswith("test/loss is 0.9 at round 1, 18 times the untrained") for line in low["warnings"])
    quiet_histories = (
        [{"test/loss": 2.0}, {"test/loss": 19.0}],
        [{"test/acc": 0.1}, {"test/loss": 2.0}, {"test/loss": 900.0}],
    )
    for number, rounds in enumerate(quiet_histories):
        warnings = play_metrics(make_run_info(tmp_path / str(number), rounds=len(rounds) - 1), *rounds)
        assert not any("untrained model's" in line for line in warnings["warnings"])


def test_divergence_is_reported(tmp_path: Path) -> None:
    """The loss of round 1 isn't the final one: that was measured, and is no number."""
    rounds = [{"test/acc": 0.1, "test/loss": loss} for loss in (2.3, 2.0, float("nan"), float("nan"))]
    warnings = play_metrics(make_run_info(tmp_path / "run", rounds=3), *rounds)
    assert warnings["final"] == {"test/acc": 0.1, "test/loss": None}
    assert "the model has diverged: test/loss is nan at round 3, last finite at round 1" in warnings["warnings"]
    sound = play_metrics(make_run_info(tmp_path / "sound", rounds=1), {"test/loss": 2.3}, {"test/loss": 2.0})
    assert not any("diverged" in line for line in sound["warnings"])


@pytest.mark.parametrize(
    ("cohort", "arrived", "dropped", "steps", "line"),
    [
        (4, 4, 0.0, "taken", None),
        (
            0,
            0,
            0.0,
            "none",
            "in any of the 2 rounds, the model is the untrained one: no client was selected (availability=",
        ),
        (4, 0, 0.0, "none", ": no selected client finished in time (deadline="),
        (4, 0, 4.0, "none", ": clients' updates were dropped because they were not finite or longer than update_limit"),
        (4, 4, 0.0, "left out", ": the server's steps were dropped because they were not finite or longer"),
        (
            4,
            3,
            1.0,
            "left out",
            ": clients' updates were dropped because they were not finite or longer than update_limit, and the",
        ),
        (4, 4, 0.0, "of nothing", "the model is still the initial model: no update changed it"),
    ],
)
def test_a_run_without_an_applied_update_is_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, cohort: int, arrived: int, dropped: float, steps: str, line: Any
) -> None:
    watching = make_observers()
    for watcher in watching:
        watcher.start(make_run_info(tmp_path / "run", rounds=2))
    for step in range(3):
        run_info = dataclasses.replace(
            make_report(step),
            cohort=np.arange(cohort if step else 0),
            arrived=np.arange(arrived if step else 0),
            fingerprint=f"{step}:{step if steps == 'taken' else 'w0'}",
            metrics={"test/acc": 0.1, "round/dropped_nonfinite": dropped, "round/dropped_step": steps == "left out"},
        )
        for watcher in watching:
            watcher.observe(run_info)
    for watcher in watching:
        watcher.finish("finished")
    warnings = read_summary(tmp_path / "run")
    assert warnings["rounds_without_update"] == (0 if steps in ("taken", "of nothing") else 2)
    assert warnings["warnings"] == [record.getMessage() for record in caplog.records]
    assert len(warnings["warnings"]) == (line is not None)
    assert line is None or line in warnings["warnings"][0]


@pytest.mark.parametrize(("dropped", "reason"), [(0.0, "); the"), (2.0, "), or their updates were dropped; the")])
def test_clients_that_never_arrive_are_reported(tmp_path: Path, dropped: float, reason: str) -> None:
    """Selected in each of 5 rounds: 0 and 1 never arrived, 2 arrived once; 3 was selected twice only."""
    journal, summary = make_observers()
    for watcher in (journal, summary):
        watcher.start(make_run_info(tmp_path / "run", rounds=5))
    for step in range(6):
        run_info = dataclasses.replace(
            make_report(step),
            cohort=np.array(([0, 1, 2] + [3] * (step < 3)) if step else [], dtype=np.int64),
            arrived=np.array([2] if step == 4 else [], dtype=np.int64),
            fingerprint=f"{step}:{step}",
            metrics={"test/acc": 0.1, "round/dropped_nonfinite": dropped},
        )
        journal.observe(run_info)
    for watcher in (journal, summary):
        watcher.finish("finished")
    (line,) = read_summary(tmp_path / "run")["warnings"]
    assert line.startswith("2 of 12 clients were selected 3 times or more and never arrived (0, 1): they were late")
    assert reason in line
