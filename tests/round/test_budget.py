"""Where a run ends: what is met exactly is met, a larger budget extends it, a smaller one is refused."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from fedcohort.errors import IncompatibleConfig, OptionError
from fedcohort.record.observer import Observer
from fedcohort.record.status import RunStatus
from fedcohort.round import round as rounds
from fedcohort.round.budget import Budget, BudgetHistory, BudgetUse
from process_kills import act_at_call, kill_self, run_in_child
from run_harness import FinishedRun, run_training, same_bits
from tracking.databases import captured_log  # noqa: F401

LONG = ("selector=flash", "split.limit=240", "rounds=6")


@pytest.fixture(scope="module")
def uninterrupted_run(tmp_path_factory: pytest.TempPathFactory) -> FinishedRun:
    return run_training(tmp_path_factory.mktemp("whole"), *LONG)


@pytest.fixture(scope="module")
def three_round_run(uninterrupted_run: FinishedRun, tmp_path_factory: pytest.TempPathFactory) -> FinishedRun:
    """Ended by its budget after round 3."""
    return run_training(tmp_path_factory.mktemp("three"), *LONG, f"until.virtual_s={clock(uninterrupted_run, 3)!r}")


def clock(run: FinishedRun, step: int) -> float:
    return run.reports[step].metrics["time/virtual_s"]


def traffic(run: FinishedRun, step: int) -> float:
    metrics = run.reports[step].metrics
    return metrics["comm/down_bytes"] + metrics["comm/up_bytes"]


def result_of(run: FinishedRun) -> dict[str, object]:
    status = json.loads((run.folder / "status.json").read_text())
    return {name: status[name] for name in ("status", "rounds_done", "ended_by", "early")}


def test_a_budget_met_exactly_is_reached() -> None:
    spent = BudgetUse(3, virtual_s=30.0, bytes=5e6, acc=0.8, client_flops=7e9)
    for budget, names in (
        (Budget(3), ["rounds"]),
        (Budget(4), []),
        (Budget(9, virtual_s=30.0), ["until.virtual_s"]),
        (Budget(9, virtual_s=30.1), []),
        (Budget(3, bytes=5e6, acc=0.8), ["rounds", "until.bytes", "until.acc"]),
        (Budget(9, client_flops=7e9), ["until.client_flops"]),
        (Budget(9, client_flops=7.1e9), []),
    ):
        assert budget.list_reached_limits(spent) == names
    assert Budget(1, acc=0.1).list_reached_limits(BudgetUse(0, acc=0.5)) == [], (
        "a run has a round, whatever w_0 is worth"
    )
    assert Budget(9, virtual_s=30.0, acc=0.9).describe_reached_limits(spent) == "until.virtual_s=30 is reached (30)"
    assert Budget(9, virtual_s=30.0, acc=0.9, client_flops=7e9).describe_until_limits() == (
        "virtual_s=30, acc=0.9, client_flops=7000000000"
    )


def test_the_text_of_a_budget_names_client_flops_only_where_they_are_limited() -> None:
    """Committed results of studies have the text of earlier versions, by which a run is recognised."""
    assert str(Budget(60, bytes=5.0)) == "Budget(rounds=60, virtual_s=None, bytes=5.0, acc=None)"
    assert str(Budget(60, client_flops=5.0)).endswith("acc=None, client_flops=5.0)")


def test_a_metric_that_a_round_does_not_measure_is_kept() -> None:
    first = BudgetUse().add_round_metrics(0, {"test/acc_best": 0.2})
    after = first.add_round_metrics(1, {"time/virtual_s": 7.0, "comm/down_bytes": 2.0, "comm/up_bytes": 3.0})
    assert after == BudgetUse(1, 7.0, 5.0, 0.2)
    after = after.add_round_metrics(2, {"comp/client_flops": 9.0})
    assert after.add_round_metrics(3, {}) == BudgetUse(3, 7.0, 5.0, 0.2, 9.0)
    spending = BudgetHistory().add_round_metrics(0, {}).add_round_metrics(1, {"time/virtual_s": 7.0})
    assert BudgetHistory.from_plain_data(json.loads(json.dumps(spending.to_plain_data()))) == spending


def test_spending_more_than_the_budget_is_rejected_by_name() -> None:
    """20 s before the last round, 30 s after it: any budget in (20, 30] ends it just there."""
    spending = BudgetHistory(BudgetUse(3, virtual_s=30.0, acc=0.8), BudgetUse(2, virtual_s=20.0, acc=0.8))
    Budget(9, virtual_s=20.5).check_budget_left(spending, Path("run"))
    with pytest.raises(OptionError, match=r"until.virtual_s must be above 20, which run reached before its last"):
        Budget(9, virtual_s=20.0).check_budget_left(spending, Path("run"))
    with pytest.raises(OptionError, match=r"until.acc must be above 0.8, .*, got 0.7; .* resume=false"):
        Budget(9, acc=0.7).check_budget_left(spending, Path("run"))
    Budget(9, acc=0.1).check_budget_left(BudgetHistory(BudgetUse(1, acc=0.8), BudgetUse(0, acc=0.5)), Path("run"))


@pytest.mark.parametrize("name", ["virtual_s", "bytes", "acc", "client_flops"])
def test_a_run_ends_after_the_round_that_reaches_it(
    uninterrupted_run: FinishedRun, three_round_run: FinishedRun, tmp_path: Path, name: str
) -> None:
    best = [report.metrics["test/acc_best"] for report in uninterrupted_run.reports]
    end = {"bytes": traffic(uninterrupted_run, 3), "acc": best[3]}
    end["client_flops"] = uninterrupted_run.reports[3].metrics["comp/client_flops"]
    last = best.index(best[3]) if name == "acc" else 3
    run = three_round_run if name == "virtual_s" else run_training(tmp_path, *LONG, f"until.{name}={end[name]!r}")
    assert run.last.step == max(last, 1)
    assert run.last.fingerprint == uninterrupted_run.reports[run.last.step].fingerprint
    expected_status = {
        "status": "finished",
        "rounds_done": run.last.step,
        "ended_by": [f"until.{name}"],
        "early": False,
    }
    assert result_of(run) == expected_status


def test_a_larger_budget_extends_a_finished_run(
    uninterrupted_run: FinishedRun,
    tmp_path: Path,
    captured_log: pytest.LogCaptureFixture,  # noqa: F811
) -> None:
    first, second = clock(uninterrupted_run, 1) + 0.01, clock(uninterrupted_run, 4)
    short_run = run_training(tmp_path, *LONG, f"until.virtual_s={first!r}")
    assert short_run.last.step == 2
    assert any(
        f"ended after round 2 of 6. until.virtual_s={first:.10g} is reached (" in m for m in captured_log.messages
    )
    repeat = run_training(tmp_path, *LONG, f"until.virtual_s={first!r}", "resume=true")
    assert (repeat.folder, repeat.reports) == (short_run.folder, [])
    assert captured_log.messages[-1] == f"already finished: {short_run.folder} (raise until.virtual_s= to extend it)"
    longer = run_training(tmp_path, *LONG, f"until.virtual_s={second!r}", "resume=true")
    assert (longer.folder, longer.reports[0].step, longer.last.step) == (short_run.folder, 3, 4)
    assert same_bits(longer, run_training(tmp_path / "alone", *LONG, f"until.virtual_s={second!r}"))
    with pytest.raises(OptionError, match=r"until.virtual_s must be above .*, which .* reached before its"):
        run_training(tmp_path, *LONG, f"until.virtual_s={first!r}", "resume=true")
    assert longer.folder.exists()
    assert len(list((tmp_path / "runs").iterdir())) == 1
    extended = run_training(tmp_path, *LONG, "resume=true")
    assert same_bits(extended, uninterrupted_run)


def test_the_folder_with_the_same_budget_is_the_finished_run(uninterrupted_run: FinishedRun, tmp_path: Path) -> None:
    budgets = [(*LONG, f"until.virtual_s={clock(uninterrupted_run, step)!r}") for step in (2, 4)]
    first, second = (run_training(tmp_path, *overrides) for overrides in budgets)
    assert second.folder != first.folder
    assert run_training(tmp_path, *budgets[0], "resume=true").folder == first.folder
    assert run_training(tmp_path, *budgets[1], "resume=true").folder == second.folder


@pytest.mark.parametrize(("owner", "name", "call"), [(rounds, "make_round_report", 4), (RunStatus, "finish", 1)])
def test_a_run_killed_before_or_at_its_end_resumes(
    uninterrupted_run: FinishedRun,
    three_round_run: FinishedRun,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    owner: type[Observer],
    name: str,
    call: int,
) -> None:
    """Killed in round 3, or when all three are saved and the status isn't: no fourth is trained."""
    overrides = (*LONG, f"until.virtual_s={clock(uninterrupted_run, 3)!r}")
    act_at_call(monkeypatch, owner, name, call, kill_self)
    assert os.WIFSIGNALED(run_in_child(lambda: run_training(tmp_path, *overrides) and None))
    monkeypatch.undo()
    resumed = run_training(tmp_path, *overrides, "resume=true")
    assert result_of(resumed)["rounds_done"] == 3
    assert result_of(resumed)["ended_by"] == ["until.virtual_s"]
    assert (three_round_run.weights() == resumed.weights()).all()


