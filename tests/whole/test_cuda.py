"""Runs on a GPU repeat and resume bit for bit, and equal CPU runs up to rounding. Skipped without a GPU."""

from pathlib import Path

import pytest
import torch

from run_harness import run_training, same_bits

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")

CASES = {
    "a linear model in its dual": ("model=logreg",),
    "clients side by side": ("model=mlp", "engine=vectorised"),
    "hand-written gradients": ("model=mlp", "engine=sequential"),
    "convolutions": ("model=cnn", "engine=sequential"),
    "batch norm": ("model=resnet8_gn", "model.width=8", "model.groups=2", "model.norm=batch"),
    "dropout": ("model._target_=engine_harness.DropoutModel",),
    "flash and scaffold": ("model=mlp", "selector=flash", "agg=scaffold", "heterogeneity=noniid30_noise15"),
    "adam and a proximal term": ("model=mlp", "client=adam", "regulariser=prox", "selector=powd"),
    "buffered rounds": ("model=mlp", "deadline=buffered", "agg=fedbuff", "cohort=5", "deadline.concurrency=10"),
    "private reports": ("model=mlp", "selector=low_ratio", "signal_noise=laplace"),
    "divfl's stored updates": ("model=mlp", "selector=divfl"),
    "bf16": ("model=cnn_two_layer", "model.channels=[4,8]", "engine.precision=bf16"),
    "tf32": ("model=mlp", "engine.precision=tf32"),
}
PRECISION_TOLERANCE = {"bf16": 0.05, "tf32": 0.01}  # largest relative difference of the loss from float32, by precision


@pytest.mark.parametrize("case", CASES)
def test_repeated_and_resumed_runs_are_bit_identical(case: str, tmp_path: Path) -> None:
    overrides = ("trainer=gpu", *CASES[case])
    uninterrupted = run_training(tmp_path / "whole", *overrides, "rounds=4")
    assert same_bits(run_training(tmp_path / "again", *overrides, "rounds=4"), uninterrupted)
    run_training(tmp_path / "parts", *overrides, "rounds=2")
    resumed = run_training(tmp_path / "parts", *overrides, "rounds=4", "resume=true")
    assert len(resumed.reports) == 2
    assert same_bits(resumed, uninterrupted)


@pytest.mark.parametrize("case", [case for case in CASES if case not in ("dropout", *PRECISION_TOLERANCE)])
def test_a_gpu_run_equals_the_cpu_run_up_to_rounding(case: str, tmp_path: Path) -> None:
    on_cpu, on_gpu = (run_training(tmp_path / choice, f"trainer={choice}", *CASES[case]) for choice in ("cpu", "gpu"))
    assert on_cpu.cohorts == on_gpu.cohorts
    torch.testing.assert_close(on_gpu.weights(), on_cpu.weights(), rtol=1e-3, atol=1e-4)
    assert on_gpu.last.metrics["test/loss"] == pytest.approx(on_cpu.last.metrics["test/loss"], rel=1e-3)


@pytest.mark.parametrize("case", PRECISION_TOLERANCE)
def test_reduced_precision_is_near_float32(case: str, tmp_path: Path) -> None:
    reduced_run = run_training(tmp_path / case, "trainer=gpu", *CASES[case])
    exact_run = run_training(tmp_path / "float32", "trainer=gpu", *CASES[case], "engine.precision=float32")
    assert reduced_run.last.metrics["test/loss"] != exact_run.last.metrics["test/loss"]
    assert reduced_run.last.metrics["test/loss"] == pytest.approx(
        exact_run.last.metrics["test/loss"], rel=PRECISION_TOLERANCE[case]
    )
