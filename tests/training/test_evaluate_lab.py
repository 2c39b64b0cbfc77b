"""Measurements of probes are compared with plain torch code."""

from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from engine_harness import make_federation, make_network, make_task, make_trainer
from fedcohort.training.evaluate import SignalMeasurer
from fedcohort.training.local import LocalTrainer


@pytest.fixture
def measurer() -> tuple[SignalMeasurer, LocalTrainer, Any]:
    federation = make_federation(dtype=torch.float64)
    trainer = make_trainer(federation, make_network(torch.float64), batch=4)
    return SignalMeasurer(trainer.server, trainer.worker, federation, trainer.train_whole_job), trainer, federation


def loss_of(network: torch.nn.Module, federation: Any, client: int) -> torch.Tensor:
    x, y = federation.train.client_samples(client)
    return F.cross_entropy(network(x), y)


def test_the_gradient_is_that_of_the_mean_loss(measurer: Any) -> None:
    lab, trainer, federation = measurer
    network = lab.copy()
    grads = torch.autograd.grad(loss_of(network, federation, 1), list(network.parameters()))
    torch.testing.assert_close(lab.gradient(1), torch.cat([g.flatten() for g in grads]), atol=1e-12, rtol=0)
    torch.testing.assert_close(trainer.server.w, torch.cat([p.detach().flatten() for p in network.parameters()]))


def test_a_copied_network_does_not_share_parameters(measurer: Any) -> None:
    lab, trainer, _ = measurer
    before, worker = trainer.server.w.clone(), trainer.worker.w.clone()
    with torch.no_grad():
        for parameter in lab.copy().parameters():
            parameter.add_(1.0)
    assert torch.equal(trainer.server.w, before)
    assert not torch.equal(trainer.worker.w, worker + 1)


def test_a_simulated_training_equals_the_update_that_the_client_would_send(measurer: Any) -> None:
    """All of its work in this round, with this round's batches; the server's model stays."""
    lab, trainer, _ = measurer
    before = trainer.server.w.clone()
    units = trainer.client.epochs
    sent_delta = trainer.train(make_task(2, units=units, round=4, lr=trainer.client.lr_at(4)), {}).delta
    assert torch.equal(lab.train(4, 2).delta, sent_delta)
    assert not torch.equal(lab.train(5, 2).delta, sent_delta)
    assert torch.equal(trainer.server.w, before)


def test_losses_after_an_update_are_those_of_the_moved_model(measurer: Any) -> None:
    lab, trainer, federation = measurer
    update = torch.linspace(-1, 1, len(trainer.server.w), dtype=torch.float64)
    network = lab.copy()
    with torch.no_grad():
        position = 0
        for p in network.parameters():
            p += update[position : position + p.numel()].view_as(p)
            position += p.numel()
    expected = [loss_of(network, federation, k).item() for k in (0, 2)]
    assert lab.losses_after(update, np.array([0, 2])).tolist() == pytest.approx(expected, abs=1e-12)
    rows = federation.server_val
    loss = F.cross_entropy(network(rows.x.double()), rows.y)
    object.__setattr__(rows, "x", rows.x.double())
    assert lab.server_loss_after(update) == pytest.approx(loss.item(), abs=1e-12)
