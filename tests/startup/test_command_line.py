"""What is refused before anything is composed, and what an error is explained by."""

import errno
import os
from pathlib import Path

import pytest
from hydra.errors import MissingConfigException

from case_loop import for_all
from config_options import CONFIGS
from fedcohort.errors import OptionError
from fedcohort.startup.command_line import check_sweep_arguments, check_typed_arguments, run_with_one_line_errors
from fedcohort.startup.hydra_errors import LOST_JOB_ERRORS, explain_error

SELECTORS = sorted(path.stem for path in (CONFIGS / "selector").glob("*.yaml"))


@for_all(
    "override, line",
    [
        ("selector=../agg/fedavg", f"selector must be one of {', '.join(SELECTORS)}, got '../agg/fedavg'"),
        ("selector=/etc/passwd", "selector must be one of"),
        ("+selector@x=./flash", "selector@x must be one of"),
        ("agg=[fedavg,../selector/random]", "agg must be one of"),
        ("selector=random,../agg/fedavg", "selector must be one of"),
        ("selector=random.yaml", "selector must be one of"),
        ("hydra/launcher=../../train", "hydra/launcher must be one of"),
        ("+=", "can't read '+=': type name=value"),
        ("=3", "can't read '=3': type name=value"),
        ("hydra.run.dir=/elsewhere", "hydra.run.dir=/elsewhere is rejected, as fedcohort makes the folders"),
    ],
)
def test_arguments_that_hydra_reads_as_paths_are_rejected(override: str, line: str) -> None:
    """`../agg/fedavg` was loaded as the selector."""
    with pytest.raises(OptionError) as caught:
        check_typed_arguments(["seed=1", override], CONFIGS)
    assert line in str(caught.value)


@for_all(
    "arguments, line",
    [
        (["--selector", "flash"], "--selector: options have no dashes, type selector=flash"),
        (["--selector=flash"], "--selector=flash: options have no dashes, type selector=flash"),
        (["--client.lr", "0.1"], "--client.lr: options have no dashes, type client.lr=0.1"),
        (["--by", "selector"], "--by: options have no dashes, type by=selector"),
        (["seed=1", "--seed"], "--seed: options have no dashes, type seed=VALUE"),
        (["selector", "=", "flash"], "selector =: options have no spaces around =, type selector=flash"),
        (["selector", "=flash"], "selector =flash: options have no spaces around =, type selector=flash"),
        (["selector=", "flash"], "selector=: options have no spaces around =, type selector=flash"),
    ],
)
def test_other_option_syntax_is_rejected_with_the_right_one(arguments: list[str], line: str) -> None:
    with pytest.raises(OptionError) as caught:
        check_typed_arguments(arguments, CONFIGS)
    assert str(caught.value) == line


@for_all("choice", ["[1]", "[1.5,2]", "[null]", "[flash,true]"])
def test_a_list_of_other_values_than_texts_is_no_choice(choice: str) -> None:
    with pytest.raises(OptionError, match=r"selector must be one of active_fl, .*, got '(1|1.5|null|true)'"):
        check_typed_arguments([f"selector={choice}"], CONFIGS)


def test_unknown_arguments_are_passed_to_hydra() -> None:
    check_typed_arguments(
        ["-m", "--config-dir=../x", "seed=..", "name=../x", "selector=glob(*)", "experiment=mine/a"], CONFIGS
    )


@pytest.mark.parametrize("arguments", [["-p", "model"], ["--package", "model"], ["--package=model", "seed=1"]])
def test_a_package_without_cfg_is_rejected(arguments: list[str]) -> None:
    """Hydra ignores the flag, and trains."""
    with pytest.raises(OptionError, match="--package has an effect only together with --cfg: leave it out"):
        check_typed_arguments(arguments, CONFIGS)
    check_typed_arguments(["--cfg=job", *arguments], CONFIGS)
    check_typed_arguments(["-c", "job", *arguments], CONFIGS)


