"""Estimating who has which attribute: the steps by hand, then data whose attribute is easy and whose class is not."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from fedcohort.data import skew
from fedcohort.data.interaction import (
    EstimateOptions,
    draw_batches,
    estimate_group_counts,
    find_pivot_class,
    mark_bias_aligned_samples,
    replace_head,
)
from fedcohort.errors import FedcohortError

RECIPE = EstimateOptions(q=0.7, epochs=5, lr=0.3, batch=10)


def linear(features: int, n_classes: int) -> Any:
    def copy() -> nn.Module:
        layer = nn.Linear(features, n_classes)
        nn.init.zeros_(layer.weight)
        nn.init.zeros_(layer.bias)
        return layer

    return copy


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize(
    ("n_correct", "n_wrong", "expected"),
    [
        ([80, 55, 0], [20, 45, 100], 1),
        ([30, 10, 0], [10, 30, 5], 0),
        ([10, 10], [30, 30], 0),  # a tie goes to the lowest class
        ([2, 80], [0, 20], 1),  # all right, or all wrong, is one label
        ([1, 0], [0, 1], None),
    ],
)
def test_the_pivot_class_by_hand(n_correct: list[int], n_wrong: list[int], expected: int | None) -> None:
    assert find_pivot_class(np.array(n_correct), np.array(n_wrong)) == expected


@pytest.mark.parametrize(
    ("n", "size", "sizes"), [(10, 4, [4, 4, 2]), (9, 4, [4, 5]), (8, 4, [4, 4]), (1, 4, [1]), (3, 1, [1, 2])]
)
def test_a_last_batch_of_one_is_merged(n: int, size: int, sizes: list[int]) -> None:
    batches = list(draw_batches(n, size, rng()))
    assert [len(batch) for batch in batches] == sizes
    assert sorted(np.concatenate(batches)) == list(range(n))


def test_a_head_of_two_replaces_the_last_layer_and_starts_from_zero() -> None:
    network = nn.Sequential(nn.Flatten(), nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 3), nn.Dropout(0.0))
    first = network[1]
    changed = replace_head(network, torch.ones(1, 4))
    assert isinstance(changed, nn.Sequential)
    assert changed[1] is first
    torch.testing.assert_close(changed(torch.ones(5, 4)), torch.zeros(5, 2))
    assert replace_head(nn.Linear(4, 3), torch.ones(1, 4)).out_features == 2


def test_a_network_without_a_linear_head_is_named() -> None:
    with pytest.raises(FedcohortError, match=r"signal dht replaces .* of 4 outputs"):
        replace_head(nn.Flatten(), torch.ones(1, 4))


def make_groups(counts: list[list[int]], strength: float = 3.0) -> tuple[torch.Tensor, torch.Tensor, np.ndarray]:
    """Samples of (class, attribute) groups: features 0 and 1 say the attribute loudly, feature 2 nothing (seeded)."""
    y = np.repeat(np.arange(len(counts)), np.sum(counts, axis=1))
    a = np.concatenate([np.repeat([0, 1], row) for row in counts])
    x = rng(7).normal(0, 0.3, (len(y), 3))
    x[:, 0] += strength * (a == 0)
    x[:, 1] += strength * (a == 1)
    return torch.from_numpy(x).float(), torch.from_numpy(y), a


def test_the_biased_model_gets_the_majority_right() -> None:
    """Class 0 is mostly attribute 0 and class 1 mostly attribute 1: who agrees is right, who doesn't is wrong."""
    x, y, a = make_groups([[80, 20], [20, 80]])
    np.testing.assert_array_equal(mark_bias_aligned_samples(linear(3, 2), x, y, RECIPE, rng()), a == y.numpy())


def test_with_more_classes_the_biased_model_of_each_class_is_used() -> None:
    """Attribute 0 says class 0 and attribute 1 class 1, against the rest; nothing says the rare class 2."""
    x, y, a = make_groups([[60, 6], [6, 60], [4, 4]])
    is_aligned = mark_bias_aligned_samples(linear(3, 3), x, y, RECIPE, rng())
    np.testing.assert_array_equal(is_aligned, (a == y.numpy()) & (y.numpy() < 2))


@pytest.mark.parametrize("counts", [[[80, 20], [20, 80]], [[90, 30], [10, 70]]])
def test_the_estimate_is_the_true_matrix_up_to_attribute_order(counts: list[list[int]]) -> None:
    x, y, _ = make_groups(counts)
    estimate = estimate_group_counts(linear(3, 2), x, y, RECIPE, rng())
    truth = np.array(counts)
    assert (estimate == truth).all() or (estimate == truth[:, ::-1]).all()
    np.testing.assert_allclose(skew.skew_triplet(estimate), skew.skew_triplet(truth))


def test_with_more_classes_each_class_is_compared_with_the_rest() -> None:
    """Classes 0 and 1 correlate with one attribute each; 2 is absent and 3 is never predicted: neither is a pivot."""
    counts = [[60, 6], [6, 60], [0, 0], [4, 4]]
    x, y, _ = make_groups(counts)
    estimate = estimate_group_counts(linear(3, 4), x, y, RECIPE, rng())
    assert estimate.tolist() in (counts, np.array(counts)[:, ::-1].tolist())


def test_a_perfect_biased_model_means_one_attribute() -> None:
    """The class itself is easy: all samples are predicted correctly, none is a minority, so that AI = 1 and SC = 0."""
    x, y, _ = make_groups([[50, 0], [0, 50]])
    estimate = estimate_group_counts(linear(3, 2), x, y, RECIPE, rng())
    assert estimate.tolist() == [[0, 50], [0, 50]]
    assert skew.skew_triplet(estimate).tolist() == pytest.approx([0, 1, 0])


@pytest.mark.parametrize("labels", [[0], [1, 0], [2, 2]])
def test_group_counts_are_estimated_for_a_few_samples(labels: list[int]) -> None:
    y = torch.tensor(labels)
    estimate = estimate_group_counts(linear(3, 3), torch.ones(len(y), 3), y, RECIPE, rng())
    assert estimate.sum() == len(labels)


def test_equal_generators_give_equal_estimates() -> None:
    x, y, _ = make_groups([[30, 20], [15, 35]], strength=0.4)
    first, second = (estimate_group_counts(linear(3, 2), x, y, RECIPE, rng(3)) for _ in range(2))
    assert first.tolist() == second.tolist()


def test_batch_norm_and_frozen_layers_are_supported() -> None:
    def copy() -> nn.Module:
        torch.manual_seed(0)
        network = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 3))
        return network.requires_grad_(False)

    x, y, _ = make_groups([[8, 3], [3, 8], [1, 0]])
    with torch.random.fork_rng():
        assert estimate_group_counts(copy, x, y, RECIPE, rng()).sum() == 23
