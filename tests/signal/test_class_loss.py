"""A client's row of class losses by hand, and on the data of a federation."""

import numpy as np
import torch
from torch.nn import functional as F

from engine_harness import make_federation, make_network, make_trainer
from fedcohort.signal.class_loss import class_losses, sample_loss_statistics
from fedcohort.training.evaluate import SignalMeasurer


def test_the_row_of_two_samples_by_hand() -> None:
    """Probabilities .5, .25, .25 and 1, 0, 0, labels 0 and 2: losses ln 2 and, as -ln 0 is cut, 12 nats.

    The other labels of the first sample cost ln 4 each, those of the second 0 and 12.
    """
    log_probs = torch.log(torch.tensor([[0.5, 0.25, 0.25], [1.0, 0.0, 0.0]]))
    rows = sample_loss_statistics(log_probs, torch.tensor([0, 2])).numpy()
    ln2 = np.log(2)
    np.testing.assert_allclose(rows[0], [1, 0, 0, ln2, 0, 0, ln2**2, 0, 0, 2 * ln2], rtol=1e-6)
    np.testing.assert_allclose(rows[1], [0, 0, 1, 0, 0, 12, 0, 0, 144, 6])


def test_the_rows_of_clients_are_sums_over_their_samples() -> None:
    """The mean of all losses is the cross-entropy of torch, the counts are those of the labels, in any order asked."""
    federation = make_federation(dtype=torch.float64)
    trainer = make_trainer(federation, make_network(torch.float64), batch=4)
    lab = SignalMeasurer(trainer.server, trainer.worker, federation, trainer.train_whole_job)
    n_classes = federation.n_classes
    rows = class_losses(lab, 0, np.array([2, 0]), {"n_classes": n_classes})
    assert rows.shape == (2, 3 * n_classes + 1)
    for row, client in zip(rows, (2, 0), strict=True):
        x, y = federation.train.client_samples(client)
        np.testing.assert_array_equal(row[:n_classes], np.bincount(y.numpy(), minlength=n_classes))
        loss = F.cross_entropy(lab.copy()(x), y, reduction="sum").item()
        np.testing.assert_allclose(row[n_classes : 2 * n_classes].sum(), loss)
