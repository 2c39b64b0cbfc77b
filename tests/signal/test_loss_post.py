"""The loss of a client's trained model: its value by hand, its cost, and the rounds that are charged."""

import copy
import math

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from engine_harness import SEED, make_federation, make_network, make_task, make_trainer
from fedcohort.flat import FlatModel
from fedcohort.rng import seeded_torch
from fedcohort.training.engines import choose_engine
from round_harness import run_without_files
from run_harness import FinishedRun
from signal_kinds import find_reported

P = 64 * 10 + 10  # logistic regression on 8x8 digits
K, M, EPOCHS = 12, 4, 2
FORWARD = 2 * 64 * 10  # FLOPs of one sample's forward pass
READS = ("agg=fedmaba", "agg.loss=loss_post")


@pytest.mark.parametrize("kind", ["sequential", "vectorised", "debug"])
def test_the_loss_after_one_step_by_hand(kind: str) -> None:
    """From W = 0, a step on sample (x, y) of three classes gives W = lr (e_y - 1/3) x', b = lr (e_y - 1/3).

    A sample (u, v) then has the logits lr (u'x + 1) (e_y - 1/3). With s = lr (u'x + 1) its loss is ln(e^s + 2), minus s
    if v = y.
    """
    lr, network = 0.5, nn.Linear(5, 3).double()
    nn.init.zeros_(network.weight)
    nn.init.zeros_(network.bias)
    federation = make_federation(dtype=torch.float64)
    engine, _ = choose_engine(kind, make_trainer(federation, network, batch=None), 4)
    (update,) = engine.train_clients([make_task(1, units=1, rows=np.array([2]), lr=lr, loss_after=True)], {})
    x, y = (part.numpy() for part in federation.train.client_samples(1))
    s = lr * (x @ x[2] + 1)
    expected = np.log(np.exp(s) + 2) - s * (y == y[2])
    assert len(y) > 10, "all of T_k, not the sample that it was trained on"
    assert find_reported("loss_post").read(update) == pytest.approx(expected.mean(), abs=1e-12)


@pytest.mark.parametrize("layer", [nn.BatchNorm1d(8), nn.Dropout(0.5)], ids=["batch norm", "dropout"])
def test_the_loss_after_training_uses_eval_mode_and_the_clients_statistics(layer: nn.Module) -> None:
    federation, network = make_federation(), make_network(torch.float32, layer)
    trainer = make_trainer(federation, network, batch=7)
    update, other_update = (trainer.train(make_task(k, loss_after=True), {}) for k in (0, 1))
    client_model = FlatModel(copy.deepcopy(network))
    client_model.w += update.delta
    client_model.buffers.copy_(update.buffers)
    x, y = federation.train.client_samples(0)
    with torch.no_grad():
        assert update.loss_after == pytest.approx(float(F.cross_entropy(client_model.network.eval()(x), y)), abs=1e-6)
    single_update = make_trainer(federation, network, batch=7).train(make_task(1), {})
    assert torch.equal(other_update.delta, single_update.delta), "measuring the loss changes no training"


def test_the_loss_after_training_is_not_measured_without_a_reader() -> None:
    trainer = make_trainer(make_federation(), make_network())
    assert math.isnan(trainer.train(make_task(0), {}).loss_after)
    assert "signal_loss_post" not in run_without_files("agg=fedmaba", "rounds=1").last.clients


@pytest.mark.parametrize("agg", ["fedmaba", "afl", "term"])
def test_with_one_client_the_loss_after_training_is_that_of_the_next_model(agg: str) -> None:
    # one client has all the weight: w_{t+1} = y_k, and `loss` is F_k(w_{t+1})
    run = run_without_files(f"agg={agg}", "agg.loss=loss_post", "cohort=1", "samples=random", "samples.fraction=0.5")
    for report in run.reports[1:]:
        (k,) = report.arrived
        assert report.clients["signal_loss_post"][k] == pytest.approx(report.clients["loss"][k], abs=1e-6)


def test_a_codec_does_not_change_the_loss_after_training() -> None:
    first = [run_without_files(*READS, f"codec={choice}", "rounds=1") for choice in ("none", "quant")]
    plain, with_codec = (run.last.clients["signal_loss_post"] for run in first)
    np.testing.assert_array_equal(plain, with_codec)
    assert first[0].last.fingerprint != first[1].last.fingerprint


def measure_cost(run: FinishedRun, name: str) -> float:
    return run.last.metrics[name] - run.reports[0].metrics[name]