def test_an_unfinished_run_above_the_budget_is_rejected(
    uninterrupted_run: FinishedRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    act_at_call(monkeypatch, rounds, "make_round_report", 5, kill_self)
    assert os.WIFSIGNALED(run_in_child(lambda: run_training(tmp_path, *LONG) and None))
    monkeypatch.undo()
    with pytest.raises(OptionError, match=r"until.virtual_s must be above"):
        run_training(tmp_path, *LONG, f"until.virtual_s={clock(uninterrupted_run, 1)!r}", "resume=true")
    (path,) = (tmp_path / "runs").iterdir()
    assert json.loads((path / "status.json").read_text())["rounds_done"] == 3, "nothing was touched"


def test_two_processes_end_in_the_same_round(uninterrupted_run: FinishedRun, tmp_path: Path) -> None:
    overrides = (*LONG, f"until.virtual_s={clock(uninterrupted_run, 2)!r}", "trainer.devices=2")
    status = run_in_child(lambda: run_training(tmp_path, *overrides) and None)
    assert status == 0
    (path,) = (tmp_path / "runs").iterdir()
    assert json.loads((path / "status.json").read_text())["rounds_done"] == 2


def test_a_budget_of_seconds_requires_a_clock(tmp_path: Path) -> None:
    with pytest.raises(IncompatibleConfig, match=r"until.virtual_s=5 would never be reached: .* device=instant"):
        run_training(tmp_path, "device=instant", "until.virtual_s=5")
    assert not (tmp_path / "runs").exists()


def test_a_selection_window_advances_the_clock(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """100 seconds a round are three rounds for 250, and who is ready changes with them."""
    overrides = ("device=instant", "deadline.window_s=100", "until.virtual_s=250", "availability=diurnal")
    run = run_training(tmp_path, *overrides, "availability.day_s=400", "rounds=9")
    assert [report.metrics["time/virtual_s"] for report in run.reports[1:]] == [100, 200, 300]
    ready = [np.flatnonzero(report.clients["available"]).tolist() for report in run.reports[1:]]
    assert ready[0] != ready[2]
    assert "follows the virtual clock" not in caplog.text


def test_a_larger_budget_of_client_flops_extends_a_run_to_the_bit(
    uninterrupted_run: FinishedRun, tmp_path: Path
) -> None:
    flops = [report.metrics["comp/client_flops"] for report in uninterrupted_run.reports]
    short_run = run_training(tmp_path, *LONG, f"until.client_flops={flops[1] + 1!r}")
    assert short_run.last.step == 2
    longer = run_training(tmp_path, *LONG, f"until.client_flops={flops[5] + 1!r}", "resume=true")
    assert (longer.folder, longer.reports[0].step) == (short_run.folder, 3)
    assert same_bits(longer, uninterrupted_run)
    with pytest.raises(OptionError, match=r"until.client_flops must be above .*, which .* reached before its"):
        run_training(tmp_path, *LONG, f"until.client_flops={flops[4]!r}", "resume=true")
