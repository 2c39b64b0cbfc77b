"""What labels are: one class, or a class for each place, of which those without a question count for nothing."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from fedcohort.data.targets import ONE_CLASS, UNLABELLED_POSITION, PerPositionTargets

PLACES = PerPositionTargets((0, 1))


def test_single_targets_equal_torchs_cross_entropy_bit_for_bit() -> None:
    logits, y = torch.randn(7, 4, generator=torch.Generator().manual_seed(0)), torch.arange(7) % 4
    assert torch.equal(ONE_CLASS.losses(logits, y), F.cross_entropy(logits, y, reduction="none"))
    assert torch.equal(ONE_CLASS.loss(logits, y), F.cross_entropy(logits, y))
    assert torch.equal(ONE_CLASS.summed_sample_loss(logits, y), F.cross_entropy(logits, y, reduction="sum"))
    assert ONE_CLASS.per_sample(ONE_CLASS.mark_correct)(logits, y).tolist() == (logits.argmax(1) == y).tolist()
    labels, n = ONE_CLASS.strata(y.numpy(), 4)
    assert labels is not None
    assert np.shares_memory(labels, y.numpy())
    assert n == 4


def test_a_samples_loss_is_the_mean_over_its_labelled_positions() -> None:
    """p = (.5, .25, .25): -ln p is ln 2 and ln 4. First sample: (ln 2 + ln 4) / 2; second: ln 4 alone."""
    logits = torch.tensor([0.5, 0.25, 0.25]).log().expand(2, 3, 3)
    y = torch.tensor([[0, 1, UNLABELLED_POSITION], [UNLABELLED_POSITION, UNLABELLED_POSITION, 2]])
    expected = [1.5 * math.log(2), 2 * math.log(2)]
    assert PLACES.losses(logits, y).tolist() == pytest.approx(expected)
    assert float(PLACES.loss(logits, y)) == pytest.approx(1.75 * math.log(2))
    assert float(PLACES.summed_sample_loss(logits, y)) == pytest.approx(3.5 * math.log(2))


def test_padding_and_unknown_tokens_are_never_correct() -> None:
    """Five positions, all predicted correctly: padding (0) and unknown tokens (1) never count as correct."""
    y = torch.tensor([[2, 0, 3, 1, UNLABELLED_POSITION]])
    logits = F.one_hot(y.clamp(min=0), 4).float()
    assert PLACES.per_sample(PLACES.mark_correct)(logits, y).tolist() == [2 / 4]
    assert PerPositionTargets(()).per_sample(PerPositionTargets(()).mark_correct)(logits, y).tolist() == [1.0]


def test_samples_without_labels_have_no_gradient() -> None:
    logits = torch.randn(2, 3, 5, requires_grad=True)
    y = torch.tensor([[4, UNLABELLED_POSITION, 0], [UNLABELLED_POSITION, 2, UNLABELLED_POSITION]])
    PLACES.loss(logits, y).backward()
    gradient: Any = logits.grad
    assert gradient.abs().sum(2).gt(0).tolist() == y.gt(UNLABELLED_POSITION).tolist()
    assert PLACES.losses(logits[:1].detach(), torch.full((1, 3), UNLABELLED_POSITION)).tolist() == [0.0]


def test_samples_with_several_targets_form_one_stratum() -> None:
    labels, n = PLACES.strata(np.full((6, 4), 3), 9)
    assert labels.dtype == np.int64
    assert (labels.tolist(), n) == ([0] * 6, 1)
