"""Named metrics, by hand."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from fedcohort.data.federation import Shard
from fedcohort.training.evaluate import (
    cross_entropy,
    list_sample_rows,
    mean_over_samples,
)


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


def test_client_means_are_in_the_order_of_the_queried_clients() -> None:
    """Rows 0 to 5 have the label of their number: the means are 0.5, NaN and 3.5, also where all are asked."""
    samples = replace(shard(), y=torch.arange(6))
    (values,) = mean_over_samples(nn.Identity(), samples, np.array([2, 0, 1]), [lambda logp, y: y])
    np.testing.assert_array_equal(values, [3.5, 0.5, np.nan])


def test_answers_do_not_depend_on_the_other_queried_clients() -> None:
    """Batch norm without statistics norms by the samples at hand, in eval mode, too: here by the client's own."""
    draws = torch.Generator().manual_seed(0)
    x, y = torch.randn(6, 1, 2, 2, generator=draws) * torch.arange(1.0, 7.0)[:, None, None, None], torch.arange(6) % 2
    samples = Shard(x, y, y, np.array([0, 1, 1, 6]))
    network = nn.Sequential(nn.BatchNorm2d(1, track_running_stats=False), nn.Flatten(), nn.Linear(4, 2))
    (all_answers,) = mean_over_samples(network, samples, np.arange(3), [cross_entropy])
    for k in range(3):
        (single,) = mean_over_samples(network, samples, np.array([k]), [cross_entropy])
        np.testing.assert_array_equal(single, all_answers[[k]])
    loss = nn.functional.cross_entropy(network(x[1:]), y[1:])
    assert all_answers[2] == pytest.approx(loss.item(), rel=1e-6)


def test_a_nan_input_affects_only_its_clients_mean() -> None:
    samples = shard()
    samples.x[0] = float("nan")
    (values,) = mean_over_samples(nn.Identity(), samples, np.arange(3), [lambda logp, y: logp[:, 0]])
    assert np.isnan(values[0])
    assert values[2] == pytest.approx(np.log(0.5), abs=1e-6)


def test_no_queried_clients_have_no_sample_rows() -> None:
    assert list_sample_rows(np.array([0, 2]), np.empty(0, np.int64)).tolist() == []
