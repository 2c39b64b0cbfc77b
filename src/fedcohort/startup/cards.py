"""A GPU for each process of `hydra/launcher=local`: it takes a card when its first job wants one, and keeps it.

A card is taken by a lock on a file in the sweep's folder, which ends with the process that holds it. Where there are
fewer cards than processes, those without one share them in turn. A job that trains on several cards sees all of them.
"""

import os
import subprocess
from pathlib import Path
from typing import IO

from hydra.conf import HydraConf
from hydra.plugins.launcher import Launcher

from fedcohort.host.lock import hold
from fedcohort.startup.compose import Composed
from fedcohort.startup.jobs import SweepJob

ALL = -1  # hydra.launcher.n_jobs: nobody said
VISIBLE = "CUDA_VISIBLE_DEVICES"
_HELD: dict[Path, IO[str] | None] = {}  # by sweep: what this process has taken, None for a share in one


def list_cards() -> list[str]:
    """The cards that this process may use, as CUDA_VISIBLE_DEVICES names them; [] where there are none."""
    if VISIBLE in os.environ:
        return [name.strip() for name in os.environ[VISIBLE].split(",") if name.strip()]
    try:
        told = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=60, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [str(i) for i in range(sum(line.startswith("GPU ") for line in told.splitlines()))]


def lease(job: SweepJob, hydra: HydraConf, composition: Composed) -> None:
    """Let this process see one card, where its jobs stand beside others and train on one."""
    trainer = composition.config["trainer"]
    local = str(hydra.launcher._target_).endswith("JoblibLauncher")
    if local and (trainer["accelerator"], trainer["devices"]) == ("gpu", 1) and job.sweep not in _HELD:
        take(job.sweep, list_cards(), job.number)


def fit_jobs(launcher: Launcher) -> None:
    """Let joblib's launcher have as many jobs at a time as there are cards, unless somebody said how many."""
    options = getattr(launcher, "joblib", None)
    if options is not None and options["n_jobs"] == ALL and (found := list_cards()):
        options["n_jobs"] = len(found)


def take(sweep: Path, cards: list[str], number: int) -> str | None:
    """Take a free card of `cards`, or the one whose turn job `number` has; returns it, None where there is none."""
    if not cards:
        return None
    for card in cards:
        if (lock := hold(sweep / f"card-{card}.lock")) is not None:
            break
    else:
        card = cards[number % len(cards)]
    _HELD[sweep] = lock
    os.environ[VISIBLE] = card
    return card
