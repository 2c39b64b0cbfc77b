"""Progress is one line a round without a terminal, and a bar on a terminal."""

import dataclasses
import io
import re
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from console.summary_harness import make_observers
from fedcohort.console import progress as module
from fedcohort.console import terminal
from fedcohort.console.progress import Progress
from fedcohort.errors import OptionError
from fedcohort.record.overview import list_run_facts
from record.example_run import make_report, make_run_info, replay_run


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [line for line in capsys.readouterr().out.splitlines() if line.startswith("round ")]


def test_each_round_prints_a_progress_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    replay_run([Progress(lines_every=1)], make_run_info(tmp_path / "run"), last=3)
    printed, round_report = lines(capsys)[3:], make_report(3)
    assert printed == [
        f"round 3/6  cohort {len(round_report.cohort)} arrived {len(round_report.arrived)}  "
        f"test/acc {round_report.metrics['test/acc']:.3g}  test/loss {round_report.metrics['test/loss']:.3g}  "
        "virtual 15 min 30 s"
    ]


def test_long_runs_print_few_lines_and_always_the_last(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    replay_run([Progress(lines_every=4)], make_run_info(tmp_path / "run"))
    assert [line.split()[1] for line in lines(capsys)] == ["0/6", "4/6", "6/6"]


def test_a_round_without_evaluation_shows_the_last_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    watcher = Progress(lines_every=1)
    watcher.start(make_run_info(tmp_path / "run"))
    watcher.observe(dataclasses.replace(make_report(1), metrics={}))
    watcher.observe(dataclasses.replace(make_report(2), metrics={"test/acc": 0.5}))
    watcher.observe(dataclasses.replace(make_report(3), metrics={}))
    first, second, third = lines(capsys)
    assert "acc" not in first
    assert second.endswith("test/acc 0.5")
    assert third.endswith("test/acc 0.5 of round 2")


def test_the_start_table_says_how_skewed_the_data_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def line(**skew: float) -> list[str]:
        Progress(lines_every=1).start(make_run_info(tmp_path / "run", skew=skew))
        return [row[12:] for row in capsys.readouterr().out.splitlines() if row.startswith("imbalance")]

    assert line() == []
    classes = {"global_ci": 0.0123, "client_ci": 0.31}
    assert line(**classes) == ["classes 0.012, per client 0.310  (0: none, 1: complete)"]
    other_skew = {"global_ai": 0.0, "client_ai": 0.2, "global_sc": 0.5, "client_sc": 0.4}
    assert line(**classes, **other_skew) == [
        "classes 0.012, per client 0.310; attributes 0.000, per client 0.200; "
        "spurious correlation 0.500, per client 0.400  (0: none, 1: complete)"
    ]


def test_the_start_table_lists_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    facts = make_run_info(
        tmp_path / "a-name", tags={"tracking": "mlflow ui --backend-store-uri sqlite:////a b/mlflow.db"}
    )
    Progress(lines_every=1).start(dataclasses.replace(facts, start=2, dirty=True))
    output = capsys.readouterr().out.splitlines()
    assert output[0] == "a-name"
    table = {line[:12].strip(): line[12:] for line in output[1:]}
    assert table["run"].startswith("selector=flash  agg=scaffold  dataset=fashion_mnist")
    assert table["seed"] == "0  (config a1b2c3d4, commit 0123456789+)"
    assert table["rounds"] == "6, from round 2"
    assert table["clients"].startswith("12 with ")
    assert table["label skew"].endswith(" % of the clients")
    assert table["label noise"] == "2.5 % of a client's labels, mean over the clients"
    assert table["parameters"] == "61,706"
    assert table["folder"] == str(tmp_path / "a-name")  # in one piece, however long
    assert table["tracking"] == facts.tags["tracking"]
    assert "until" not in table


def test_a_budget_is_in_the_start_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    facts = make_run_info(tmp_path / "run")
    config = {**facts.config, "until": {"virtual_s": None, "bytes": 5e6, "acc": 0.9}}
    Progress(lines_every=1).start(dataclasses.replace(facts, config=config))
    assert "until       bytes=5000000, acc=0.9\n" in capsys.readouterr().out


def test_on_a_terminal_progress_is_a_bar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(
        module, "make_console", lambda: Console(file=screen, force_terminal=True, width=80, highlight=False)
    )
    replay_run([Progress(lines_every=1)], make_run_info(tmp_path / "run"))
    output = screen.getvalue()
    assert f" accuracy {make_report(6).metrics['test/acc']:.3f}  virtual 31 min  elapsed 1 s" in output
    assert "round 6/6" in re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", output)
    assert "selector=flash" in output


def test_a_brief_run_prints_its_progress_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with terminal.print_progress_only():
        replay_run([Progress(lines_every=1), *make_observers()], make_run_info(tmp_path / "run"))
    output = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in output] == ["0/6", "2/6", "4/6", "6/6"]
    assert not terminal.is_progress_only()


