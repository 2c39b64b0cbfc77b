"""Lists of losses in a run: looked at once, charged, kept through kills, and told to whom it concerns."""

import os
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from fedcohort.device.base import Timing
from fedcohort.rng import Draws
from fedcohort.round import aggregate as closing
from fedcohort.round import sampling
from fedcohort.round.jobs import Jobs
from fedcohort.round.store import DiskClientStore, MemoryClientStore
from fedcohort.samples.base import LOSS_LIST_NAME
from fedcohort.samples.threshold import LossThreshold
from fedcohort.signal.base import Reported, find_signal
from fedcohort.training.evaluate import SignalMeasurer
from fedcohort.types import ClientUpdate
from optional_values import not_none
from process_kills import act_at_call, kill_self, run_in_child
from round_harness import run_without_files
from run_harness import FinishedRun, run_training, same_bits

LOSS_LISTS = ("samples=fedbalancer", "samples.w=1", "samples.lss=0.3", "deadline=fixed", "deadline.k=0.8")
FLOPS = "comp/client_flops"


def loss_lists(run: FinishedRun) -> dict[int, np.ndarray]:
    """The lists of losses in the last checkpoint, by client."""
    state = torch.load(run.folder / "last.ckpt", weights_only=True)["callbacks"]
    (clients,) = [entry["clients"] for entry in state.values() if "clients" in entry]
    return {int(client): row[LOSS_LIST_NAME].numpy() for client, row in clients.items() if LOSS_LIST_NAME in row}


def test_a_job_has_the_chosen_samples_and_none_where_these_are_all() -> None:
    """Client 0 chooses all of its three samples, client 2 the first of its five."""
    rows = {3: np.arange(3), 5: np.arange(1)}
    part: Any = SimpleNamespace(
        uses_all_samples=False, keeps_losses=False, choose=lambda state, request: rows[request.n]
    )
    federation: Any = SimpleNamespace(n_train=np.array([3, 4, 5]))
    ones = np.ones(2)
    jobs = Jobs(
        np.array([0, 2]),
        np.zeros(2, np.int64),
        np.zeros(2, bool),
        np.ones(2, np.int64),
        np.ones(2, np.int64),
        np.zeros(2),
        [None] * 2,
        np.zeros(2, bool),
        np.zeros(2),
        announced_s=np.full(2, np.inf),
        expected=Timing(ones, ones, ones, ones),
    )
    selection = sampling.SampleSelection(part, federation, None, MemoryClientStore(), None)  # type: ignore[arg-type]
    chosen = selection.choose_samples(None, jobs, {}, Draws(0, 3))
    assert chosen.rows[0] is None
    assert not_none(chosen.rows[1]).tolist() == [0]


def test_every_client_that_trained_has_a_list_of_losses(tmp_path: Path) -> None:
    run = run_training(tmp_path, *LOSS_LISTS, "deadline.partial_work=true")
    lists = loss_lists(run)
    arrivals = {client for report in run.reports for client in report.arrived.tolist()}
    assert arrivals <= set(lists)
    for client, losses in lists.items():
        assert losses.dtype == np.float32
        assert len(losses) == run.info.n_train[client]
        assert np.isfinite(losses).all()


def test_the_first_pass_over_the_losses_is_charged_once() -> None:
    """All clients are selected and all samples fit: round 1 costs one forward pass more than round 2."""
    overrides = ("cohort=12", "deadline=fixed", "deadline.k=1000", "rounds=2", "device.lam=0.001")
    with_losses, plain = (run_without_files(*overrides, f"samples={w}") for w in ("fedbalancer", "all"))

    def flops(run: FinishedRun) -> np.ndarray:
        return np.diff([report.metrics[FLOPS] for report in run.reports])

    passes = 2 * 64 * 10 * float(with_losses.info.n_train.sum())
    assert flops(with_losses) - flops(plain) == pytest.approx([passes, 0.0])
    seconds = [[r.metrics["time/virtual_s"] for r in run.reports] for run in (with_losses, plain)]
    first, second = np.diff(seconds, axis=1)[0] / np.diff(seconds, axis=1)[1]
    assert (first, second) == pytest.approx((1 + 1 / (3 * 2), 1.0), rel=1e-3)  # a third of one of two epochs
    assert with_losses.cohorts == plain.cohorts
    assert same_bits(with_losses, plain)  # all samples fit, and all train


