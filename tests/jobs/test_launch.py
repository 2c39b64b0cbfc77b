"""Jobs by each kind of launcher that needs no cluster, and what can't be launched."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from config_options import CONFIGS
from fedcohort.errors import OptionError
from fedcohort.jobs.launch import LaunchOptions
from fedcohort.record import sweep_folder

OVERRIDES = (
    "clients=12",
    "cohort=4",
    "rounds=1",
    "model=logreg",
    "client.epochs=1",
    "logger=none",
    "callback.figures=null",
)


def test_a_launcher_of_hydra_runs_the_jobs_of_a_study(tmp_path: Path) -> None:
    """Their records say how they ended, whichever plugin started them."""
    if importlib.util.find_spec("hydra_plugins") is None:
        pytest.skip("hydra-joblib-launcher is not installed: the extra sweep brings it")
    logs = f"paths.logs={tmp_path}"
    jobs = {0: (*OVERRIDES, logs, "seed=0"), 1: (*OVERRIDES, logs, "cohort=40", "seed=1")}
    assert sorted(LaunchOptions("joblib", 2).run(tmp_path / "sweep", jobs, CONFIGS)) == [0, 1]
    records = sweep_folder.read_job_records(tmp_path / "sweep")
    assert [record.how for record in records.values()] == ["done", "failed"]
    assert records[1].reason.startswith("cohort=40 exceeds clients=12")
    assert records[1].kind == "IncompatibleConfig"


@pytest.mark.parametrize("launcher", ["local", "joblib"])
def test_only_a_cluster_runs_jobs_without_the_command(launcher: str) -> None:
    with pytest.raises(OptionError, match=rf"wait=false needs launcher=slurm: jobs of launcher={launcher} end with"):
        LaunchOptions(launcher, wait=False)


def test_launchers_whose_jobs_outlive_the_command_are_rejected() -> None:
    with pytest.raises(OptionError, match="hydra/launcher=submitit_local: its jobs outlive a killed sweep"):
        LaunchOptions("submitit_local")


@pytest.mark.parametrize("n_jobs", [0, -1, 1.5])
def test_a_number_of_parallel_jobs_below_one_is_rejected(n_jobs: Any) -> None:
    """It would wait for ever."""
    with pytest.raises(OptionError, match=rf"n_jobs must be an integer in \[1, inf\), got {n_jobs}"):
        LaunchOptions(n_jobs=n_jobs)
