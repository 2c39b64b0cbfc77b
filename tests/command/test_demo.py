"""The demo's last lines can be pasted."""

from typing import Any

import pytest

from fedcohort.command import demo


def test_it_ends_with_commands_that_run_here(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran: list[list[str]] = []

    def train(words: list[str]) -> dict[str, Any]:
        ran.append(words)
        return {"final": dict.fromkeys((name for _, name, *_ in demo.ROWS), 0.5)}

    monkeypatch.setattr(demo, "train", train)
    monkeypatch.setattr(demo, "command", lambda name: f"here/{name}")
    demo.main()
    assert ran == list(demo.RUNS.values())
    *_, sweep, see = capsys.readouterr().out.splitlines()
    assert sweep.endswith(": here/python train.py -m selector=random,flash seed=0,1,2,3,4")
    assert see.endswith(": here/mlflow ui --backend-store-uri sqlite:///logs/mlflow.db")
