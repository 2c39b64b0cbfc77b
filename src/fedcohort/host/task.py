"""Which of the processes of a run over several machines this is, as SLURM or torchrun say."""

import os

RANKS = ("SLURM_PROCID", "RANK")
COUNTS = ("SLURM_NTASKS", "WORLD_SIZE")


def follows(num_nodes: int) -> bool:
    """Whether this is one of several processes that a cluster started, and not the first: that has the run's folder."""
    return num_nodes > 1 and int(_read(RANKS) or 0) > 0


def count() -> int | None:
    """How many were started; None where nobody says so."""
    found = _read(COUNTS)
    return int(found) if found else None


def count_repeats() -> tuple[str, int]:
    """Return the launcher and number of the processes that it started with the same command; ("", 1) without one.

    A batch script of SLURM's has SLURM_NTASKS, too, although it starts the command once.
    """
    if "TORCHELASTIC_RUN_ID" in os.environ:
        return "torchrun", int(os.environ.get("WORLD_SIZE", "1"))
    if "SLURM_STEP_NUM_TASKS" in os.environ and "SLURM_STEP_ID" in os.environ:
        return "srun", int(os.environ["SLURM_STEP_NUM_TASKS"])
    return "", 1


def _read(names: tuple[str, ...]) -> str | None:
    return next((os.environ[name] for name in names if name in os.environ), None)
