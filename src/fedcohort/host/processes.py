"""How many processes train, and whether they can be started here. Without Lightning, whose import takes seconds."""

import os

import torch

from fedcohort.errors import OptionError
from fedcohort.host import cores, task
from fedcohort.ranges import refuse

CLUSTER = {"SLURM_JOB_ID", "TORCHELASTIC_RUN_ID", "GROUP_RANK"}


def count(accelerator: str, devices: int | str) -> int:
    """Processes on this machine; "auto" is one per core that we may use, or per GPU."""
    if devices != "auto":
        return int(devices)
    return cores.available() if accelerator == "cpu" else max(1, torch.cuda.device_count())


def make_repeatable(accelerator: str) -> None:
    """Let a GPU give the same bits twice: sums in one order, no kernel chosen by how fast it was, float32 all through.

    An operation that torch has no such kernel for warns by itself, and its runs may differ in the last bits.
    """
    if accelerator == "cpu":
        return
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # what torch asks for, before cuBLAS is first used
    torch.use_deterministic_algorithms(True, warn_only=True)
    # nobody reads memory that nobody wrote, and to fill it takes a quarter longer
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False


def list_untried(accelerator: str, num_nodes: int) -> list[str]:
    """What nobody has tried yet, for a line at the start."""
    untried = ["GPUs (trainer.accelerator=gpu)"] if accelerator == "gpu" else []
    untried += [f"several machines (trainer.num_nodes={num_nodes})"] if num_nodes > 1 else []
    hint = "compare a short run with trainer=cpu before you trust a long one"
    return [f"fedcohort has not been run on {' and '.join(untried)} yet: {hint}"] if untried else []


def check(accelerator: str, devices: int, num_nodes: int) -> None:
    """Raise `OptionError` where there are fewer GPUs than asked for, or nobody who starts the other nodes."""
    if num_nodes > 1 and not CLUSTER & set(os.environ):
        raise refuse("trainer.num_nodes", "1 where neither SLURM nor torchrun starts the processes", num_nodes)
    launcher, repeats = task.count_repeats()
    if num_nodes == 1 and repeats > 1:
        one = "srun --ntasks=1" if launcher == "srun" else "torchrun --nproc-per-node=1"
        raise OptionError(
            f"{launcher} started {repeats} processes, and with trainer.num_nodes=1 each would train the whole run: use "
            f"{one}. trainer.devices={devices} starts its own processes; a sweep (-m) starts different runs"
        )
    if num_nodes > 1 and task.count() != devices * num_nodes:
        how = f"trainer.num_nodes={num_nodes} times trainer.devices={devices}"
        wanted = f"{devices * num_nodes}, {how}: srun --nodes={num_nodes} --ntasks-per-node={devices}"
        raise refuse("the number of tasks that SLURM or torchrun started", wanted, task.count())
    if accelerator == "gpu" and torch.cuda.device_count() < devices:
        found = torch.cuda.device_count()
        raise refuse("trainer.devices", f"at most the number of CUDA devices, which is {found}", devices)
