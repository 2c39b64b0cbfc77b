"""What becomes of a round whose step can't be taken, or of which a selector keeps little or nothing."""

import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import asynchronous_engine
from config_options import make_component
from fedcohort.errors import FedcohortError
from fedcohort.round.aggregate import ServerStep
from fedcohort.round.arrivals import Arrivals
from fedcohort.round.components import ServerState
from fedcohort.round.norm_limit import compute_new_parameters
from fedcohort.selector.random import Random
from fedcohort.server.sgd import Sgd
from fedcohort.startup import build
from fedcohort.state import pack_state
from fedcohort.types import AggregationOverride, Selection
from round_harness import run_without_files
from run_harness import FinishedRun, run_training

Closed = list[tuple[Arrivals, ServerState, dict[str, Any]]]


@pytest.fixture
def closed_rounds(monkeypatch: pytest.MonkeyPatch) -> Closed:
    """The result of each round: the arrivals, the server's state, and the vectors that clients keep."""
    calls: Closed = []
    close = ServerStep.finish_round

    def spy(self: ServerStep, planned: Any, collected: Any, state: Any) -> Any:
        result = close(self, planned, collected, state)
        calls.append((*result, self.store.state_dict()))
        return result

    monkeypatch.setattr(ServerStep, "finish_round", spy)
    return calls


def give_advice(monkeypatch: pytest.MonkeyPatch, advice: Any) -> None:
    """Random selection that gives this advice, a function of the outcome."""
    monkeypatch.setattr(Random, "advises", True)
    monkeypatch.setattr(Random, "observe", lambda self, state, outcome: (advice(outcome), state))


def assert_equal(a: Any, b: Any) -> None:
    """Two packed states."""
    if isinstance(a, torch.Tensor):
        torch.testing.assert_close(a, b, rtol=0, atol=0, equal_nan=True)
    elif isinstance(a, dict):
        assert a.keys() == b.keys()
        for name in a:
            assert_equal(a[name], b[name])
    else:
        assert a == b


def has_moved(run: FinishedRun, start: FinishedRun) -> bool:
    return not torch.equal(run.weights(), start.weights())


@pytest.fixture(scope="module")
def start() -> FinishedRun:
    """The model before the first round."""
    return run_without_files("client.lr=1e-30", "rounds=1")


OVERRIDES = ["", "server=momentum", "server=adam", "agg=scaffold", "agg=fedmaba", "agg=rhfl proxy=noise agg.batches=1"]


@pytest.mark.parametrize("overrides", OVERRIDES)
def test_a_step_above_the_limit_changes_nothing(
    overrides: str, closed_rounds: Closed, start: FinishedRun, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "fedcohort"):
        run = run_without_files(*overrides.split(), "server.lr=1e30", "rounds=2", "eval.clients_every=0")
    assert not has_moved(run, start)
    assert [report.metrics.get("round/dropped_step") for report in run.reports] == [None, 1.0, 1.0]
    assert [report.metrics.get("round/arrived") for report in run.reports] == [None, 4.0, 4.0]
    assert run.last.clients["weight"][run.last.clients["arrived"]].tolist() == [0.0] * 4
    assert caplog.text.count("the server's step is not finite, or longer than update_limit allows") == 2
    assert [f"round {t}: the server's step" in caplog.text for t in range(4)] == [False, True, True, False]
    (_, first, first_kept), (_, second, second_kept) = closed_rounds
    assert first_kept == second_kept == {}
    for part in ("agg", "server"):
        assert_equal(pack_state(getattr(first, part)), pack_state(getattr(second, part)))
    assert second.spent.virtual_s > first.spent.virtual_s


def test_a_non_finite_step_is_not_taken(start: FinishedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Sgd, "step", lambda self, state, direction: (direction * float("nan"), state))
    run = run_without_files("rounds=1")
    assert run.last.metrics["round/dropped_step"] == 1
    assert not has_moved(run, start)


def test_excluded_updates_are_named(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "fedcohort"):
        run = run_without_files("client.lr=1e30", "rounds=1", "eval.clients_every=0")
    assert f"round 1: the updates of clients {run.last.cohort.tolist()} are not finite, or longer" in caplog.text


def test_a_step_that_overflows_is_not_taken() -> None:
    """1e39 is a float64 and no float32: one parameter of two would be infinite, whatever length is allowed."""
    server: Any = SimpleNamespace(w=torch.ones(2))
    overflow, step = torch.tensor([[1e39, 0.0], [1e38, 0.5]], dtype=torch.float64)
    assert compute_new_parameters(server, overflow, update_limit=1e60, round=0) is None
    new_parameters = compute_new_parameters(server, step, update_limit=1e60, round=0)
    assert new_parameters is not None
    assert torch.equal(new_parameters, torch.tensor([1e38, 1.5]))


