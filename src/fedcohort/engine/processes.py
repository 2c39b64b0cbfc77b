"""How many processes train, and whether they can be started here. Without Lightning, whose import takes seconds."""

import os

import torch

from fedcohort import cores
from fedcohort.ranges import refuse

CLUSTER = {"SLURM_JOB_ID", "TORCHELASTIC_RUN_ID", "GROUP_RANK"}


def count(accelerator: str, devices: int | str) -> int:
    """Processes on this machine; "auto" is one per core that we may use, or per GPU."""
    if devices != "auto":
        return int(devices)
    return cores.available() if accelerator == "cpu" else max(1, torch.cuda.device_count())


def check(accelerator: str, devices: int, num_nodes: int) -> None:
    """Raise `OptionError` where there are fewer GPUs than asked for, or nobody who starts the other nodes."""
    if num_nodes > 1 and not CLUSTER & set(os.environ):
        raise refuse("trainer.num_nodes", "1 where neither SLURM nor torchrun starts the processes", num_nodes)
    if accelerator == "gpu" and torch.cuda.device_count() < devices:
        found = torch.cuda.device_count()
        raise refuse("trainer.devices", f"at most the number of CUDA devices, which is {found}", devices)
