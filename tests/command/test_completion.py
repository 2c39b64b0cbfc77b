"""A shell completes commands, groups and choices, whether it splits words at = (bash) or not (zsh)."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from config_options import ROOT
from fedcohort.command.completion import list_completions, main


@pytest.mark.parametrize(
    ("command", "before", "incomplete", "expected"),
    [
        ("run", [], "s", ["samples=", "selector=", "server=", "signal_noise="]),
        ("run", [], "serv", ["server=adagrad", "server=adam", "server=momentum", "server=sgd", "server=yogi"]),
        ("run", ["seed=1"], "server=a", ["server=adagrad", "server=adam"]),
        ("run", ["server", "="], "a", ["adagrad", "adam"]),
        ("run", ["server"], "", ["adagrad", "adam", "momentum", "sgd", "yogi"]),
        ("run", ["seed", "=", "1"], "server=y", ["server=yogi"]),
        ("methods", [], "sel", ["selector"]),
        ("new", [], "s", ["selector", "signal"]),
        ("compare", [], "s", []),
        ("protocol", ["run"], "selector=pow", ["selector=powd"]),
        ("protocol", ["run"], "server=", []),
    ],
)
def test_completion_candidates_are_listed(
    monkeypatch: pytest.MonkeyPatch, command: str, before: list[str], incomplete: str, expected: list[str]
) -> None:
    monkeypatch.chdir(ROOT)
    context: Any = SimpleNamespace(info_name=command, params={"arguments": before})
    assert list_completions(context, incomplete) == expected


def test_the_shell_script_calls_the_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for shell in ("bash", "zsh"):
        assert main([shell]) == 0
        assert "_FEDCOHORT_COMPLETE=complete_" in capsys.readouterr().out
