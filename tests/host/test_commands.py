"""Hints that can be pasted."""

import sys
from pathlib import Path

import pytest

from fedcohort.host.commands import shell_command


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment in the current folder, with an mlflow in it, that is not activated."""
    programs = tmp_path / "my project" / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name in ("python", "mlflow"):
        (programs / name).touch(mode=0o755)
    monkeypatch.setattr(sys, "executable", str(programs / "python"))
    monkeypatch.chdir(programs.parents[1])
    monkeypatch.setenv("PATH", str(tmp_path))
    return programs


@pytest.mark.usefixtures("environment")
def test_an_inactive_environment_is_shown_as_a_relative_path() -> None:
    assert (shell_command("python"), shell_command("mlflow")) == (".venv/bin/python", ".venv/bin/mlflow")


def test_elsewhere_the_absolute_path_is_shown(
    environment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert shell_command("mlflow") == f"'{environment}/mlflow'"


def test_in_an_active_environment_the_bare_name_is_shown(environment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(environment))
    assert (shell_command("python"), shell_command("mlflow")) == ("python", "mlflow")


def test_a_missing_program_keeps_its_name(environment: Path) -> None:
    (environment / "mlflow").unlink()
    assert shell_command("mlflow") == "mlflow"
