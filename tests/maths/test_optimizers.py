"""Optimizers without the import of torch's compiler."""

from typing import Any

import pytest
import torch

from fedcohort.maths.optimizers import uncompiled_optimizer


@pytest.mark.parametrize(
    ("optimizer", "options"),
    [
        (torch.optim.Adam, {"betas": (0.8, 0.99), "weight_decay": 0.1}),
        (torch.optim.SGD, {"momentum": 0.9, "weight_decay": 0.1}),
    ],
)
def test_steps_equal_torchs_bit_for_bit(optimizer: Any, options: Any) -> None:
    steps = []
    for optimizer_class in (optimizer, uncompiled_optimizer(optimizer)):
        numbers = torch.Generator().manual_seed(0)
        y = torch.nn.Parameter(torch.randn(50, generator=numbers))
        instance = optimizer_class([y], lr=0.01, **options)
        for _ in range(20):
            instance.zero_grad()
            (y * torch.randn(50, generator=numbers)).sum().backward()
            instance.step()
        assert isinstance(instance, optimizer)
        steps.append(y.detach())
    assert torch.equal(*steps)
    assert uncompiled_optimizer(optimizer) is uncompiled_optimizer(optimizer)
