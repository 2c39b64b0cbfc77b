"""The losses that local training reports: of each batch and of each sample, before the step."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from engine_harness import make_federation, make_network, make_task, make_trainer
from fedcohort.training.engines import choose_engine


def test_the_losses_reported_are_those_before_each_step() -> None:
    federation, network = make_federation(), make_network()
    update = make_trainer(federation, network, batch=None).train(make_task(0, units=1), {})
    x, y = federation.train.client_samples(0)
    assert update.batch_loss.tolist() == pytest.approx([F.cross_entropy(network(x), y).item()], abs=1e-6)
    assert (update.steps, update.batch_size.tolist(), update.n_used) == (1, [len(y)], len(y))


def test_each_sample_reports_its_first_loss() -> None:
    """A rate of zero leaves the model where it is: every visit sees w_t. Two steps of 5 see 10 samples."""
    federation, network = make_federation(), make_network()
    x, y = federation.train.client_samples(0)
    expected = F.cross_entropy(network(x), y, reduction="none").tolist()
    for model in (network, nn.Linear(5, 3)):
        for units, n_seen in ((1, 5), (2, 10), (40, len(y))):
            trainer = make_trainer(federation, model, batch=5, steps=units)
            for engine in (trainer, choose_engine("vectorised", trainer, 2)[0]):
                (update,) = engine.train_clients([make_task(0, units=units, lr=1e-30)], {})
                assert np.isfinite(update.sample_loss).sum() == n_seen
                if model is network:
                    sample_losses = np.where(np.isnan(update.sample_loss), expected, update.sample_loss)
                    assert sample_losses.tolist() == pytest.approx(expected, abs=1e-6)


def test_a_robust_objective_reports_cross_entropy() -> None:
    federation, network = make_federation(), make_network()
    plain = make_trainer(federation, network, batch=None).train(make_task(0, units=1), {})
    robust = make_trainer(federation, network, "flash_robust", batch=None).train(make_task(0, units=1), {})
    assert robust.batch_loss.tolist() == pytest.approx(plain.batch_loss.tolist(), abs=1e-6)
    assert not torch.equal(robust.delta, plain.delta)
