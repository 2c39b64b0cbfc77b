"""No process trains after the study's command has ended, and impossible runs are reported before training."""

import re
import time
from pathlib import Path

import pytest

from config_options import CONFIGS
from fedcohort.command import study as command
from fedcohort.errors import CheckpointError, OptionError
from fedcohort.record import history, metadata
from fedcohort.study import runner
from fedcohort.study.definition import list_conditions
from fedcohort.study.session import lock_study
from fedcohort.study.tasks import RunTask, check_conditions, sum_earlier_wall_seconds
from study.small_study import run_task, write_study

ONE_SETTING = {"equal": {"overrides": ["heterogeneity=iid"]}}


def test_a_failed_run_names_file_line_and_log(tmp_path: Path) -> None:
    study = write_study(tmp_path, settings=ONE_SETTING, seeds=[0])
    overrides = (
        *list_conditions(study)[0].overrides,
        "+callback.halt._target_=host.test_slurm.Halt",
        "+callback.halt.after=1",
    )
    outcome = run_task(RunTask(overrides, 0, CONFIGS, tmp_path / "logs", study.metric, False))
    (log,) = (tmp_path / "logs" / "runs").glob("*/run.log")
    assert outcome.reason.startswith("RuntimeError: the node died (")
    assert re.search(rf"/host/test_slurm\.py:\d+\); log: {log}$", outcome.reason)
    assert "Traceback" in log.read_text()
    assert log.read_text().endswith("RuntimeError: the node died\n")


def test_a_study_is_locked_against_a_second_process(tmp_path: Path) -> None:
    lock_error = pytest.raises(CheckpointError, match="another process runs the study")
    with lock_study(tmp_path / "s", print), lock_error, lock_study(tmp_path / "s", print):
        pass


def forbid(*args: object) -> None:
    raise AssertionError("something is run")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"methods": ["powd", "ort"]}, "study.yaml: ort: did you mean selector=oort? selector must be one of"),
        (
            {"methods": [{"wide": ["selector=powd", "selector.candidate=3"]}]},
            "study.yaml: wide: selector.candidate must be one of",
        ),
        (
            {
                "settings": {
                    **ONE_SETTING,
                    "noisy": {"overrides": ["heterogeneity=noise_bimodal", "label_noise.shar=0.5"]},
                }
            },
            "study.yaml: noisy, random: label_noise=bimodal has no option 'shar'",
        ),
        (
            {"settings": {"equal": {**ONE_SETTING["equal"], "bounds": {"clean": ["heterogeneity=none_such"]}}}},
            "study.yaml: equal, bound:clean: heterogeneity must be one of",
        ),
    ],
)
def test_an_unknown_option_is_reported_before_the_first_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, object], message: str
) -> None:
    """An unknown option must end the command before the first run, with an exit code that is not 0."""
    write_study(tmp_path / "studies" / "tiny", **changes)
    (tmp_path / "configs").symlink_to(CONFIGS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(runner, "run_tasks", forbid)
    with pytest.raises(OptionError) as caught:
        command.main(["run", "tiny"])
    assert message in str(caught.value)


def test_a_method_that_fits_only_one_setting_is_accepted(tmp_path: Path) -> None:
    """Where it doesn't it is refused, as a combination that can't be."""
    settings = {**ONE_SETTING, "noisy": {"overrides": ["heterogeneity=noise_bimodal"]}}
    study = write_study(tmp_path, settings=settings, methods=[{"mild": ["selector=random", "label_noise.share=0.1"]}])
    check_conditions(study, list_conditions(study), CONFIGS)


def test_wall_time_counts_all_processes_of_a_run(tmp_path: Path) -> None:
    """Of a run that had finished before, as its folder was kept, the last process has done next to nothing."""
    study = write_study(tmp_path, settings=ONE_SETTING, seeds=[0])
    task = RunTask(list_conditions(study)[0].overrides, 0, CONFIGS, tmp_path / "logs", study.metric, True)
    first = run_task(task).result_columns["wall_s"]
    (folder,) = (tmp_path / "logs" / "runs").iterdir()
    trained = history.wall_s(metadata.read_start_times(folder), history.read_history(folder).times)
    assert 0 < trained <= first
    repeat = run_task(task).result_columns["wall_s"]
    assert repeat >= trained
    now_ms = time.time_ns() // 1_000_000
    assert sum_earlier_wall_seconds(folder, now_ms) == trained
    assert sum_earlier_wall_seconds(folder, metadata.read_start_times(folder)[0]) == 0.0
