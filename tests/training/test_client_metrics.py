"""Metrics over clients and groups, by hand."""

import numpy as np
import pytest
import torch
from torch import nn

from fedcohort.data.federation import ServerSamples
from fedcohort.partition.natural import Natural
from fedcohort.training.client_metrics import (
    compute_jain_index,
    mean_worst_and_best,
    measure_client_metrics,
    worst_group_accuracy,
)
from federation_harness import make_federation, make_raw


def test_jains_index_by_hand() -> None:
    # (1 + 2 + 3)^2 / (3 * 14) = 36 / 42 (UCB-CS Eq. 3)
    assert compute_jain_index(np.array([1.0, 2.0, 3.0])) == pytest.approx(0.8571428571, abs=1e-10)
    assert compute_jain_index(np.array([2.0, 2.0])) == 1.0
    assert compute_jain_index(np.zeros(3)) == 1.0


@pytest.mark.parametrize("non_finite", [np.nan, np.inf])
def test_jains_index_of_a_diverged_model_is_nan(non_finite: float) -> None:
    assert np.isnan(compute_jain_index(np.array([1.0, non_finite])))


def test_the_loss_weights_clients_by_their_samples_and_the_mean_loss_equally() -> None:
    """Client 1 has a third of the samples of client 0; client 2 is not evaluated."""
    owners = np.repeat([0, 1, 2], [300, 100, 100])
    federation = make_federation(make_raw(500, train_owner=owners), Natural(), clients=None, server_val=0.0)
    network = nn.Linear(1, 10)
    metrics, _ = measure_client_metrics(network, federation, np.array([0, 1]))
    samples = [federation.train.client_samples(client) for client in (0, 1)]
    losses = [nn.functional.cross_entropy(network(x), y).item() for x, y in samples]
    pooled_loss = nn.functional.cross_entropy(
        network(torch.cat([x for x, _ in samples])), torch.cat([y for _, y in samples])
    )
    assert metrics["clients/loss"] == pytest.approx(pooled_loss.item(), rel=1e-5)
    assert abs(losses[0] - losses[1]) > 1  # so that the two means differ
    assert metrics["clients/loss_mean"] == pytest.approx(np.mean(losses), rel=1e-5)


def test_worst_and_best_clients_are_five_percent_rounded_up() -> None:
    values = np.arange(50) / 50.0
    assert mean_worst_and_best(values) == pytest.approx((np.mean([0, 1, 2]) / 50, np.mean([47, 48, 49]) / 50))
    assert mean_worst_and_best(np.arange(40.0)) == (0.5, 38.5)  # ceil(2.0) = 2, not 3
    assert mean_worst_and_best(np.arange(10.0)) == (0.0, 9.0)  # ceil(0.5) = 1
    assert mean_worst_and_best(np.array([0.7])) == (0.7, 0.7)


def test_the_worst_group_ignores_groups_without_samples() -> None:
    """Everything is called class 1. Groups (0, 2): 0 of 1, (1, 0): 2 of 2, (1, 2): 1 of 1; without class 0 it is 1."""
    network = nn.Linear(1, 2)
    nn.init.zeros_(network.weight)
    with torch.no_grad():
        network.bias.copy_(torch.tensor([0.0, 1.0]))
    y, attribute = torch.tensor([0, 1, 1, 1]), np.array([2, 0, 0, 2])
    assert worst_group_accuracy(network, ServerSamples(torch.ones(4, 1), y), attribute) == 0
    assert worst_group_accuracy(network, ServerSamples(torch.ones(3, 1), y[1:]), attribute[1:]) == 1


def test_the_worst_group_accuracy_of_three_groups_by_hand() -> None:
    """x > 0 is class 1. (1, 0): 1 of 2 right, (1, 1): 2 of 3, (0, 0): 1 of 1."""
    network = nn.Linear(1, 2, bias=False)
    with torch.no_grad():
        network.weight.copy_(torch.tensor([[-1.0], [1.0]]))
    x = torch.tensor([[1.0], [-1.0], [1.0], [1.0], [-1.0], [-1.0]])
    y, attribute = torch.tensor([1, 1, 1, 1, 1, 0]), np.array([0, 0, 1, 1, 1, 0])
    assert worst_group_accuracy(network, ServerSamples(x, y), attribute) == 0.5
