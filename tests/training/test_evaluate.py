"""Named metrics, by hand."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from fedcohort.data.federation import Rows, Shard
from fedcohort.training.evaluate import (
    cross_entropy,
    jain_index,
    mean_of_extremes,
    mean_over_samples,
    sample_rows,
    worst_group_accuracy,
)


def test_jains_index() -> None:
    # (1 + 2 + 3)^2 / (3 * 14) = 36 / 42 (UCB-CS Eq. 3)
    assert jain_index(np.array([1.0, 2.0, 3.0])) == pytest.approx(0.8571428571, abs=1e-10)
    assert jain_index(np.array([2.0, 2.0])) == 1.0
    assert jain_index(np.zeros(3)) == 1.0


@pytest.mark.parametrize("lost", [np.nan, np.inf])
def test_a_diverged_model_is_not_fair(lost: float) -> None:
    assert np.isnan(jain_index(np.array([1.0, lost])))


def test_tails_are_five_percent_rounded_up() -> None:
    values = np.arange(50) / 50.0
    assert mean_of_extremes(values) == pytest.approx((np.mean([0, 1, 2]) / 50, np.mean([47, 48, 49]) / 50))
    assert mean_of_extremes(np.arange(40.0)) == (0.5, 38.5)  # ceil(2.0) = 2, not 3
    assert mean_of_extremes(np.arange(10.0)) == (0.0, 9.0)  # ceil(0.5) = 1
    assert mean_of_extremes(np.array([0.7])) == (0.7, 0.7)


def shard() -> Shard:
    x = torch.arange(6, dtype=torch.float32)[:, None].repeat(1, 2)
    y = torch.zeros(6, dtype=torch.int64)
    return Shard(x, y, y, np.array([0, 2, 2, 6]))


def test_each_client_has_its_own_mean() -> None:
    network = nn.Identity()
    value = lambda logp, y: torch.arange(len(y)).double() + (0 if len(y) == 6 else 2)  # noqa: E731
    (values,) = mean_over_samples(network, shard(), np.arange(3), [value])
    assert values[0] == 0.5
    assert np.isnan(values[1])
    assert values[2] == 3.5
    (means,) = mean_over_samples(network, shard(), np.array([2]), [value])
    assert means.tolist() == [3.5]


def test_answers_are_in_the_order_of_who_was_asked() -> None:
    """Rows 0 to 5 have the label of their number: the means are 0.5, NaN and 3.5, also where all are asked."""
    samples = replace(shard(), y=torch.arange(6))
    (values,) = mean_over_samples(nn.Identity(), samples, np.array([2, 0, 1]), [lambda logp, y: y])
    np.testing.assert_array_equal(values, [3.5, 0.5, np.nan])


def test_nobodys_answer_depends_on_who_else_is_asked() -> None:
    """Batch norm without statistics norms by the samples at hand, in eval mode, too: here by the client's own."""
    draws = torch.Generator().manual_seed(0)
    x, y = torch.randn(6, 1, 2, 2, generator=draws) * torch.arange(1.0, 7.0)[:, None, None, None], torch.arange(6) % 2
    samples = Shard(x, y, y, np.array([0, 1, 1, 6]))
    network = nn.Sequential(nn.BatchNorm2d(1, track_running_stats=False), nn.Flatten(), nn.Linear(4, 2))
    (all_of_them,) = mean_over_samples(network, samples, np.arange(3), [cross_entropy])
    for k in range(3):
        (single,) = mean_over_samples(network, samples, np.array([k]), [cross_entropy])
        np.testing.assert_array_equal(single, all_of_them[[k]])
    loss = nn.functional.cross_entropy(network(x[1:]), y[1:])
    assert all_of_them[2] == pytest.approx(loss.item(), rel=1e-6)


def test_one_clients_nan_stays_its_own() -> None:
    samples = shard()
    samples.x[0] = float("nan")
    (values,) = mean_over_samples(nn.Identity(), samples, np.arange(3), [lambda logp, y: logp[:, 0]])
    assert np.isnan(values[0])
    assert values[2] == pytest.approx(np.log(0.5), abs=1e-6)


def test_rows_of_nobody() -> None:
    assert sample_rows(np.array([0, 2]), np.empty(0, np.int64)).tolist() == []


def test_the_worst_group_is_of_a_class_and_an_attribute_that_occur() -> None:
    """Everything is called class 1. Groups (0, 2): 0 of 1, (1, 0): 2 of 2, (1, 2): 1 of 1; without class 0 it is 1."""
    network = nn.Linear(1, 2)
    nn.init.zeros_(network.weight)
    with torch.no_grad():
        network.bias.copy_(torch.tensor([0.0, 1.0]))
    y, attribute = torch.tensor([0, 1, 1, 1]), np.array([2, 0, 0, 2])
    assert worst_group_accuracy(network, Rows(torch.ones(4, 1), y), attribute) == 0
    assert worst_group_accuracy(network, Rows(torch.ones(3, 1), y[1:]), attribute[1:]) == 1


def test_the_worst_group_can_be_in_between() -> None:
    """x > 0 is class 1. (1, 0): 1 of 2 right, (1, 1): 2 of 3, (0, 0): 1 of 1."""
    network = nn.Linear(1, 2, bias=False)
    with torch.no_grad():
        network.weight.copy_(torch.tensor([[-1.0], [1.0]]))
    x = torch.tensor([[1.0], [-1.0], [1.0], [1.0], [-1.0], [-1.0]])
    y, attribute = torch.tensor([1, 1, 1, 1, 1, 0]), np.array([0, 0, 1, 1, 1, 0])
    assert worst_group_accuracy(network, Rows(x, y), attribute) == 0.5
