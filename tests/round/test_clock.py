"""Runs on the clock: which clients are ready when, how long a round waits, and that a kill changes nothing."""

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from config_options import make_component
from fedcohort.availability.base import Availability
from fedcohort.availability.schedule import ReadySchedule
from fedcohort.errors import IncompatibleConfig
from fedcohort.rng import Draws
from fedcohort.round import round as rounds
from fedcohort.round.clock import VirtualClock
from fedcohort.selector.random import Random
from fedcohort.types import Probe, ProbeResult, RoundOutcome, Selection
from process_kills import act_at_call, kill_self, run_in_child
from ready_schedules import make_schedule
from round_harness import run_without_files
from run_harness import FinishedRun, run_training, same_bits

COSTS = ("comm/down_bytes", "comm/up_bytes", "comm/probe_bytes")
DAY = 5000.0  # virtual seconds: a round of SMALL takes some hundreds


@dataclass(frozen=True)
class Listed(Availability):
    intervals: tuple[tuple[tuple[float, float], ...], ...]
    period: float

    def schedule(self, draws: Draws) -> ReadySchedule:
        return make_schedule(self.intervals, self.period)


def shifts(folder: Path, *hours: tuple[float, float], clients: int = 12) -> tuple[str, ...]:
    """The options of a run whose client k is ready in `hours[k % len(hours)]` of each DAY."""
    rows = [(k, *hours[k % len(hours)]) for k in range(clients)]
    folder.mkdir(exist_ok=True)
    file = folder / "ready.csv"
    file.write_text("\n".join(["client,start_s,end_s", *(f"{k},{a},{b}" for k, a, b in rows)]))
    return ("availability=trace", f"availability.path={file}", f"availability.period_s={DAY}")


def list_virtual_s(trained_run: FinishedRun) -> np.ndarray:
    return np.array([report.metrics["time/virtual_s"] for report in trained_run.reports])


def test_the_clock_advances_once_to_the_first_available_client(caplog: pytest.LogCaptureFixture) -> None:
    clock = VirtualClock(Listed((((10, 20),), ((15, 20), (40, 50))), 60), Draws(0, 2), 0.0)
    for now_s, client_ids, wait in [
        (12, [0], 0),
        (15, [0, 1], 0),
        (20, [1], 20),
        (50, [0], 20),
        (0, [0], 10),
        (610, [0], 0),
    ]:
        ready, waited = clock.find_ready_clients(Draws(0, 2, 4), float(now_s))
        assert (ready.tolist(), waited) == (client_ids, wait)
    (line,) = caplog.messages
    assert line.startswith("round 5: no client is ready, so that the clock advances by 20 virtual seconds")


def test_a_time_between_two_floats_is_reached() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        start, period = rng.uniform(0.1, 0.9), rng.uniform(1, 2)
        clock = VirtualClock(Listed((((start, start + 1e-3),),), period), Draws(0, 1), 0.0)
        client_ids, wait = clock.find_ready_clients(Draws(0, 1, 0), float(rng.uniform(0, 1e9)))
        assert client_ids.tolist() == [0]
        assert 0 <= wait < period


def test_a_window_ends_before_available_clients_are_selected() -> None:
    clock = VirtualClock(Listed((((0, 10),), ((25, 60),)), 60), Draws(0, 2), 20.0)
    assert [clock.find_ready_clients(Draws(0, 2, 0), now_s)[0].tolist() for now_s in (0.0, 45.0)] == [[1], [0]]
    assert [clock.find_ready_clients(Draws(0, 2, 0), now_s)[1] for now_s in (0.0, 45.0)] == [5, 0]


def test_a_schedule_without_available_clients_is_rejected_at_start_up() -> None:
    with pytest.raises(IncompatibleConfig, match="availability: none of the 2 clients is ever ready"):
        VirtualClock(Listed(((), ()), 60), Draws(0, 2), 0.0)
    clock = VirtualClock(Listed(((), ((5, 60),)), 60), Draws(0, 2), 0.0)
    assert clock.find_ready_clients(Draws(0, 2, 0), 0.0)[0].tolist() == [1], "one client suffices"


