"""The number of training processes, and checks of whether they can be started; without Lightning's slow import."""

import os
from collections.abc import Mapping
from typing import Any

import torch

from fedcohort.errors import OptionError
from fedcohort.host import cores, task
from fedcohort.ranges import range_error

CLUSTER_VARIABLES = {"SLURM_JOB_ID", "TORCHELASTIC_RUN_ID", "GROUP_RANK"}


def read_process_options(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the accelerator, the number of processes per machine (`devices`), and the number of machines, by name.

    `config` is a composed config; its node `trainer` has these options. Its `devices` may be "auto", which stands for
    one process per available core or GPU.
    """
    accelerator, devices, num_nodes = (config["trainer"][k] for k in ("accelerator", "devices", "num_nodes"))
    if devices == "auto":
        devices = cores.count_available_cores() if accelerator == "cpu" else max(1, torch.cuda.device_count())
    return {"accelerator": accelerator, "devices": devices, "num_nodes": num_nodes}


def make_gpu_results_repeatable(accelerator: str, precision: str) -> None:
    """Make results of the `accelerator` "gpu" repeatable to the bit: deterministic kernels, no benchmarks.

    With `precision` tf32, float32 matrix products and convolutions on the GPU round their inputs to TensorFloat-32, in
    training and in evaluation. torch warns about an operation without a deterministic kernel; runs may then differ in
    the last bits.
    """
    if accelerator == "cpu":
        return
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # required by torch, before cuBLAS is first used
    torch.use_deterministic_algorithms(True, warn_only=True)
    # No uninitialised memory is read, and filling it takes 25 % longer.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"


def untested_hardware_notices(accelerator: str, devices: int, num_nodes: int) -> list[str]:
    """Return a notice about hardware on which fedcohort has not been run; [] for other hardware.

    Args:
        accelerator: "cpu" or "gpu".
        devices: processes on each machine.
        num_nodes: number of machines.
    """
    hardware_texts = [f"several GPUs (trainer.devices={devices})"] if accelerator == "gpu" and devices > 1 else []
    hardware_texts += [f"several machines (trainer.num_nodes={num_nodes})"] if num_nodes > 1 else []
    advice_on_error = "compare a short run with trainer=cpu before you rely on a long one"
    notice_text = f"fedcohort has not been run on {' and '.join(hardware_texts)} yet: {advice_on_error}"
    return [notice_text] if hardware_texts else []


def check_process_counts(accelerator: str, devices: int, num_nodes: int) -> None:
    """Raise `OptionError` if there are too few GPUs, or if no launcher starts the right number of processes.

    Args:
        accelerator: "cpu" or "gpu".
        devices: processes on each machine.
        num_nodes: number of machines.
    """
    if num_nodes > 1 and not CLUSTER_VARIABLES & set(os.environ):
        raise range_error("trainer.num_nodes", "1 where neither SLURM nor torchrun starts the processes", num_nodes)
    launcher_name, n_launches = task.count_repeated_launches()
    if num_nodes == 1 and n_launches > 1:
        launch_command = "srun --ntasks=1" if launcher_name == "srun" else "torchrun --nproc-per-node=1"
        raise OptionError(
            f"{launcher_name} started {n_launches} processes, and with trainer.num_nodes=1 each would train the whole "
            f"run: use {launch_command}. trainer.devices={devices} starts further processes itself; a sweep (-m) "
            "starts different runs"
        )
    if num_nodes > 1 and (n_started_processes := task.count_cluster_processes()) != devices * num_nodes:
        process_text = f"{devices * num_nodes}, trainer.num_nodes={num_nodes} times trainer.devices={devices}"
        raise range_error(
            "the number of tasks that SLURM or torchrun started",
            f"{process_text}: start it with srun --nodes={num_nodes} --ntasks-per-node={devices}",
            n_started_processes,
        )
    if accelerator == "gpu" and (n_gpus := torch.cuda.device_count()) < devices:
        raise range_error("trainer.devices", f"at most the number of CUDA devices, which is {n_gpus}", devices)