def test_the_list_holds_the_losses_seen_in_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After one round of one epoch in one batch, each loss is that of w_0; after the next one w_1's."""
    measured_ids: list[int] = []
    measure = SignalMeasurer.per_sample_losses

    def count(lab: SignalMeasurer, client: int) -> Any:
        measured_ids.append(client)
        return measure(lab, client)

    monkeypatch.setattr(SignalMeasurer, "per_sample_losses", count)
    overrides = ("cohort=12", "client.epochs=1", "client.batch=null", *LOSS_LISTS, "deadline.k=1000")
    first = loss_lists(run_training(tmp_path / "1", *overrides, "rounds=1"))
    run = run_training(tmp_path / "2", *overrides, "rounds=2")
    assert sorted(measured_ids) == sorted(2 * list(range(12)))
    for report, lists in zip(run.reports[1:], (first, loss_lists(run)), strict=True):
        for client, losses in lists.items():
            assert losses.mean() == pytest.approx(report.clients["train_loss"][client], rel=1e-5)


def test_a_late_client_keeps_its_first_losses(tmp_path: Path) -> None:
    """No client finishes an epoch in time; clients that measured their losses in time keep them."""
    overrides = (*LOSS_LISTS, "deadline.k=0.3", "client.epochs=5", "cohort=12", "rounds=2", "device.lam=0.001")
    run = run_training(tmp_path, *overrides)
    assert not any(len(report.arrived) for report in run.reports)
    lists = loss_lists(run)
    assert 0 < len(lists) <= 12
    flops = np.diff([report.metrics[FLOPS] for report in run.reports])
    repeat = sum(run.info.n_train[k] for k in range(12) if k not in lists)
    assert flops[0] - flops[1] == pytest.approx(2 * 64 * 10 * float(run.info.n_train.sum() - repeat))


@pytest.mark.parametrize("limit", [4, 0])
def test_a_killed_run_with_loss_lists_resumes_with_the_same_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    """Lists of losses are stored next to SCAFFOLD's vectors, in memory or files; late clients store a list only."""
    overrides = (
        *LOSS_LISTS,
        "agg=scaffold",
        "selector=oort",
        "rounds=3",
        "split.limit=600",
        f"client_store.limit_gb={limit}",
        "cohort=6",
    )
    uninterrupted = run_training(tmp_path / "whole", *overrides)
    assert any(0 < len(report.arrived) < 6 for report in uninterrupted.reports)
    act_at_call(monkeypatch, closing, "hash_selection_history", 2, kill_self)
    assert os.WIFSIGNALED(run_in_child(lambda: run_training(tmp_path / "killed", *overrides) and None))
    monkeypatch.undo()
    assert same_bits(uninterrupted, run_training(tmp_path / "killed", *overrides, "resume=true"))


def test_loss_lists_in_files_give_the_same_bits_as_in_memory(tmp_path: Path) -> None:
    overrides = (*LOSS_LISTS, "agg=scaffold", "cohort=6")
    memory, files = (
        run_training(tmp_path / "a", *overrides),
        run_training(tmp_path / "b", *overrides, "client_store.limit_gb=0"),
    )
    assert (files.folder / f"client_store.{LOSS_LIST_NAME}").exists()
    assert same_bits(memory, files)


def test_a_diverged_models_losses_are_stored_in_memory_and_in_files(tmp_path: Path) -> None:
    """A row that begins with NaN would be none in files, and one in memory."""
    memory, files = MemoryClientStore(), DiskClientStore(tmp_path, {LOSS_LIST_NAME: 2}, 1)
    for store in (memory, files):
        store.write_client_vectors(0, sampling.pack_losses(np.array([np.nan, 0.5])))
        assert store.read_vectors(0)[LOSS_LIST_NAME].tolist() == [np.inf, 0.5]


@pytest.mark.parametrize("storage", ["memory", "files"])
def test_different_kinds_of_stored_values_are_not_mixed(tmp_path: Path, storage: str) -> None:
    store = MemoryClientStore() if storage == "memory" else DiskClientStore(tmp_path, {"c": 3, LOSS_LIST_NAME: 2}, 4)
    store.write_client_vectors(1, {LOSS_LIST_NAME: torch.tensor([0.5, 2.0])})
    assert {name: row.tolist() for name, row in store.read_vectors(1).items()} == {LOSS_LIST_NAME: [0.5, 2.0]}
    store.write_client_vectors(1, {**store.read_vectors(1), "c": torch.ones(3)})
    assert set(store.read_vectors(1)) == {"c", LOSS_LIST_NAME}


@pytest.mark.parametrize(
    ("name", "training_value"), [("loss_count", 3.0), ("loss_squares", 14.0), ("loss_sum", 6.0), ("n_used", 3.0)]
)
def test_a_report_on_the_list_replaces_the_training_loss(name: str, training_value: float) -> None:
    """Three of four samples were seen, with losses of 1, 2 and 3."""
    empty = torch.empty(0)
    losses = np.array([1.0, 2.0, np.nan, 3.0])
    fields: dict[str, Any] = {
        "uploads": {},
        "stored": {},
        "batch_loss": np.empty(0),
        "batch_size": np.empty(0, np.int64),
        "norms": [0.0],
    }
    make_client_update = partial(
        ClientUpdate, 0, 9, 4, 2, 2.0, 1, 1, 0.1, empty, empty, empty, sample_loss=losses, **fields
    )
    signal = find_signal(name)
    assert isinstance(signal, Reported)
    assert signal.read(make_client_update()) == training_value
    assert signal.read(make_client_update(loss_report={name: 7.5})) == 7.5