def test_without_a_clock_an_empty_round_takes_no_time() -> None:
    for window in (0.0, 20.0):
        clock = VirtualClock(make_component("availability", "bernoulli", p=1e-9), Draws(0, 12), window)
        client_ids, waited = clock.find_ready_clients(Draws(0, 12, 0), 5.0)
        assert (len(client_ids), waited) == (0, 0)
    all_clients, waited = VirtualClock(make_component("availability", "always"), Draws(0, 3), 20.0).find_ready_clients(
        Draws(0, 3, 0), 5.0
    )
    assert (all_clients.tolist(), waited) == ([0, 1, 2], 0)
    assert not all_clients.flags.writeable


def test_a_trace_with_full_availability_equals_always_bit_for_bit(tmp_path: Path) -> None:
    overrides = ("deadline=fixed", "deadline.partial_work=true", "selector=powd", "rounds=4")
    table = shifts(tmp_path / "table", (0, 1e9))[:2]
    traced, always = run_without_files(*overrides, *table), run_without_files(*overrides)
    assert same_bits(traced, always)
    assert traced.cohorts == always.cohorts
    np.testing.assert_array_equal(list_virtual_s(traced), list_virtual_s(always))


def test_a_run_waits_for_available_clients_and_reports_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """All clients are ready in the first tenth of a second of a day, when every round begins."""
    with caplog.at_level(logging.INFO):
        trained_run = run_without_files(*shifts(tmp_path, (0, 0.1)), "deadline=fixed", "device.unit_s=1e-3")
    waited = np.array([report.metrics["round/waited_s"] for report in trained_run.reports[1:]])
    clock = list_virtual_s(trained_run)
    assert waited[0] == 0
    assert clock[1:-1] + waited[1:] == pytest.approx(DAY * np.arange(1, len(trained_run.reports) - 1))
    assert [len(report.cohort) for report in trained_run.reports[1:]] == [4, 4, 4]
    assert sum("no client is ready, so that the clock advances" in line for line in caplog.messages) == 1


def test_only_available_clients_are_selected_and_leaving_clients_are_late(tmp_path: Path) -> None:
    """Clients of the first shift (0, 3, 6, 9) leave after a second, and are back a day later."""
    overrides = shifts(tmp_path, (0, 1), (2, DAY), (2, DAY))
    trained_run = run_without_files(*overrides, "deadline=fixed", "deadline.k=3", "rounds=1", "cohort=2")
    assert set(trained_run.last.cohort.tolist()) <= {0, 3, 6, 9}
    assert len(trained_run.last.arrived) == 0
    waiting = run_without_files(*overrides, "rounds=2", "cohort=2")
    assert len(waiting.reports[1].arrived) == 2
    assert list_virtual_s(waiting)[1] > DAY
    assert (waiting.reports[1].clients["finish_s"][waiting.reports[1].arrived] > DAY - 1).all()


def test_partial_work_counts_what_was_done_before_a_client_left(tmp_path: Path) -> None:
    """Of 50 epochs those count that are done before 100 seconds: work of n (1 + X) seconds, a fiftieth each."""
    overrides = ("deadline=fixed", "deadline.k=5", "deadline.partial_work=true", "rounds=1", "client.epochs=50")
    trained_run = run_without_files(*shifts(tmp_path, (0, 100)), *overrides)
    complete = run_without_files(*overrides)
    assert trained_run.cohorts == complete.cohorts
    seconds = complete.last.clients["finish_s"] / complete.last.clients["units"]  # of an epoch
    chosen = trained_run.last.arrived
    assert len(chosen) > 1
    np.testing.assert_array_equal(trained_run.last.clients["units"][chosen], np.floor(100 / seconds[chosen]))


