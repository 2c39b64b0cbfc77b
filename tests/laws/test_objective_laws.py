"""Laws of every objective and server optimizer, with the defaults of their yaml files."""

from typing import Any

import pytest
import torch
from torch.nn import functional as F

from config_options import list_options, make_component
from failure_hints import failure_hint


@pytest.fixture(params=list_options("objective"))
def objective(request: pytest.FixtureRequest) -> Any:
    return make_component("objective", request.param)


def batch(n: int = 6, c: int = 4) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    g = torch.Generator().manual_seed(2)
    logits = torch.randn(n, c, generator=g, dtype=torch.float64)
    return logits, torch.randint(0, c, (n,), generator=g), F.softmax(torch.randn(n, c, generator=g).double(), 1)


@failure_hint("Return the plain cross-entropy of each sample as the second result.")
def test_cross_entropy_is_reported_in_addition(objective: Any) -> None:
    logits, y, z = batch()
    _, cross_entropy = objective.per_sample(logits, y, z)
    torch.testing.assert_close(cross_entropy, F.cross_entropy(logits, y, reduction="none"))


@failure_hint("Compute each sample's loss from its own row only.")
def test_samples_are_independent(objective: Any) -> None:
    logits, y, z = batch()
    batch_losses, _ = objective.per_sample(logits, y, z)
    for i in range(len(y)):
        single, _ = objective.per_sample(logits[i : i + 1], y[i : i + 1], z[i : i + 1])
        torch.testing.assert_close(single[0], batch_losses[i])


@failure_hint("Declare that the objective reads w_t's predictions exactly where it does: they cost a forward pass.")
def test_uses_reference_is_true_exactly_if_the_loss_depends_on_it(objective: Any) -> None:
    """The predictions of w_t cost a forward pass."""
    logits, y, z = batch()
    if objective.uses_reference:
        assert not torch.equal(objective.per_sample(logits, y, z)[0], objective.per_sample(logits, y, z.flip(0))[0])
    else:
        assert torch.equal(objective.per_sample(logits, y, z)[0], objective.per_sample(logits, y, None)[0])


@failure_hint("Compute the loss from log-softmax or softmax, not from raw logits.")
def test_shifted_logits_are_the_same_prediction(objective: Any) -> None:
    logits, y, z = batch()
    torch.testing.assert_close(objective.per_sample(logits + 7, y, z)[0], objective.per_sample(logits, y, z)[0])


@failure_hint("Clamp probabilities or use log-softmax: loss and gradient must be finite for logits of 200.")
def test_the_loss_of_extreme_logits_is_finite(objective: Any) -> None:
    logits = torch.tensor([[200.0, -200.0, 0.0]]).requires_grad_()
    loss, _ = objective.per_sample(logits, torch.tensor([1]), torch.full((1, 3), 1 / 3))
    (gradient,) = torch.autograd.grad(loss.sum(), logits)
    assert torch.isfinite(loss).all()
    assert torch.isfinite(gradient).all()


@failure_hint("Let `transform_mean` grow with the mean loss.")
def test_the_outer_function_is_increasing(objective: Any) -> None:
    means = torch.linspace(0, 8, 33, dtype=torch.float64)
    transformed = objective.transform_mean(means)
    assert (transformed.diff() > 0).all()
    assert float(transformed[0]) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("choice", list_options("server"))
def test_a_server_moves_along_the_direction(choice: str) -> None:
    server, g = make_component("server", choice), torch.tensor([1.0, -2.0], dtype=torch.float64)
    step, _ = server.step(server.init(2), g)
    assert float(step @ g) > 0
    zero_step, _ = server.step(server.init(2), torch.zeros(2, dtype=torch.float64))
    assert zero_step.tolist() == [0, 0]
