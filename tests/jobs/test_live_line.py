"""The line of a sweep on a terminal, and in a log."""

import logging
import sys
import time
from pathlib import Path

import pytest

from fedcohort.jobs import live_line
from fedcohort.record import sweep_folder
from fedcohort.record.sweep_folder import Plan, SweepJob
from jobs.test_status import ran


@pytest.mark.parametrize("is_terminal", [True, False])
def test_the_line_has_counts_and_the_best_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], is_terminal: bool
) -> None:
    """It is rewritten on a terminal; a log has one line for each change."""
    lines = list[str]()
    monkeypatch.setattr(live_line, "POLL_S", 0.01)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    monkeypatch.setattr(logging.getLogger("fedcohort"), "info", lambda text, *values: lines.append(text % values))
    sweep = tmp_path / "s"
    sweep_folder.save_plan(sweep, Plan([["seed=0"], ["seed=1"]]))
    SweepJob(sweep, 0, ("seed=0",), ran(tmp_path / "run", 50, 0.5, 0.625)).note("done")
    with live_line.show_live_line(sweep):
        time.sleep(0.3)
    line = "sweep s: 1 done, 1 left; about 1 s left; best server_val/acc 62.5 % (seed=0)"
    assert lines == ([] if is_terminal else [line])
    text = capsys.readouterr().err
    assert (f"{live_line.CLEAR}{line}" in text) == is_terminal
    assert not is_terminal or text.endswith(live_line.CLEAR)
