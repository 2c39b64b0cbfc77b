"""Each process of a local sweep takes a card of its own; tried with cards that aren't there."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fedcohort.startup import cards
from fedcohort.startup.compose import Composed
from fedcohort.startup.jobs import SweepJob

NVIDIA = "GPU 0: NVIDIA H100 (UUID: GPU-1)\nGPU 1: NVIDIA H100 (UUID: GPU-2)"


@pytest.fixture(autouse=True)
def none_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cards, "_HELD", {})
    monkeypatch.setenv(cards.VISIBLE, "")
    monkeypatch.delenv(cards.VISIBLE)


def hydra(launcher: str = "hydra_plugins.hydra_joblib_launcher.joblib_launcher.JoblibLauncher") -> Any:
    return SimpleNamespace(launcher=SimpleNamespace(_target_=launcher))


def on(accelerator: str = "gpu", devices: Any = 1) -> Composed:
    return Composed({"trainer": {"accelerator": accelerator, "devices": devices}}, {}, ())


def test_which_cards_there_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the user has left visible, else all that the driver knows; none without one."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert cards.list_cards() == []
    (tmp_path / "nvidia-smi").write_text(f'#!/bin/sh\nprintf "{NVIDIA}\\n"\n')
    (tmp_path / "nvidia-smi").chmod(0o755)
    assert cards.list_cards() == ["0", "1"]
    monkeypatch.setenv(cards.VISIBLE, "3, GPU-2")
    assert cards.list_cards() == ["3", "GPU-2"]
    monkeypatch.setenv(cards.VISIBLE, "")
    assert cards.list_cards() == []


def test_free_ones_first_then_in_turn(tmp_path: Path) -> None:
    """A lock is of an open file: a second process is a second look at it."""
    assert cards.take(tmp_path, ["3", "5"], 7) == "3"
    first = cards._HELD.pop(tmp_path)
    assert first is not None
    assert cards.take(tmp_path, ["3", "5"], 7) == "5"
    second = cards._HELD.pop(tmp_path)
    assert [cards.take(tmp_path, ["3", "5"], number) for number in (4, 5)] == ["3", "5"], "more processes than cards"
    assert os.environ[cards.VISIBLE] == "5"
    first.close()
    assert cards.take(tmp_path, ["3", "5"], 1) == "3", "its process has ended"
    assert second is not None
    second.close()
    assert cards.take(tmp_path, [], 0) is None


@pytest.mark.parametrize(("asked", "found", "jobs"), [(-1, ["0", "1"], 2), (-1, [], -1), (5, ["0", "1"], 5)])
def test_as_many_jobs_as_cards(monkeypatch: pytest.MonkeyPatch, asked: int, found: list[str], jobs: int) -> None:
    monkeypatch.setattr(cards, "list_cards", lambda: found)
    launcher: Any = SimpleNamespace(joblib={"n_jobs": asked})
    cards.fit_jobs(launcher)
    assert launcher.joblib["n_jobs"] == jobs
    other: Any = SimpleNamespace()
    cards.fit_jobs(other)
    assert vars(other) == {}, "another launcher's own business"


def test_a_process_keeps_its_card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cards, "list_cards", lambda: ["0", "1"])
    for number in (0, 3):
        cards.lease(SweepJob(tmp_path, number, ()), hydra(), on())
        assert os.environ[cards.VISIBLE] == "0"


@pytest.mark.parametrize(
    ("launcher", "composition"),
    [
        ("hydra_plugins.hydra_submitit_launcher.submitit_launcher.SlurmLauncher", on()),  # SLURM gives its own
        ("hydra._internal.core_plugins.basic_launcher.BasicLauncher", on()),
        (hydra().launcher._target_, on("cpu")),
        (hydra().launcher._target_, on("gpu", 2)),
        (hydra().launcher._target_, on("gpu", "auto")),
    ],
)
def test_others_see_what_they_saw(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, launcher: str, composition: Composed
) -> None:
    monkeypatch.setattr(cards, "list_cards", lambda: ["0", "1"])
    cards.lease(SweepJob(tmp_path, 0, ()), hydra(launcher), composition)
    assert cards.VISIBLE not in os.environ
