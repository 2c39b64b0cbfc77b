"""Hydra writes nothing outside `paths.logs`, and calls nothing that is typed for it."""

from pathlib import Path

import pytest

from case_loop import for_all
from fedcohort.errors import OptionError
from fedcohort.startup.command_line import check_hydra_options as check
from fedcohort.startup.command_line import is_inside_logs_folder


@for_all(
    "override, message",
    [
        ("hydra.run.dir=/elsewhere", "set paths.logs=FOLDER, or name=TEXT"),
        ("++hydra.run={dir:/elsewhere}", "set paths.logs=FOLDER"),
        ("hydra={run:{dir:/elsewhere}}", "leave it out"),
        ("hydra.output_subdir=x", "the run's folder has config.yaml"),
        ("hydra.sweep.subdir=../../x", "leave it out"),
        ("hydra.launcher.submitit_folder=/elsewhere", "set paths.logs=FOLDER"),
        ("+hydra.callbacks.x._target_=subprocess.Popen", "leave it out"),
        ("hydra.job_logging.handlers={x:{class:subprocess.Popen}}", "leave it out"),
        ("hydra/job_logging=default", "leave it out"),
        ("hydra.job.chdir=true", "leave it out"),
        ("hydra.mode=MULTIRUN", "put -m first for a sweep"),
    ],
)
def test_options_that_write_files_or_call_functions_are_rejected(override: str, message: str) -> None:
    with pytest.raises(OptionError, match="is rejected, as fedcohort makes the folders") as e:
        check(["seed=1", override])
    assert message in str(e.value)


@pytest.mark.parametrize("folder", ["/elsewhere", "logs", "logs/../x", "${oc.env:HOME}/x", "${paths.logs}/../x", ""])
def test_a_sweep_stays_inside_the_logs(folder: str) -> None:
    with pytest.raises(OptionError, match=r"hydra.sweep.dir must be a folder inside paths.logs"):
        check([f"hydra.sweep.dir={folder}"])


def test_allowed_hydra_options_are_accepted(tmp_path: Path) -> None:
    check(
        ["-m", "hydra/launcher=local", "hydra.sweeper.n_trials=20", "hydra.launcher.n_jobs=2", "hydra/sweeper=optuna"]
    )
    check(["hydra.sweep.dir=${paths.logs}/sweeps/${now:%Y}", f"paths.logs={tmp_path}", "name=hydra.run.dir"])
    check([f"hydra.sweep.dir={tmp_path}/sweeps/mine", f"paths.logs={tmp_path}"])


def test_a_link_that_leads_out_is_outside(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "link").symlink_to(tmp_path)
    assert not is_inside_logs_folder(str(tmp_path / "logs" / "link" / "x"), str(tmp_path / "logs"))
    assert is_inside_logs_folder(str(tmp_path / "logs" / "x"), str(tmp_path / "logs"))
