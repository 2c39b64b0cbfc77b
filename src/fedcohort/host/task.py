"""The rank and the number of the processes of a run over several machines, as SLURM or torchrun set them."""

import os

RANK_VARIABLES = ("SLURM_PROCID", "RANK")
PROCESS_COUNT_VARIABLES = ("SLURM_NTASKS", "WORLD_SIZE")


def is_non_first_task(num_nodes: int) -> bool:
    """Return whether this process of a run over several machines is not the first one.

    Only the first process writes the run's folder. `num_nodes` is the number of machines; the result is False for one.
    """
    return num_nodes > 1 and int(_read_environment_variable(RANK_VARIABLES) or 0) > 0


def count_cluster_processes() -> int | None:
    """Return the number of processes that a cluster started for this run; None outside of a cluster's job."""
    n_processes = _read_environment_variable(PROCESS_COUNT_VARIABLES)
    return int(n_processes) if n_processes else None


def count_repeated_launches() -> tuple[str, int]:
    """Return the launcher, "srun" or "torchrun", and how often it started this command; ("", 1) without one.

    SLURM_NTASKS is not used, as a SLURM batch script has it, too, although it starts the command once.
    """
    if "TORCHELASTIC_RUN_ID" in os.environ:
        return "torchrun", int(os.environ.get("WORLD_SIZE", "1"))
    if "SLURM_STEP_NUM_TASKS" in os.environ and "SLURM_STEP_ID" in os.environ:
        return "srun", int(os.environ["SLURM_STEP_NUM_TASKS"])
    return "", 1


def _read_environment_variable(variable_names: tuple[str, ...]) -> str | None:
    return next((os.environ[variable_name] for variable_name in variable_names if variable_name in os.environ), None)