@pytest.mark.parametrize("concurrent", [False, True])
def test_a_client_that_leaves_before_answering_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, concurrent: bool
) -> None:
    """The odd ones leave after a second. The round is as long, and trains and costs as much, as if they stayed.

    But for their answers, 4 bytes each. It lasted until the next day, and they were heard.
    """
    answer_ids: dict[str, list[int]] = {}

    def keep(folder: str, answers: Mapping[str, ProbeResult]) -> None:
        answer_ids[folder] = answers["loss"].clients.tolist()
        assert np.isfinite(answers["loss"].values).all()

    def run(folder: str, *overrides: str) -> FinishedRun:
        def select(self: Any, state: Any, ctx: Any, probes: Mapping[str, ProbeResult]) -> Any:
            if not concurrent:
                keep(folder, probes)
            return Selection(np.array([0, 2, 4, 6])), state

        def observe(self: Any, state: Any, outcome: RoundOutcome) -> Any:
            if concurrent:
                keep(folder, outcome.probes)
            return None, state

        monkeypatch.setattr(Random, "select", select)
        monkeypatch.setattr(Random, "observe", observe)
        return run_without_files("rounds=1", *overrides)

    monkeypatch.setattr(Random, "needs", frozenset({"loss"}))
    monkeypatch.setattr(Random, "plan", lambda s, state, ctx: [Probe("loss", ctx.available, concurrent=concurrent)])
    run_with_leaving, run_with_all = run("left", *shifts(tmp_path, (0, DAY), (0, 1))), run("stayed")
    assert answer_ids == {"left": [0, 2, 4, 6, 8, 10], "stayed": list(range(12))}
    assert list_virtual_s(run_with_leaving)[1] == list_virtual_s(run_with_all)[1] < DAY
    costs = {name: run_with_all.last.metrics[name] - run_with_leaving.last.metrics[name] for name in COSTS}
    assert costs == {"comm/down_bytes": 0.0, "comm/up_bytes": 4.0 * 6, "comm/probe_bytes": 4.0 * 6}


@pytest.mark.parametrize("overrides", [(), ("availability=bernoulli",)])
def test_a_window_is_charged_in_each_round(overrides: tuple[str, ...]) -> None:
    plain, windowed = (run_without_files(f"deadline.window_s={s}", *overrides) for s in ("0", "20"))
    assert same_bits(plain, windowed)
    assert np.diff(list_virtual_s(windowed)) == pytest.approx(np.diff(list_virtual_s(plain)) + 20)


def test_a_round_without_clients_has_its_window() -> None:
    """Where the device times nothing else, too."""
    trained_run = run_without_files("availability=bernoulli", "availability.p=1e-9", "deadline.window_s=20")
    assert list_virtual_s(trained_run).tolist() == [0, 20, 40, 60]


LONG = ("rounds=6", "deadline=fixed", "selector=oort", "agg=scaffold")


def test_a_run_killed_before_a_wait_resumes_bit_for_bit(tmp_path: Path, monkeypatch: Any) -> None:
    overrides = (*shifts(tmp_path, (0, 300), (2000, 2400)), *LONG)
    uninterrupted = run_training(tmp_path / "whole", *overrides)
    waited = [report.metrics["round/waited_s"] for report in uninterrupted.reports[1:]]
    t = next(t for t, wait in enumerate(waited) if wait > 0)
    assert 0 < t < 5
    act_at_call(
        monkeypatch, rounds, "make_round_report", t + 2, kill_self
    )  # step 0 is a report, too; the wait is in round t + 1
    assert os.WIFSIGNALED(run_in_child(lambda: run_training(tmp_path / "parts", *overrides) and None))
    monkeypatch.undo()
    resumed = run_training(tmp_path / "parts", *overrides, "resume=true")
    assert resumed.reports[0].step == t + 1
    assert same_bits(uninterrupted, resumed)
    assert list_virtual_s(resumed).tolist() == list_virtual_s(uninterrupted)[t + 1 :].tolist()
    assert (np.diff(list_virtual_s(uninterrupted)) > 0).all()


def test_a_late_client_never_answers() -> None:
    """Its time of answering was that of an answer without a unit of work, the earliest of all."""
    overrides = ("device=shifted_exponential", "deadline=fixed", "rounds=4", "selector=random")
    reports = run_without_files(*overrides).reports[1:]
    late_clients = [
        report.clients["selected"].astype(bool) & ~report.clients["arrived"].astype(bool) for report in reports
    ]
    assert sum(late_in_round.sum() for late_in_round in late_clients)
    for report, late_in_round in zip(reports, late_clients, strict=True):
        finish = report.clients["finish_s"]
        assert np.isnan(finish[late_in_round]).all()
        assert (finish[report.arrived] > 0).all()
