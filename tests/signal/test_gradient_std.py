"""gradient_std and gradient_moments: gradients and deviations by hand."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from selector_harness import ids
from signal_kinds import UnimplementedAccess, find_computed


class Slope(nn.Module):
    """Logits (0, w x): at w = 0, a sample of class 0 has the gradient x / 2."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([torch.zeros_like(x), self.w * x], 1)


class Lines(UnimplementedAccess):
    """A lab in which client k has k samples 0, 2, 4, ... of class 0."""

    def copy(self) -> nn.Module:
        return Slope()

    def samples(self, client: int) -> tuple[Tensor, Tensor]:
        return 2 * torch.arange(float(client))[:, None], torch.zeros(client, dtype=torch.int64)


def test_gradients_and_their_deviation_by_hand() -> None:
    """Gradients 0, 1, 2, 3: mean 1.5, deviation sqrt(5) / 2; one mini-batch of all has none, nor has no sample."""

    def measure(signal: str, batch: int, round: int = 0) -> list[Any]:
        answers: list[Any] = (
            find_computed(signal).compute(Lines(), round, ids(4, 0), {"batch": batch, "key": 0}).tolist()
        )
        return answers

    assert measure("gradient_std", 1) == pytest.approx([1.25**0.5, 0])
    assert measure("gradient_std", 9) == pytest.approx([0, 0])
    np.testing.assert_allclose(measure("gradient_moments", 1), [[1.5, 1.25**0.5], [0, 0]])
    # Three samples and one: |mean of three - 1.5| is a third of the distance of the other, so that sigma is .29 to .87.
    drawn = {round(measure("gradient_std", 3, r)[0], 6) for r in range(20)}
    assert drawn == {round(3**0.5 / 4 * 2 / 3, 6), round(3**0.5 / 4 * 2, 6)}
