"""What a round costs, against the papers' formulas on a toy of known size."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedcohort.errors import FedcohortError, UndeclaredSignal
from fedcohort.round.collect import Collector
from fedcohort.selector.random import Random
from fedcohort.types import ClientUpdate, Ids, Probe, Selection
from round_harness import run_without_files
from run_harness import FinishedRun, run_training

P = 64 * 10 + 10  # logistic regression on 8x8 digits
MODEL = 4 * P
K, M, EPOCHS = 12, 4, 2
FORWARD = 2 * 64 * 10  # FLOPs of one sample's forward pass, multiply and add


def costs(run: FinishedRun) -> list[dict[str, float]]:
    """Each round's own cost."""
    names = ("comm/down_bytes", "comm/up_bytes", "comm/probe_bytes", "comp/client_flops", "time/virtual_s")
    rows = [[report.metrics[name] for name in names] for report in run.reports]
    return [dict(zip([n.split("/")[1] for n in names], row, strict=True)) for row in np.diff(rows, axis=0)]


def trained_flops(run: FinishedRun, t: int) -> float:
    chosen = run.reports[t + 1].cohort
    return 3.0 * FORWARD * EPOCHS * float(run.info.n_train[chosen].sum())


def n_val(run: FinishedRun) -> np.ndarray:
    validation_sizes: np.ndarray = run.info.class_counts.sum(1) - run.info.n_train
    return validation_sizes


def test_random_selection_costs_a_broadcast_and_an_upload_per_client() -> None:
    run = run_without_files()
    for t, cost in enumerate(costs(run)):
        assert cost["down_bytes"] == M * MODEL
        assert cost["up_bytes"] == M * MODEL
        assert cost["probe_bytes"] == 0
        assert cost["client_flops"] == pytest.approx(trained_flops(run, t))


def test_powd_charges_the_download_of_unselected_candidates_and_every_answer() -> None:
    # extra = (d - m) P B + 4 d bytes, and a forward pass over each candidate's training data (selectors.md 3.2)
    d = 7
    run = run_without_files("selector=powd", f"selector.candidates={d}")
    for t, cost in enumerate(costs(run)):
        assert cost["down_bytes"] == d * MODEL
        assert cost["probe_bytes"] == (d - M) * MODEL + 4 * d
        assert cost["up_bytes"] == M * MODEL + 4 * d
        assert cost["client_flops"] > trained_flops(run, t)
    assert run.reports[0].metrics["comm/up_bytes"] == 4 * K  # n_k, once


def test_flash_queries_all_clients_in_every_round() -> None:
    # (K - m) P B more down and 2 numbers up from all K: the third of the paper's three, the duration, costs no bytes
    run = run_without_files("selector=flash")
    passes = FORWARD * float(run.info.n_train.sum() + n_val(run).sum())
    for t, cost in enumerate(costs(run)):
        m = len(run.reports[t + 1].cohort)
        assert cost["down_bytes"] == K * MODEL
        assert cost["probe_bytes"] == (K - m) * MODEL + 2 * 4 * K
        assert cost["client_flops"] == pytest.approx(trained_flops(run, t) + passes)


def test_ucb_cs_adds_eight_bytes_per_client() -> None:
    for cost in costs(run_without_files("selector=ucb_cs")):
        assert cost["up_bytes"] == M * (MODEL + 8)
        assert cost["probe_bytes"] == 0


def test_scaffold_doubles_the_traffic() -> None:
    for cost in costs(run_without_files("agg=scaffold")):
        assert cost["down_bytes"] == 2 * M * MODEL
        assert cost["up_bytes"] == 2 * M * MODEL


@pytest.mark.parametrize(("context", "longer"), [("fresh", True), ("lagged", False)])
def test_a_blocking_query_takes_additional_time(context: str, longer: bool) -> None:
    run = run_without_files("selector=flash", f"selector.context={context}")
    slowest = [float(np.nanmax(report.clients["finish_s"])) for report in run.reports[1:]]
    virtual_s = [cost["virtual_s"] for cost in costs(run)]
    assert all(a > b + 1e-9 for a, b in zip(virtual_s, slowest, strict=True)) == longer


@pytest.mark.parametrize(
    ("overrides", "n_downloads"), [("powd", 0), ("powd agg=scaffold", 1), ("random", 1), ("flash", 1)]
)
def test_the_model_is_downloaded_once_per_round(tmp_path: Path, overrides: str, n_downloads: int) -> None:
    """Downloads at 100 bytes a second, uploads at 1,000, and .01 s a sample.

    A client that was queried before the round has w_t, and downloads only what the job needs in addition (SCAFFOLD's c,
    which has the same size). FLASH's queries go to all clients with the job: selected clients have one download.
    """
    rows = [f"{k},.01,100,1000" for k in range(K)]
    (tmp_path / "devices.csv").write_text("\n".join(["client,seconds,down,up", *rows]))
    trace = ("device=trace", f"device.path={tmp_path / 'devices.csv'}", "device.unit=bytes/s")
    run = run_without_files(*f"selector={overrides}".split(), *trace)
    for report in run.reports[1:]:
        chosen = np.asarray(report.cohort)
        up = 2 if "scaffold" in overrides else 1
        job = EPOCHS * 0.01 * run.info.n_train[chosen] + up * MODEL / 1000
        np.testing.assert_allclose(report.clients["finish_s"][chosen], n_downloads * MODEL / 100 + job)


