"""Reported numbers with noise: which they are, how many, resumed runs, and that all else stays as it is."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from config_options import make_component
from fedcohort.record import history
from fedcohort.round import aggregate, privacy
from fedcohort.round.queries import ClientReports
from round_harness import run_without_files
from run_harness import FinishedRun, run_training, same_bits

TINY = ("clients=8", "cohort=3", "rounds=3", "split.limit=240", "client.epochs=1")
NOISE = ("signal_noise=gaussian", "signal_noise.sigma=2", "signal_noise.bound=false")


@pytest.fixture(scope="module")
def powd() -> FinishedRun:
    return run_without_files(*TINY, *NOISE, "selector=powd", "selector.candidates=5")


def epsilons(trained_run: FinishedRun, name: str = "privacy/epsilon") -> list[float]:
    return [report.metrics[name] for report in trained_run.reports if name in report.metrics]


def test_the_noise_of_a_client_depends_on_no_other_client() -> None:
    reports = ClientReports(
        make_component("attack", "none"), 3, 8, make_component("signal_noise", "gaussian", sigma=1.0)
    )
    clients = np.arange(8)
    answers = reports.answer_query("loss", clients, clients / 2, 4)
    client_ids = np.array([5, 2])
    np.testing.assert_array_equal(reports.answer_query("loss", client_ids, client_ids / 2, 4), answers[client_ids])
    assert (reports.answer_query("loss", clients, clients / 2, 5) != answers).any()
    assert (reports.answer_query("loss_post", clients, clients / 2, 4) != answers).any()
    assert (reports.answer_query("loss", clients, clients / 2, 4, {"q": 0.5}) != answers).any()
    server_computes = clients / 2
    assert reports.answer_query("update_norm", clients, server_computes, 4) is server_computes


def test_epsilon_is_that_of_the_numbers_that_a_client_reported(powd: FinishedRun) -> None:
    """Five clients answer a query about their loss in each round; powd reads no signal of the update."""
    noise = make_component("signal_noise", "gaussian", sigma=2.0)
    answer_ids = [np.flatnonzero(~np.isnan(report.clients["signal_loss"])) for report in powd.reports[1:]]
    assert [len(clients) for clients in answer_ids] == [5, 5, 5]
    counts = np.cumsum([np.isin(np.arange(8), clients) for clients in answer_ids], axis=0)
    assert epsilons(powd) == [noise.epsilon(int(count.max())) for count in counts]
    assert epsilons(powd, "privacy/epsilon_round") == [noise.epsilon(1)] * 3
    column = powd.last.clients["epsilon"]
    np.testing.assert_array_equal(np.flatnonzero(~np.isnan(column)), answer_ids[-1])
    assert column[answer_ids[-1]].tolist() == [noise.epsilon(int(n)) for n in counts[-1][answer_ids[-1]]]


def test_reports_with_the_update_have_noise_and_the_metric_has_none() -> None:
    """Oort reads two numbers of each arrival; the training loss, which no component reads, is a metric only."""
    overrides = (*TINY, "rounds=1", "selector=oort")
    plain, noisy = (run_without_files(*overrides, *noise) for noise in ((), NOISE))
    for name in ("train_loss", "loss"):  # one round, so that the model is that of both
        np.testing.assert_array_equal(plain.last.clients[name], noisy.last.clients[name])
    arrived = plain.last.arrived
    for name in ("signal_loss_squares", "signal_loss_count"):
        assert (plain.last.clients[name][arrived] != noisy.last.clients[name][arrived]).all()
    assert epsilons(noisy) == [make_component("signal_noise", "gaussian", sigma=2.0).epsilon(2)]
    assert epsilons(plain) == []


def test_a_resumed_run_has_the_same_bits(powd: FinishedRun, tmp_path: Path) -> None:
    overrides = (*TINY, *NOISE, "selector=powd", "selector.candidates=5")
    run_training(tmp_path, *overrides, "rounds=1")
    resumed = run_training(tmp_path, *overrides, "resume=true")
    assert resumed.cohorts == powd.cohorts[1:]
    assert resumed.last.fingerprint == powd.last.fingerprint
    assert resumed.last.metrics["privacy/epsilon"] == powd.last.metrics["privacy/epsilon"]


def test_no_reported_number_is_said_at_the_start(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    plain, noisy = (run_training(tmp_path, *TINY, "rounds=1", *noise) for noise in ((), NOISE))
    assert same_bits(plain, noisy)
    assert "signal_noise=gaussian has no effect: no component reads a reported number" in caplog.text


@pytest.mark.parametrize("selector", ["cpowd", "feddiverse", "flash", "ocs", "pyramidfl", "tifl"])
def test_selectors_accept_numbers_without_meaning(selector: str) -> None:
    light = ("selector.epochs=1", "selector.pretrain=0") if selector == "feddiverse" else ()
    trained_run = run_without_files(
        *TINY, "signal_noise=laplace", "signal_noise.scale=100", f"selector={selector}", *light
    )
    assert len(trained_run.reports) == 4


def test_late_reports_have_the_same_noise_on_two_processes_and_after_a_resume(tmp_path: Path) -> None:
    """Oort's two numbers come with an update, which arrives up to some steps after its client was selected."""
    asynchronous = ("deadline=buffered", "deadline.buffer=2", "deadline.concurrency=5", "device=shifted_exponential")
    overrides = (*TINY, *NOISE, *asynchronous, "selector=oort", "eval.clients_every=1", "callback=default")
    run = run_training(tmp_path / "one", *overrides, "rounds=6")
    assert max(report.metrics["staleness/max"] for report in run.reports[1:]) > 0
    for rounds in (2, 6):
        ranks = run_training(tmp_path / "two", *overrides, f"rounds={rounds}", "trainer.devices=2", "resume=true")
    single, double = (history.read_history(finished.folder) for finished in (run, ranks))
    metrics, columns = ["privacy/epsilon", "round/arrived", "staleness/max"], ["signal_loss_squares", "epsilon"]
    pd.testing.assert_frame_equal(double.metrics[metrics], single.metrics[metrics])
    pd.testing.assert_frame_equal(double.clients(columns), single.clients(columns), rtol=1e-5)
    n_arrivals = np.sum([np.isin(np.arange(8), report.arrived) for report in run.reports[1:]], axis=0)
    noise = make_component("signal_noise", "gaussian", sigma=2.0)
    assert epsilons(run)[-1] == noise.epsilon(2 * int(n_arrivals.max()))