def test_in_a_notebook_one_line_is_updated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rich's own bar needs ipywidgets there."""
    displayed_lines: list[str] = []

    class Handle:
        update = staticmethod(displayed_lines.append)

    def display(line: str, *, display_id: bool) -> Handle:
        displayed_lines.append(line)
        return Handle()

    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", types.SimpleNamespace(HTML=str, display=display))
    screen = Console(file=io.StringIO(), force_jupyter=False, width=80)
    screen.is_jupyter = True
    monkeypatch.setattr(module, "make_console", lambda: screen)
    with terminal.print_progress_only():
        replay_run([Progress(lines_every=1)], make_run_info(tmp_path / "run"), last=3)
    assert len(displayed_lines) == 5
    accuracy = make_report(3).metrics["test/acc"]
    bar_html = '<progress value="3" max="6"></progress> round 3/6'
    assert displayed_lines[-1] == f"{bar_html}&emsp;accuracy {accuracy:.3f}  virtual 16 min  elapsed 1 s  left 1 s"


def test_on_a_terminal_a_command_can_be_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(
        module, "make_console", lambda: Console(file=screen, force_terminal=True, width=80, highlight=False)
    )
    command = f"mlflow ui --backend-store-uri sqlite:///{'long/' * 30}mlflow.db"
    facts = make_run_info(tmp_path / ("a-name-" * 15), tags={"tracking": command})
    watcher = Progress(lines_every=1)
    watcher.start(facts)
    watcher.finish("finished")
    lines = screen.getvalue().splitlines()
    assert facts.name in lines[0]
    assert sum(command in line for line in lines) == 1
    assert sum(str(facts.folder) in line for line in lines) == 1


def test_a_run_that_never_started_ends_quietly(capsys: pytest.CaptureFixture[str]) -> None:
    Progress(lines_every=1).finish("failed")
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("value", [0, -1, 0.5, None, True])
def test_lines_every_out_of_range_is_rejected(value: Any) -> None:
    with pytest.raises(OptionError, match=r"lines_every must be an integer in \[1, inf\), got"):
        Progress(lines_every=value)


@pytest.mark.parametrize(
    ("sample", "clients_every", "expected"), [(2, 1, True), (2, 0, False), (None, 1, False), (10**6, 1, False)]
)
def test_the_table_says_which_clients_are_evaluated(
    tmp_path: Path, sample: int | None, clients_every: int, expected: bool
) -> None:
    run_info = make_run_info(tmp_path / "run")
    options = {"every": 1, "clients_every": clients_every, "clients_sample": sample}
    rows = dict(list_run_facts(dataclasses.replace(run_info, config={**run_info.config, "eval": options})))
    line = f"of 2 of the {len(run_info.n_train)} clients, the same in every round"
    assert rows.get("clients/*") == (line if expected else None)
