"""Hints that can be pasted."""

import sys
from pathlib import Path

import pytest

from fedcohort.host.commands import program_command


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment beside the current folder's files, with an mlflow in it, and not activated."""
    programs = tmp_path / "my project" / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name in ("python", "mlflow"):
        (programs / name).touch(mode=0o755)
    monkeypatch.setattr(sys, "executable", str(programs / "python"))
    monkeypatch.chdir(programs.parents[1])
    monkeypatch.setenv("PATH", str(tmp_path))
    return programs


@pytest.mark.usefixtures("environment")
def test_an_environment_that_is_not_activated_is_named_from_here() -> None:
    assert (program_command("python"), program_command("mlflow")) == (".venv/bin/python", ".venv/bin/mlflow")


def test_elsewhere_its_whole_path_is_said(environment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert program_command("mlflow") == f"'{environment}/mlflow'"


def test_an_activated_one_is_found_by_the_bare_name(environment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(environment))
    assert (program_command("python"), program_command("mlflow")) == ("python", "mlflow")


def test_a_program_that_is_not_there_keeps_its_name(environment: Path) -> None:
    (environment / "mlflow").unlink()
    assert program_command("mlflow") == "mlflow"
