"""A GPU for each process of `hydra/launcher=local`: it takes one when its first job needs one, and keeps it.

A GPU is taken by a lock on a file in the sweep's folder, which ends with the process that holds it. Where there are
fewer GPUs than processes, the other processes share them in turn. A job that trains on several GPUs sees all of them.
"""

import os
import subprocess
from pathlib import Path
from typing import IO

from hydra.plugins.launcher import Launcher

from fedcohort.host.lock import try_to_lock
from fedcohort.record.sweep_folder import SweepJob
from fedcohort.startup.compose import Composition

ALL_DEVICES = -1  # hydra.launcher.n_jobs: as many as there are cores, or GPUs
VISIBLE_GPUS_VARIABLE = "CUDA_VISIBLE_DEVICES"
_LOCK_BY_SWEEP: dict[Path, IO[str] | None] = {}  # by sweep: the lock of this process, None for a share in one


def list_gpus() -> list[str]:
    """Return the GPUs that this process may use: those in CUDA_VISIBLE_DEVICES, or else the numbers of all."""
    if VISIBLE_GPUS_VARIABLE in os.environ:
        return [gpu_name.strip() for gpu_name in os.environ[VISIBLE_GPUS_VARIABLE].split(",") if gpu_name.strip()]
    try:
        gpu_lines = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=60, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [str(i) for i in range(sum(gpu_line.startswith("GPU ") for gpu_line in gpu_lines.splitlines()))]


def assign_gpu(job: SweepJob, composition: Composition) -> None:
    """Make a single GPU visible to this process, if its job trains on one GPU and no earlier job has set the GPU.

    Args:
        job: the job of the sweep.
        composition: the job's composed config.
    """
    trainer_config = composition.config["trainer"]
    if (trainer_config["accelerator"], trainer_config["devices"]) == ("gpu", 1) and job.sweep not in _LOCK_BY_SWEEP:
        take_gpu(job.sweep, list_gpus(), job.job_number)


def limit_jobs_to_gpus(launcher: Launcher) -> None:
    """Set `n_jobs` of `launcher` to the number of GPUs if it is -1 and there are GPUs."""
    if getattr(launcher, "n_jobs", None) == ALL_DEVICES and (visible_gpus := list_gpus()):
        launcher.n_jobs = len(visible_gpus)  # type: ignore[attr-defined]  # checked above


def take_gpu(sweep: Path, gpu_ids: list[str], job_number: int) -> str | None:
    """Choose a GPU for a job, and make it the only visible one of this process.

    The first unused GPU is locked. If all are in use, jobs share them in turn.

    Args:
        sweep: folder of the sweep, which holds the locks.
        gpu_ids: names of the GPUs, as in CUDA_VISIBLE_DEVICES (`list_gpus`).
        job_number: number of the job in the sweep, from 0.

    Returns:
        The name of the GPU; None without GPUs.
    """
    if not gpu_ids:
        return None
    for gpu_name in gpu_ids:
        if (gpu_lock := try_to_lock(sweep / f"gpu-{gpu_name}.lock")) is not None:
            break
    else:
        gpu_name = gpu_ids[job_number % len(gpu_ids)]
    _LOCK_BY_SWEEP[sweep] = gpu_lock
    os.environ[VISIBLE_GPUS_VARIABLE] = gpu_name
    return gpu_name
