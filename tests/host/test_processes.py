"""Messages and rejections about the processes that train."""

import os
from typing import Any

import pytest
import torch

from fedcohort.errors import OptionError
from fedcohort.host.processes import check_process_counts, make_gpu_results_repeatable, untested_hardware_notices


@pytest.mark.parametrize(
    ("accelerator", "devices", "num_nodes", "phrases"),
    [
        *(("cpu", 1, 1, []), ("cpu", 4, 1, []), ("gpu", 1, 1, [])),
        *(("gpu", 2, 1, ["several GPUs (trainer.devices=2)"]), ("cpu", 1, 2, ["machines"])),
        ("gpu", 4, 2, ["GPUs", "machines"]),
    ],
)
def test_untested_hardware_gives_a_notice(accelerator: str, devices: int, num_nodes: int, phrases: list[str]) -> None:
    lines = untested_hardware_notices(accelerator, devices, num_nodes)
    assert len(lines) == bool(phrases)
    assert all(phrase in lines[0] for phrase in phrases)


def test_starting_several_machines_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SLURM_JOB_ID", "TORCHELASTIC_RUN_ID", "GROUP_RANK"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(OptionError, match=r"trainer\.num_nodes must be 1 where neither SLURM nor torchrun"):
        check_process_counts("cpu", 1, 2)


BATCH = {
    "SLURM_JOB_ID": "7",
    "SLURM_NTASKS": "2",
    "SLURM_PROCID": "0",
}  # a script of sbatch's, which starts one process
STEP = {**BATCH, "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "2"}
TORCHRUN = {"TORCHELASTIC_RUN_ID": "none", "WORLD_SIZE": "2"}


@pytest.mark.parametrize(
    ("environment", "launcher"),
    [(BATCH, ""), ({**STEP, "SLURM_STEP_NUM_TASKS": "1"}, ""), (STEP, "srun"), (TORCHRUN, "torchrun")],
)
def test_repeated_processes_of_one_run_are_rejected(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], launcher: str
) -> None:
    for name in (*STEP, *TORCHRUN):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    if launcher:
        with pytest.raises(OptionError, match=rf"^{launcher} started 2 processes, and .*: use {launcher} --n"):
            check_process_counts("cpu", 2, 1)
    else:
        check_process_counts("cpu", 2, 1)


@pytest.mark.parametrize(("accelerator", "is_requested"), [("cpu", False), ("gpu", True)])
def test_a_gpu_is_set_to_deterministic_mode(
    accelerator: str, is_requested: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This tests that the switches are set. Their effect is tested on a GPU (tests/whole/test_cuda.py)."""
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    monkeypatch.setattr(torch.backends.cudnn, "benchmark", True)
    torch.use_deterministic_algorithms(False)
    try:
        make_gpu_results_repeatable(accelerator, "float32")
        assert torch.are_deterministic_algorithms_enabled() is is_requested
        assert torch.is_deterministic_algorithms_warn_only_enabled() is is_requested
        assert torch.backends.cudnn.benchmark is not is_requested
        assert ("CUBLAS_WORKSPACE_CONFIG" in os.environ) is is_requested
    finally:
        torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize(("precision", "is_tf32"), [("float32", False), ("tf32", True), ("bf16", False)])
def test_only_tf32_rounds_float32_products_on_a_gpu(
    monkeypatch: pytest.MonkeyPatch, precision: str, is_tf32: bool
) -> None:
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    backends: tuple[Any, ...] = (torch.backends.cudnn, torch.backends.cuda.matmul)
    default_values = [backend.allow_tf32 for backend in backends]
    try:
        make_gpu_results_repeatable("gpu", precision)
        assert [backend.allow_tf32 for backend in backends] == [is_tf32, is_tf32]
    finally:
        torch.use_deterministic_algorithms(False)
        for backend, value in zip(backends, default_values, strict=True):
            backend.allow_tf32 = value