FIXED_DEADLINE = ("cohort=4", "rounds=4", "device=shifted_exponential", "deadline=fixed", "deadline.k=0.8")


@pytest.mark.parametrize(
    "deadline_options",
    [
        (*FIXED_DEADLINE, "deadline.late_updates=drop"),
        (*FIXED_DEADLINE, "deadline.late_updates=carry"),
        ("cohort=2", "rounds=6", "device=shifted_exponential", "deadline=buffered", "deadline.max_staleness=0"),
    ],
)
def test_all_answers_that_are_charged_count(deadline_options: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each number has 4 bytes, also if the update of its client is late or lost. powd asks for the same signal."""
    counts = list[np.ndarray]()

    def count_numbers(*round_records: Any) -> np.ndarray:
        counts.append(privacy.count_reported_numbers(*round_records))
        return counts[-1]

    monkeypatch.setattr(aggregate, "count_reported_numbers", count_numbers)
    run = run_without_files(*TINY, *NOISE, *deadline_options, "agg=term")
    assert 4 * np.sum(counts) == run.last.metrics["comm/probe_bytes"] > 0
    counts.clear()
    run = run_without_files(*TINY, *NOISE, *deadline_options, "agg=term", "selector=powd")
    n_answers = 0
    for report, count in zip(run.reports[1:], counts, strict=True):
        clients = set(np.flatnonzero(report.clients["queried"]).tolist()) | set(report.cohort.tolist())
        assert count.tolist() == [int(k in clients) for k in range(8)]
        n_answers += len(clients)
    assert n_answers > 0


def test_reports_with_updates_that_are_too_old_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client sends two numbers with its update, which is charged, also if the server then drops it."""
    counts = list[np.ndarray]()

    def count_numbers(*round_records: Any) -> np.ndarray:
        counts.append(privacy.count_reported_numbers(*round_records))
        return counts[-1]

    monkeypatch.setattr(aggregate, "count_reported_numbers", count_numbers)
    asynchronous = ("deadline=buffered", "deadline.max_staleness=0", "deadline.concurrency=5", "deadline.refill=step")
    overrides = ("cohort=2", "rounds=8", "device=shifted_exponential", "selector=oort", *asynchronous)
    metrics = [report.metrics for report in run_without_files(*TINY, *NOISE, *overrides).reports[1:]]
    n_uploads = [int(m["round/arrived"] + m["round/dropped_stale"]) for m in metrics]
    assert sum(m["round/dropped_stale"] for m in metrics) > 0
    assert [int(count.sum()) for count in counts] == [2 * n for n in n_uploads]
