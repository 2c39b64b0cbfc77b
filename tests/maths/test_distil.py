"""Distillation: mini-batches cover all rows, and rows that match their target are not trained on."""

import numpy as np
import pytest
import torch
from torch import nn

from fedcohort.maths.distil import distillation_step, draw_batches, predict_logits, trainable_parameters
from fedcohort.rng import new_generator


@pytest.mark.parametrize(
    ("n", "size", "count", "sizes"), [(5, 2, 7, [2, 2, 1, 2, 2, 1, 2]), (3, 9, 2, [3, 3]), (4, 2, 0, [])]
)
def test_batches_cover_all_rows_in_each_pass(n: int, size: int, count: int, sizes: list[int]) -> None:
    mini_batches = list(draw_batches(new_generator(0, "x"), n, size, count))
    assert [len(rows) for rows in mini_batches] == sizes
    per_pass = -(-n // size)
    for start in range(0, count - per_pass + 1, per_pass):
        assert sorted(np.concatenate(mini_batches[start : start + per_pass])) == list(range(n))


def test_rows_that_match_their_target_are_not_trained_on() -> None:
    # Rounding errors are gradients of about 1e-8, which Adam would divide by themselves.
    layer = nn.Linear(3, 2)
    x = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    before, optimizer = layer.weight.detach().clone(), torch.optim.Adam(trainable_parameters(layer), lr=0.1)
    distillation_step(optimizer, layer(x).softmax(1).detach() + 5e-7, layer(x))
    assert torch.equal(layer.weight, before)
    distillation_step(optimizer, layer(x).softmax(1).detach().flip(1), layer(x))
    assert not torch.equal(layer.weight, before)


def test_predictions_use_eval_mode_and_chunks() -> None:
    network = nn.Sequential(nn.Dropout(0.9), nn.Linear(3, 2))
    x = torch.randn(5, 3)
    torch.testing.assert_close(predict_logits(network, x, 2), network[1](x).detach())


def test_frozen_parameters_are_unchanged() -> None:
    layer = nn.Linear(3, 2)
    layer.bias.requires_grad_(False)
    assert [p.shape for p in trainable_parameters(layer)] == [(2, 3)]