def test_a_hydra_flag_without_a_value_is_rejected() -> None:
    explanation = explain_error(
        ValueError("The --resolve flag can only be used in conjunction with --cfg or --help"), [], CONFIGS
    )
    assert explanation == "The --resolve flag can only be used in conjunction with --cfg or --help"


def test_a_config_without_a_choice_is_named(tmp_path: Path) -> None:
    """A user's configs/experiment/mine.yaml that names a choice which no longer exists."""
    error = MissingConfigException("In 'experiment/mine': Could not find 'selector/gone'\n\nAvailable", "", ["flash"])
    explanation = explain_error(error, ["experiment=mine"], CONFIGS)
    assert explanation == "configs/experiment/mine.yaml: selector must be one of flash, got 'gone'"


@pytest.mark.parametrize("kind", LOST_JOB_ERRORS)
def test_a_lost_job_is_reported_in_one_line(kind: str) -> None:
    """As submitit and joblib raise it, with the job's whole log or an explanation behind."""
    error = type(kind, (RuntimeError,), {})(
        "Job 5_0 with path /x\nhas no output (state: FAILED)\n---------\nTraceback ..."
    )
    assert explain_error(error, [], CONFIGS) == "a job was lost: Job 5_0 with path /x has no output (state: FAILED)"


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_an_error_of_the_disk_is_reported_in_one_line(code: int, capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        raise OSError(code, os.strerror(code), "figures/round.png")

    assert run_with_one_line_errors(fail, [], CONFIGS) == 2
    message = f"figures/round.png could not be read or written ({os.strerror(code)}): free disk space or allow access"
    assert capsys.readouterr().err.startswith(message)


def test_other_errors_keep_their_traceback(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HYDRA_FULL_ERROR", raising=False)

    def fail() -> None:
        raise ValueError("a bug")

    def mistaken() -> None:
        raise OptionError("seed must be 1")

    with pytest.raises(ValueError, match="a bug"):
        run_with_one_line_errors(fail, [], CONFIGS)
    assert run_with_one_line_errors(mistaken, [], CONFIGS) == 2
    assert capsys.readouterr().err == "seed must be 1\n"
    assert run_with_one_line_errors(lambda: None, [], CONFIGS) == 0
    monkeypatch.setenv("HYDRA_FULL_ERROR", "1")
    with pytest.raises(OptionError):
        run_with_one_line_errors(mistaken, [], CONFIGS)


def test_a_sweep_on_slurm_names_missing_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ["-m", "hydra/launcher=slurm", "seed=0,1"]
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(OptionError, match=r'pip install --constraint constraints.txt --editable "\.\[sweep\]"'):
        check_sweep_arguments(arguments)
    for argument in ("hydra/launcher=joblib", "hydra/sweeper=optuna"):
        with pytest.raises(OptionError, match=rf'^{argument} needs a plugin: pip install .*"\.\[sweep\]"$'):
            check_sweep_arguments(["-m", argument])
    with pytest.raises(OptionError, match="its jobs outlive a killed sweep; use hydra/launcher=local instead"):
        check_sweep_arguments(["-m", "hydra/launcher=submitit_local"])
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(OptionError, match="needs SLURM's sbatch and srun on the PATH"):
        check_sweep_arguments(arguments)
    for name in ("sbatch", "srun"):
        (tmp_path / name).touch(mode=0o755)
    check_sweep_arguments(arguments)
    with pytest.raises(OptionError, match=r"paths.logs must be a writable folder"):
        # Hydra would make its folder in there before any job.
        check_sweep_arguments([*arguments, f"paths.logs={__file__}"])


def test_the_number_of_parallel_jobs_is_checked_before_joblib_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)
    for value in ("1", "-1", "12"):
        check_sweep_arguments(["-m", "hydra/launcher=local", f"hydra.launcher.n_jobs={value}"])
    for value in ("0", "-2", "2.5", "all", ""):
        with pytest.raises(OptionError, match=rf"n_jobs must be an integer in \[1, inf\), or -1 .* got '{value}'"):
            check_sweep_arguments(["-m", "hydra/launcher=local", f"hydra.launcher.n_jobs={value}"])
