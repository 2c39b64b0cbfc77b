"""Each process of a local sweep uses a different GPU; tested with simulated GPUs."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fedcohort.jobs import gpus
from fedcohort.record.sweep_folder import SweepJob
from fedcohort.startup.compose import Composition

NVIDIA = "GPU 0: NVIDIA H100 (UUID: GPU-1)\nGPU 1: NVIDIA H100 (UUID: GPU-2)"


@pytest.fixture(autouse=True)
def none_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpus, "_LOCK_BY_SWEEP", {})
    monkeypatch.setenv(gpus.VISIBLE_GPUS_VARIABLE, "")
    monkeypatch.delenv(gpus.VISIBLE_GPUS_VARIABLE)


def compose_on(accelerator: str = "gpu", devices: Any = 1) -> Composition:
    return Composition({"trainer": {"accelerator": accelerator, "devices": devices}}, {}, ())


def test_visible_gpus_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the user has left visible, else all that the driver knows; none without one."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert gpus.list_gpus() == []
    (tmp_path / "nvidia-smi").write_text(f'#!/bin/sh\nprintf "{NVIDIA}\\n"\n')
    (tmp_path / "nvidia-smi").chmod(0o755)
    assert gpus.list_gpus() == ["0", "1"]
    monkeypatch.setenv(gpus.VISIBLE_GPUS_VARIABLE, "3, GPU-2")
    assert gpus.list_gpus() == ["3", "GPU-2"]
    monkeypatch.setenv(gpus.VISIBLE_GPUS_VARIABLE, "")
    assert gpus.list_gpus() == []


def test_a_free_gpu_is_taken_first_and_then_in_turn(tmp_path: Path) -> None:
    """A lock is of an open file: a second process is a second look at it."""
    assert gpus.take_gpu(tmp_path, ["3", "5"], 7) == "3"
    first = gpus._LOCK_BY_SWEEP.pop(tmp_path)
    assert first is not None
    assert gpus.take_gpu(tmp_path, ["3", "5"], 7) == "5"
    other_launcher = gpus._LOCK_BY_SWEEP.pop(tmp_path)
    assert [gpus.take_gpu(tmp_path, ["3", "5"], number) for number in (4, 5)] == ["3", "5"], "more processes than cards"
    assert os.environ[gpus.VISIBLE_GPUS_VARIABLE] == "5"
    first.close()
    assert gpus.take_gpu(tmp_path, ["3", "5"], 1) == "3", "its process has ended"
    assert other_launcher is not None
    other_launcher.close()
    assert gpus.take_gpu(tmp_path, [], 0) is None


@pytest.mark.parametrize(("n_requested", "gpu_names", "jobs"), [(-1, ["0", "1"], 2), (-1, [], -1), (5, ["0", "1"], 5)])
def test_parallel_jobs_are_limited_to_the_number_of_gpus(
    monkeypatch: pytest.MonkeyPatch, n_requested: int, gpu_names: list[str], jobs: int
) -> None:
    monkeypatch.setattr(gpus, "list_gpus", lambda: gpu_names)
    launcher: Any = SimpleNamespace(n_jobs=n_requested)
    gpus.limit_jobs_to_gpus(launcher)
    assert launcher.n_jobs == jobs
    other_launcher: Any = SimpleNamespace()
    gpus.limit_jobs_to_gpus(other_launcher)
    assert vars(other_launcher) == {}, "another launcher's own business"


def test_a_process_keeps_its_gpu_for_all_of_its_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpus, "list_gpus", lambda: ["0", "1"])
    for number in (0, 3):
        gpus.assign_gpu(SweepJob(tmp_path, number, ()), compose_on())
        assert os.environ[gpus.VISIBLE_GPUS_VARIABLE] == "0"


@pytest.mark.parametrize("composition", [compose_on("cpu"), compose_on("gpu", 2), compose_on("gpu", "auto")])
def test_runs_without_a_gpu_keep_the_visible_gpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, composition: Composition
) -> None:
    monkeypatch.setattr(gpus, "list_gpus", lambda: ["0", "1"])
    gpus.assign_gpu(SweepJob(tmp_path, 0, ()), composition)
    assert gpus.VISIBLE_GPUS_VARIABLE not in os.environ