def test_the_loss_after_training_costs_four_bytes_and_a_forward_pass() -> None:
    run, without_signal = (
        run_without_files("agg=fedmaba", f"agg.loss={signal}", "rounds=1") for signal in ("loss_post", "train_loss")
    )
    chosen = run.last.cohort
    n = float(run.info.n_train[chosen].sum())
    assert run.last.cohort.tolist() == without_signal.last.cohort.tolist()
    assert measure_cost(run, "comm/up_bytes") == M * (4 * P + 4)
    assert measure_cost(run, "comm/probe_bytes") == 0
    assert measure_cost(run, "comp/client_flops") == FORWARD * n * (3 * EPOCHS + 1)
    # a job of E epochs is n sample-times, a forward pass a third of an epoch: n + n / (3 E)
    longer = 1 + 1 / (3 * EPOCHS)
    expected = without_signal.last.clients["finish_s"] * longer
    np.testing.assert_allclose(run.last.clients["finish_s"], expected, rtol=1e-12)
    assert measure_cost(run, "time/virtual_s") == pytest.approx(measure_cost(without_signal, "time/virtual_s") * longer)


def test_the_loss_after_training_uses_and_charges_all_of_a_clients_samples() -> None:
    run = run_without_files(*READS, "samples=random", "samples.fraction=0.5", "rounds=1", "selector=full")
    n = run.info.n_train
    used = sum(max(1, math.ceil(0.5 * k - 1e-9)) for k in n)
    assert measure_cost(run, "comp/client_flops") == FORWARD * (3 * EPOCHS * used + float(n.sum()))


def test_late_clients_are_charged_without_reporting() -> None:
    run = run_without_files(*READS, "deadline=fixed", "deadline.k=0.01", "rounds=1")
    assert len(run.last.arrived) == 0
    n = float(run.info.n_train[run.last.cohort].sum())
    assert measure_cost(run, "comp/client_flops") == FORWARD * n * (3 * EPOCHS + 1)
    assert measure_cost(run, "comm/up_bytes") == 0


def test_the_time_of_the_loss_after_training_counts_against_the_deadline() -> None:
    """A job of one epoch takes 2 n, and 2 n / 3 more with a forward pass: all equal, k = 1 is the mean, with it."""
    overrides = ("device.alpha=2", "device.lam=0", "client.epochs=1", "deadline=fixed", "rounds=1")
    for signal in ("train_loss", "loss_post"):
        run = run_without_files("agg=fedmaba", f"agg.loss={signal}", "selector=full", "deadline.k=1", *overrides)
        job = 2.0 * run.info.n_train * (4 / 3 if signal == "loss_post" else 1)
        late_clients = np.flatnonzero(job > job.mean() * (1 + 1e-12))
        assert sorted(set(range(K)) - set(run.last.arrived.tolist())) == late_clients.tolist()
        np.testing.assert_allclose(run.last.clients["finish_s"][run.last.arrived], job[run.last.arrived])


def divergence(losses: list[float]) -> float:
    """KL(p || uniform) of p ~ e^(F / 2), nats."""
    p = np.exp(0.5 * (np.array(losses) - max(losses)))
    p /= p.sum()
    return float((p * np.log(len(p) * p)).sum())


def test_later_losses_are_lower_and_more_similar() -> None:
    """A model that is confident and wrong, and clients whose data follow different rules."""
    federation = make_federation(n=400, clients=6, dtype=torch.float64)
    with seeded_torch(SEED, "weights"):
        network = nn.Linear(5, 3).double()
    network.weight.data *= 6
    losses_by_signal: dict[str, list[float]] = {"loss": [], "train_loss": [], "loss_post": []}
    trainer = make_trainer(federation, network, batch=10)
    for k in range(6):
        x, y = federation.train.client_samples(k)
        y.copy_(((x[:, 0] > 0).long() + (k % 3 == 0) * (x[:, 1] > 0).long() + k) % 3)
        losses_by_signal["loss"].append(F.cross_entropy(network(x), y).item())
        update = trainer.train(make_task(k, units=10, lr=0.5, loss_after=True), {})
        for signal in ("train_loss", "loss_post"):
            losses_by_signal[signal].append(find_reported(signal).read(update))
    assert all(a > b > c for a, b, c in zip(*losses_by_signal.values(), strict=True))
    divergences = [divergence(losses) for losses in losses_by_signal.values()]
    assert divergences[0] > 4 * divergences[1] > 4 * divergences[2]