def test_a_step_within_the_limit_is_taken(start: FinishedRun) -> None:
    """At lr 1e4 a step is about 1e4 long, above 100 times the model: FedAvg's own updates are well below."""
    limited = run_without_files("server.lr=1e4", "rounds=1", "update_limit=100")
    unlimited = run_without_files("server.lr=1e4", "rounds=1", "update_limit=1e6")
    assert (limited.last.metrics["round/dropped_step"], unlimited.last.metrics["round/dropped_step"]) == (1, 0)
    assert not has_moved(limited, start)
    assert has_moved(unlimited, start)


def test_selections_are_counted(closed_rounds: Closed) -> None:
    """Four of 12 clients a round, whether they arrive or not."""
    run = run_without_files("rounds=3", "deadline=fixed", "deadline.k=0.9", "eval.clients_every=0")
    cohorts = np.concatenate([report.cohort for report in run.reports[1:]])
    state = closed_rounds[-1][1]
    assert len(cohorts) == 12
    assert sum(len(collected.clients) for collected, _, _ in closed_rounds) < 12
    assert state.times_selected.tolist() == np.bincount(cohorts, minlength=12).tolist()


@pytest.mark.parametrize(("server_lr", "unchanged"), [("1", False), ("1e30", True)])
def test_batch_norm_statistics_are_updated_with_the_step(
    server_lr: str, unchanged: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batch norm of 10 numbers starts with means 0, variances 1 and no batches.

    The server still has these values after a step that is rejected. Otherwise it has the collected statistics.
    """
    layers = [nn.Flatten(), nn.Linear(64, 10), nn.BatchNorm1d(10)]
    monkeypatch.setattr(build, "build_network", lambda *arguments: nn.Sequential(*layers))
    statistics, close = [], ServerStep.finish_round

    def spy(self: ServerStep, planned: Any, collected: Any, state: Any) -> Any:
        result = close(self, planned, collected, state)
        statistics.append((collected, self.server.buffers.double(), self.server.counters.clone()))
        return result

    monkeypatch.setattr(ServerStep, "finish_round", spy)
    run_training(tmp_path, "rounds=1", f"server.lr={server_lr}")
    ((collected, buffers, counters),) = statistics
    initial = torch.cat([torch.zeros(10), torch.ones(10)]).double()
    assert not torch.equal(collected.buffers.float().double(), initial)
    torch.testing.assert_close(buffers, initial if unchanged else collected.buffers.float().double(), rtol=0, atol=0)
    assert counters.tolist() == ([0] if unchanged else collected.counters.tolist())


def test_a_deadline_too_short_for_all_gives_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    deadline_outcome = SimpleNamespace(train_s=2.5, units_asked=np.array([1, 2]))
    finished: Any = SimpleNamespace(round=4, selection=SimpleNamespace(clients=[1, 7]), outcome=deadline_outcome)
    parts, settings = (
        SimpleNamespace(deadline=make_component("deadline", "fixed")),
        SimpleNamespace(update_limit=1.0, store_limit_gb=4.0, seed=0),
    )
    step = ServerStep(parts, None, None, None, settings, None, 0.0)  # type: ignore[arg-type]
    for _ in range(2):
        step._warn_of_empty_round(finished)
    assert caplog.text.count("round 5: none of the 2 selected clients was done when the round closed after 2.5") == 1
    assert "the same (raise deadline.k, or set deadline.partial_work=true)\n" in caplog.text


@pytest.mark.parametrize("override", ["agg=scaffold", "agg=fedmaba", "server=momentum"])
@pytest.mark.parametrize(
    "advice",
    [
        lambda outcome: AggregationOverride(keep=np.zeros(len(outcome.clients), bool)),
        lambda outcome: AggregationOverride(weights=np.zeros(len(outcome.clients))),
    ],
    ids=["keep", "weights"],
)
def test_a_selector_that_excludes_all_makes_an_empty_round(
    override: str,
    advice: Any,
    closed_rounds: Closed,
    start: FinishedRun,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    give_advice(monkeypatch, advice)
    with caplog.at_level(logging.WARNING, "fedcohort"):
        run = run_training(tmp_path, override, "rounds=2", "eval.clients_every=0")
    assert not has_moved(run, start)
    assert "the selector excluded every update, so that the model stays the same" in caplog.text
    assert [f"round {t}: the selector excluded" in caplog.text for t in range(4)] == [False, True, True, False]
    assert run.last.clients["weight"][run.last.clients["arrived"]].tolist() == [0.0] * 4
    (_, first, first_kept), (_, second, second_kept) = closed_rounds
    assert first_kept == second_kept == {}
    for part in ("agg", "server"):
        assert_equal(pack_state(getattr(first, part)), pack_state(getattr(second, part)))


def test_the_aggregator_does_not_see_excluded_clients(
    closed_rounds: Closed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SCAFFOLD: c is the mean of c_i over all 12 clients, and those left out have kept nothing."""
    excluded_ids: set[int] = set()

    def exclude_first(outcome: Any) -> AggregationOverride:
        excluded_ids.add(int(outcome.clients[0]))
        return AggregationOverride(keep=np.arange(len(outcome.clients)) > 0)

    give_advice(monkeypatch, exclude_first)
    run_training(tmp_path, "agg=scaffold", "rounds=3", "eval.clients_every=0")
    visible: set[int] = set()
    for collected, state, kept_clients in closed_rounds:
        visible |= set(collected.clients[1:].tolist())
        assert {int(k) for k in kept_clients} == visible
        mean = torch.stack([stored["c"].double() for stored in kept_clients.values()]).sum(0) / 12
        torch.testing.assert_close(state.agg.c, mean, atol=1e-6, rtol=0)
    assert excluded_ids - visible


@pytest.mark.parametrize(
    ("advice", "message"),
    [
        (AggregationOverride(weights=np.ones(3)), r"AggregationOverride.weights must be a numeric array \[4\]"),
        (
            AggregationOverride(weights=np.array([1.0, -1.0, 1.0, 1.0])),
            r"AggregationOverride.weights must be .* in \[0, inf\]",
        ),
        (
            AggregationOverride(weights=np.array([1.0, np.nan, 1.0, 1.0])),
            "AggregationOverride.weights must be .* of finite numbers",
        ),
        (AggregationOverride(keep=np.ones(5, bool)), r"AggregationOverride.keep must be a bool array \[4\]"),
        (AggregationOverride(weights=np.ones(4), absolute=True), "returns absolute weights: declare"),
    ],
)
def test_advice_that_breaks_the_contract_stops_the_run(
    advice: AggregationOverride, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    give_advice(monkeypatch, lambda outcome: advice)
    with pytest.raises(FedcohortError, match=message):
        run_training(tmp_path, "rounds=1")


def test_omitted_tensors_are_filled_or_zero(
    start: FinishedRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Client k alone sends its update.

    Averaged over who sent it the model moves by D_k; with zeros for all others by p_k D_k, where p_k is n_k over the
    cohort's samples.
    """
    displacements = []
    for zero_fill in (False, True):

        def select_partly(self: Any, state: Any, ctx: Any, probes: Any, zero_fill: bool = zero_fill) -> Any:
            upload = np.where(np.arange(ctx.n_clients) == 1, 1.0, 1e-12)
            return Selection(np.arange(4), upload=upload, zero_fill=zero_fill), state

        monkeypatch.setattr(Random, "select", select_partly)
        run = run_training(tmp_path / str(zero_fill), "rounds=1")
        displacements.append(run.weights() - start.weights())
    n = run.info.n_train[:4]
    assert float(displacements[0].norm()) > 0.01
    torch.testing.assert_close(displacements[1], displacements[0] * float(n[1] / n.sum()), atol=1e-6, rtol=0)


@pytest.mark.parametrize("zero_fill", [False, True])
def test_late_updates_are_filled_as_in_the_round_of_their_selection(
    zero_fill: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All jobs take 4 s, and a round 3 s: the second one, which only waits, is the round without a deadline."""
    monkeypatch.setattr(asynchronous_engine, "SECONDS", np.full(4, 2.0))

    def select_partly(self: Any, state: Any, ctx: Any, probes: Any) -> Any:
        return Selection(np.arange(4), upload=np.full(ctx.n_clients, 0.5), zero_fill=zero_fill), state

    monkeypatch.setattr(Random, "select", select_partly)
    options = ("clients=4", "partition=iid", "device=instant", "device._target_=asynchronous_engine.ThreeSpeeds")
    late_run = run_training(
        *(tmp_path / "late", *options, "deadline=fixed", "deadline.k=0.75", "deadline.late_updates=carry"),
        *("deadline.staleness=constant", "rounds=2"),
    )
    assert [len(report.arrived) for report in late_run.reports[1:]] == [0, 4]
    assert late_run.cohorts == [[0, 1, 2, 3], []]
    on_time = run_training(tmp_path / "on_time", *options, "deadline=wait_for_all", "rounds=1")
    assert torch.equal(late_run.weights(), on_time.weights())
