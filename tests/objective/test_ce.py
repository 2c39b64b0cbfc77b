"""Cross-entropy."""

import math

import pytest
import torch

from config_options import make_component


def test_cross_entropy_is_minus_the_log_probability() -> None:
    logits = torch.tensor([[0.5, 0.3, 0.2]], dtype=torch.float64).log()
    objective, cross_entropy = make_component("objective", "ce").per_sample(logits, torch.tensor([0]), None)
    assert float(objective) == pytest.approx(0.6931471806, abs=1e-10)
    assert objective is cross_entropy
    assert float(cross_entropy) == pytest.approx(math.log(2), abs=1e-12)
