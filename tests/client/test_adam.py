"""Local Adam."""

import pytest
import torch

from config_options import make_component
from fedcohort.errors import OptionError


def test_client_adam_agrees_with_torchs_adam() -> None:
    y = torch.nn.Parameter(torch.zeros(2))
    client = make_component("client", "adam", beta1=0.8)
    optimizer = client.optimizer(y, 0.25)
    assert isinstance(optimizer, torch.optim.Adam)
    assert optimizer.param_groups[0]["betas"] == (0.8, 0.999)
    assert not client.plain


def test_the_first_step_has_the_length_of_the_learning_rate() -> None:
    # m / sqrt(v) = g / |g| after bias correction
    y = torch.nn.Parameter(torch.zeros(1, dtype=torch.float64))
    optimizer = make_component("client", "adam").optimizer(y, 0.01)
    y.grad = torch.tensor([-123.0], dtype=torch.float64)
    optimizer.step()
    torch.testing.assert_close(y.detach(), torch.tensor([0.01], dtype=torch.float64), atol=1e-9, rtol=0)


def test_an_eps_that_is_zero_in_single_precision_is_rejected() -> None:
    """Where a gradient is 0, a step is 0 / eps."""
    with pytest.raises(OptionError, match=r"^eps must be a number in \[1e-30, inf\), got 1e-50$"):
        make_component("client", "adam", eps=1e-50)


def test_integers_at_the_bounds_train() -> None:
    """With beta1 = beta2 = 0 a step is lr g / (|g| + eps)."""
    y = torch.nn.Parameter(torch.zeros(1, dtype=torch.float64))
    optimizer = make_component("client", "adam", beta1=0, beta2=0, eps=1).optimizer(y, 1)
    y.grad = torch.tensor([-3.0], dtype=torch.float64)
    optimizer.step()
    torch.testing.assert_close(y.detach(), torch.tensor([0.75], dtype=torch.float64), atol=1e-12, rtol=0)