def test_reports_on_loss_lists_are_charged() -> None:
    """Down 8 bytes of threshold and deadline; up the five numbers that either of the two reads."""
    overrides = ("rounds=1", "device.lam=0.001", "client.epochs=1")
    with_reports = run_without_files(*overrides, "samples=fedbalancer", "deadline=fedbalancer").last.metrics
    plain = run_without_files(*overrides).last.metrics
    assert with_reports["comm/down_bytes"] - plain["comm/down_bytes"] == 4 * 8
    registered = 4 * 12  # n_train of twelve clients, for the deadline
    update = plain["comm/up_bytes"] / 4
    assert with_reports["comm/up_bytes"] == with_reports["round/arrived"] * (update + 4 * 5) + registered


def test_oort_receives_the_losses_above_the_threshold() -> None:
    """As the threshold rises, |OT| of the arrivals falls below the number of samples that they train on."""
    overrides = ("selector=oort", *LOSS_LISTS, "deadline.k=3", "rounds=8", "client.lr=0.5")
    run = run_without_files(*overrides)
    counts = np.array([report.clients["signal_loss_count"] for report in run.reports[1:]])
    assert (counts[:1][np.isfinite(counts[:1])] > 0).all()
    metrics = run.last.metrics
    assert metrics["samples/ltr"] >= 0.3
    assert metrics["samples/threshold"] > 0
    share_above = np.nanmean(counts / run.info.n_train, axis=1)
    assert share_above[0] == 1.0
    assert share_above[-1] < 0.9


LATE_UPDATES = (
    *LOSS_LISTS[:4],
    "deadline.k=0.5",
    "deadline.late_updates=carry",
    "device=shifted_exponential",
    "rounds=8",
)


def test_a_late_client_reports_for_the_threshold_that_it_received(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that arrives in round t, s rounds late, counts its losses above the threshold that was sent in t - s."""
    thresholds: dict[int, list[float]] = {}
    report_losses = LossThreshold.report_losses

    def note(samples: LossThreshold, threshold: float, request: Any, losses: np.ndarray) -> Any:
        thresholds.setdefault(request.client, []).append(threshold)
        return report_losses(samples, threshold, request, losses)

    monkeypatch.setattr(LossThreshold, "report_losses", note)
    run = run_without_files(*LATE_UPDATES)
    sent_thresholds = [report.metrics["samples/threshold"] for report in run.reports]
    n_differences = 0
    for round, report in enumerate(run.reports[1:]):
        for client in report.arrived.tolist():
            sent_round = round - int(report.clients["staleness"][client])
            assert thresholds[client].pop(0) == sent_thresholds[sent_round]
            n_differences += sent_thresholds[sent_round] != sent_thresholds[round]
    assert n_differences > 2
    assert not any(thresholds.values())


def test_a_resumed_run_knows_the_thresholds_that_late_clients_received(tmp_path: Path) -> None:
    uninterrupted = run_training(tmp_path / "uninterrupted", *LATE_UPDATES)
    run_training(tmp_path / "resumed", *LATE_UPDATES[:-1], "rounds=4")
    resumed = run_training(tmp_path / "resumed", *LATE_UPDATES, "resume=true")
    assert same_bits(uninterrupted, resumed)
    assert resumed.last.metrics == uninterrupted.last.metrics


@pytest.mark.parametrize("exclusion", ["update_limit=1e-9", "deadline.max_staleness=0"])
def test_rho_counts_the_reports_with_excluded_updates(exclusion: str) -> None:
    """Updates that are too long or too old are excluded, but their reports reached the server: (2 / 4)^2 each."""
    run = run_without_files(*LATE_UPDATES, "samples.noise=4", "samples.clip=2", exclusion)
    n_reports, was_in_flight = np.zeros(12), np.zeros(12, dtype=bool)
    for report in run.reports[1:]:
        is_in_flight = ~np.isnan(report.clients["in_flight"])
        n_reports += (report.clients["selected"] | was_in_flight) & ~is_in_flight
        was_in_flight = is_in_flight
        assert report.metrics["samples/rho"] == n_reports.max() / 4
    assert sum(report.metrics[f"round/dropped_{k}"] for report in run.reports[1:] for k in ("nonfinite", "stale")) > 2