def test_a_full_job_takes_n_sample_times() -> None:
    # E[T] = (alpha + lambda) n, whatever the number of epochs (FLASH Sec. IV-B)
    for epochs in (1, 5):
        run = run_without_files(f"client.epochs={epochs}", "rounds=1")
        assert run.info.expected_s.tolist() == pytest.approx((2.0 * run.info.n_train).tolist())


def test_steps_take_the_time_of_their_samples() -> None:
    run = run_without_files("client.steps=6", "client.batch=5", "rounds=1")
    assert run.info.expected_s.tolist() == pytest.approx([2.0 * 6 * 5] * K)


@pytest.mark.parametrize(
    "overrides",
    [
        ("client.steps=8", "client.batch=40"),
        ("client.steps=8", "client.batch=40", "selector=pyramidfl"),  # which asks some for more steps
        ("client.steps=5", "client.batch=2", "split.limit=60", "model=resnet8_gn", "model.norm=batch", "model.width=1"),
    ],
    ids=["random", "pyramidfl", "batch norm"],
)
def test_short_mini_batches_cost_their_samples(monkeypatch: pytest.MonkeyPatch, overrides: tuple[str, ...]) -> None:
    """FLOPs and, at a second a sample, seconds are of the samples that went through training."""
    sizes: list[Ids] = []
    seconds: list[float] = []

    def add(
        collector: Collector, update: ClientUpdate, original: Callable[..., None] = Collector.add_client_update
    ) -> None:
        sizes.append(update.batch_size)
        seconds.append(update.duration)
        original(collector, update)

    monkeypatch.setattr(Collector, "add_client_update", add)
    monkeypatch.setattr("fedcohort.round.setup.count_forward_flops", lambda network, federation: 1.0)
    run = run_without_files(*overrides, "device.lam=0")
    assert len({size for batch_sizes in sizes for size in batch_sizes.tolist()}) > 1
    assert seconds == pytest.approx([float(batch_sizes.sum()) for batch_sizes in sizes])
    assert run.last.metrics["comp/client_flops"] == pytest.approx(3 * sum(seconds))


def test_a_late_client_computes_but_uploads_nothing() -> None:
    run = run_without_files("deadline=fixed", "deadline.k=0.9")
    arrived = [report.metrics["round/arrived"] for report in run.reports[1:]]
    assert 0 < min(arrived) < M
    for t, cost in enumerate(costs(run)):
        assert cost["down_bytes"] == M * MODEL
        assert cost["up_bytes"] == arrived[t] * MODEL
        assert cost["client_flops"] == pytest.approx(trained_flops(run, t))


def test_an_excluded_update_is_charged_as_uploaded() -> None:
    run = run_without_files("client.lr=1e30", "rounds=1")
    assert run.last.metrics["round/dropped_nonfinite"] == M
    assert costs(run)[0]["up_bytes"] == M * MODEL


def test_slow_devices_delay_the_round() -> None:
    fast, slow = (run_without_files(f"device.lam={lam}") for lam in (1, 100))
    assert slow.last.metrics["time/virtual_s"] > 10 * fast.last.metrics["time/virtual_s"]
    assert fast.cohorts == slow.cohorts


@pytest.mark.parametrize(
    ("chosen", "message"),
    [([0, 0], "sorted distinct"), ([99], "in .0, 11."), ([0, 1, 2, 3, 4], "chose 5 clients, but cohort=4")],
)
def test_a_selector_that_breaks_its_contract_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chosen: list[int], message: str
) -> None:
    def select_without_contract(self: Any, state: Any, ctx: Any, probes: Any) -> Any:
        return Selection(np.array(chosen, dtype=np.int64)), state

    monkeypatch.setattr(Random, "select", select_without_contract)
    with pytest.raises(FedcohortError, match=message):
        run_training(tmp_path)


def test_an_undeclared_probe_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Random, "plan", lambda self, state, ctx: [Probe("loss", ctx.available)])
    with pytest.raises(UndeclaredSignal, match="probes 'loss' without declaring it"):
        run_training(tmp_path)


def test_two_probes_of_a_signal_are_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers are told by signal: those of the first were lost, and paid."""
    monkeypatch.setattr(Random, "needs", frozenset({"loss"}))
    monkeypatch.setattr(Random, "plan", lambda self, state, ctx: [Probe("loss", ctx.available[:k]) for k in (2, 3)])
    with pytest.raises(FedcohortError, match="probes 'loss' more than once in a round"):
        run_training(tmp_path)


def test_a_plain_round_weights_by_the_training_samples() -> None:
    """As agg=fedavg would, whatever the aggregator's rule is: equal weights, here, once pre-training is over."""
    overrides = ("selector=feddiverse", "selector.pretrain=1", "selector.epochs=1", "agg.weighting=uniform", "rounds=2")
    run = run_without_files(*overrides)
    for report, rule in zip(run.reports[1:], (run.info.n_train, np.ones(K)), strict=True):
        weights = rule[report.arrived]
        assert report.clients["weight"][report.arrived] == pytest.approx(weights / weights.sum())


def test_signals_read_after_training_are_measured() -> None:
    """The loss after training, of all who arrived, where the aggregator weighs by it."""
    last = run_without_files("agg=fedmaba", "agg.loss=loss_post", "rounds=1").last
    assert np.isfinite(last.clients["signal_loss_post"][last.arrived]).all()


def test_a_round_without_clients_takes_no_time() -> None:
    run = run_without_files("availability=bernoulli", "availability.p=1e-9", "rounds=2")
    assert [len(report.cohort) for report in run.reports] == [0, 0, 0]
    assert [report.metrics["time/virtual_s"] for report in run.reports] == [0.0, 0.0, 0.0]
