"""What a run had cost when it first had a share of its best accuracy."""

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from fedcohort.console.summary import Summary
from fedcohort.record.journal import Journal
from fedcohort.results.summary_rows import describe_share
from record.example_run import make_report, make_run_info


def summarise_run(folder: Path, *rounds: Mapping[str, float]) -> list[dict[str, Any]]:
    facts = make_run_info(folder, rounds=len(rounds) - 1)
    journal, summary = Journal(), Summary(full=True)
    journal.start(facts)
    summary.start(facts)
    for step, metrics in enumerate(rounds):
        journal.observe(dataclasses.replace(make_report(step), metrics=metrics))
    journal.finish("finished")
    summary.finish("finished")
    reached: list[dict[str, Any]] = json.loads((folder / "summary.json").read_text())["reached"]
    return reached


def point(acc: float | None, seconds: float, bytes_: float = 0.0) -> dict[str, float]:
    cost = {"time/virtual_s": seconds, "comm/down_bytes": bytes_, "comm/up_bytes": 2 * bytes_}
    return cost if acc is None else {"test/acc": acc, **cost}


def test_times_to_shares_of_the_best(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The best is .8: 80 % are .64, 90 % .72, 95 % .76. Round 2 isn't evaluated, round 3 has .7, round 4 .8."""
    rounds = [
        point(0.1, 0),
        point(0.5, 10, 1e6),
        point(None, 20, 2e6),
        point(0.7, 30, 3e6),
        point(0.8, 200, 4e6),
        point(0.6, 300, 5e6),
    ]
    reached = summarise_run(tmp_path / "run", *rounds)
    assert [(share["round"], share["virtual_s"], share["bytes"]) for share in reached] == [
        (3, 30.0, 9e6),
        (4, 200.0, 1.2e7),
        (4, 200.0, 1.2e7),
    ]
    assert [share["target"] for share in reached] == pytest.approx([0.64, 0.72, 0.76])
    output = " ".join(capsys.readouterr().out.split())
    assert "to 80 % of its best, 64.0 % │ round 3, 30 s, 9 MB │" in output
    assert "to 95 % of its best, 76.0 % │ round 4, 3 min 20 s, 12 MB │" in output


def test_times_are_not_interpolated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reached = summarise_run(tmp_path / "run", point(0.1, 0.0), point(0.9, 0.0, 1e6))
    assert [share["virtual_s"] for share in reached] == [None, None, None]
    assert "round 1, no clock, 3 MB" in " ".join(capsys.readouterr().out.split())
    assert summarise_run(tmp_path / "other", {"comm/up_bytes": 3.0}) == []
    without_costs = summarise_run(tmp_path / "bare", {"test/acc": 0.1}, {"test/acc": 0.5})
    assert (without_costs[0]["round"], without_costs[0]["bytes"]) == (1, None)
    assert summarise_run(tmp_path / "untrained", {"test/acc": 0.5}) == [], "the untrained model never counts"
    assert describe_share(without_costs[0]) == ("to 80 % of its best, 40.0 %", "round 1, no clock, bytes unknown")


@pytest.mark.parametrize(("last", "lines"), [(0.4, 0), (0.6, 3)])
def test_a_run_without_improvement_reaches_no_share(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], last: float, lines: int
) -> None:
    """Where the best is round 0, so are all of its shares: `to 90 % of its best: round 0` says nothing."""
    summarise_run(tmp_path / "run", {"test/acc": 0.5}, {"test/acc": last})
    assert capsys.readouterr().out.count("% of its best") == lines
