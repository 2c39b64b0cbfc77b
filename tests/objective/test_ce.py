"""Cross-entropy."""

import math

import pytest
import torch

from yaml_words import make


def test_minus_log_probability() -> None:
    logits = torch.tensor([[0.5, 0.3, 0.2]], dtype=torch.float64).log()
    objective, ce = make("objective", "ce").per_sample(logits, torch.tensor([0]), None)
    assert float(objective) == pytest.approx(0.6931471806, abs=1e-10)
    assert objective is ce
    assert float(ce) == pytest.approx(math.log(2), abs=1e-12)
