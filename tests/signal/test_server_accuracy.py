"""server_accuracy: accuracy and loss of the moved model, compared with torch, and its forward passes."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from engine_harness import make_federation, make_network, make_trainer
from fedcohort.training.evaluate import SignalMeasurer
from signal_kinds import find_derived


def test_accuracy_and_loss_of_the_moved_model() -> None:
    """w_t + (2 D_0 + D_2) / 4; the loss is that of the signal server_loss, and w_t stays as it was."""
    trainer = make_trainer(federation := make_federation(), make_network(), epochs=5, batch=10)
    lab = SignalMeasurer(trainer.server, trainer.worker, federation, trainer.train_whole_job)
    updates = torch.stack([trainer.train_whole_job(4, k).delta.double() for k in range(3)])
    before, weights = trainer.server.w.clone(), np.array([0.5, 0.0, 0.25])
    accuracy, loss = find_derived("server_accuracy").make(lab, updates)(weights)
    data, network = federation.server_val, lab.copy()
    assert lab.server_passes == len(data.y)
    assert loss == find_derived("server_loss").make(lab, updates)(weights)
    torch.nn.utils.vector_to_parameters(before + (updates[0] / 2 + updates[2] / 4).float(), network.parameters())
    with torch.no_grad():
        logits = network(data.x)
    assert accuracy == pytest.approx((logits.argmax(1) == data.y).double().mean().item())
    assert loss == pytest.approx(F.cross_entropy(logits, data.y).item(), rel=1e-6)
    assert 0 < accuracy < 1
    assert torch.equal(trainer.server.w, before)
