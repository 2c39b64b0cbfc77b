"""The loss and its gradient by hand."""

import pytest
import torch

from fedcohort.maths.gce import generalised_ce
from optional_values import not_none


@pytest.mark.parametrize(
    ("p", "loss", "factor"),
    [(0.9, 0.10156900, 0.928902), (0.5, 0.54918256, 0.615572), (0.1, 1.14353396, 0.199526)],
)
def test_the_loss_and_its_gradient_relative_to_cross_entropy(p: float, loss: float, factor: float) -> None:
    """(1 - p^.7) / .7, and p^.7."""
    y = torch.tensor([0])
    grads = []
    for function in (lambda logp: generalised_ce(logp, y, 0.7), lambda logp: -logp[:, 0]):
        logits = torch.tensor([[p, 1 - p]], dtype=torch.float64).log().requires_grad_()
        value = function(torch.log_softmax(logits, 1))
        value.sum().backward()
        grads.append((float(value.detach()), not_none(logits.grad)))
    assert grads[0][0] == pytest.approx(loss, abs=1e-8)
    torch.testing.assert_close(grads[0][1], factor * grads[1][1], atol=1e-6, rtol=0)


def test_q_of_one_is_the_absolute_error_and_zero_is_cross_entropy() -> None:
    logp = torch.tensor([[0.3, 0.7], [0.8, 0.2]], dtype=torch.float64).log()
    y = torch.tensor([0, 0])
    torch.testing.assert_close(generalised_ce(logp, y, 1.0), torch.tensor([0.7, 0.2], dtype=torch.float64))
    torch.testing.assert_close(generalised_ce(logp, y, 1e-9), -logp[:, 0], atol=1e-7, rtol=0)


@pytest.mark.parametrize("q", [1e-20, 1e-40, 1e-300])
def test_a_tiny_q_is_cross_entropy_in_single_precision(q: float) -> None:
    """1e-40 is no normal number there, and 1e-300 is 0."""
    logits = torch.tensor([[1.0, 2.0, 0.0]], requires_grad=True)
    loss = generalised_ce(torch.log_softmax(logits, 1), torch.tensor([0]), q)
    (gradient,) = torch.autograd.grad(loss.sum(), logits)
    torch.testing.assert_close(loss, -torch.log_softmax(logits, 1)[:, 0])
    torch.testing.assert_close(gradient, logits.softmax(1) - torch.tensor([[1.0, 0.0, 0.0]]))
