"""The server's loss of w_t, compared with torch; the components that read it, and that it costs nothing."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from config_options import make_component
from engine_harness import make_federation, make_network, make_trainer
from fedcohort.host.stopwatch import Stopwatch
from fedcohort.round.populations import Populations
from fedcohort.round.queries import ClientReports, QueryAnswerer
from fedcohort.signal.base import ServerMeasured, find_signal
from fedcohort.training import evaluate
from fedcohort.training.evaluate import SignalMeasurer
from round_harness import run_without_files

SIGNAL = "server_val_loss"


def make_lab() -> SignalMeasurer:
    federation = make_federation()
    trainer = make_trainer(federation, make_network(), batch=4)
    return SignalMeasurer(trainer.server, trainer.worker, federation, trainer.train_whole_job)


@pytest.mark.parametrize("batch_size", [1, 4, 10**6])
def test_the_validation_loss_is_the_mean_over_the_servers_samples(
    batch_size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many are looked at at once; the models stay as they are."""
    lab, signal = make_lab(), find_signal(SIGNAL)
    assert isinstance(signal, ServerMeasured)
    server_val, before = lab.federation.server_val, (lab.server.w.clone(), lab.worker.w.clone())
    monkeypatch.setattr(evaluate, "find_batch_size", lambda network, x: batch_size)
    with torch.no_grad():
        expected = F.cross_entropy(lab.server.network(server_val.x).double(), server_val.y).item()
    assert signal.measure(lab) == pytest.approx(expected, rel=1e-6)
    assert torch.equal(lab.server.w, before[0])
    assert torch.equal(lab.worker.w, before[1])


def test_the_servers_validation_loss_is_measured_only_if_a_selector_declares_it() -> None:
    lab, claims = make_lab(), ClientReports(make_component("attack", "none"), 0, 3)
    assert QueryAnswerer(frozenset({"loss"}), lab, claims, Stopwatch()).measure_server_signals() == {}
    queries = QueryAnswerer(frozenset({"loss", SIGNAL}), lab, claims, Stopwatch()).measure_server_signals()
    assert queries == {SIGNAL: lab.server_loss()}
    signals = Populations(3, 2, 1, {}).signals(frozenset({SIGNAL}), "the selector", queries)
    assert dict(signals) == queries


def test_the_servers_validation_loss_is_free_and_cannot_be_falsified() -> None:
    """FLASH queries no client if its reward is the server's loss and its context has no losses."""
    overrides = ("selector=flash_progress", "selector.features=[duration,prev_reward]", "eval.clients_every=0")
    honest = run_without_files(*overrides)
    assert honest.last.metrics["comm/probe_bytes"] == 0
    attacked = run_without_files(*overrides, "attack=loss_inflation", "attack.fraction=0.5")
    np.testing.assert_array_equal(attacked.last.clients["reward"], honest.last.clients["reward"])
