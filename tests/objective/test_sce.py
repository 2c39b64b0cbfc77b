"""Symmetric cross-entropy, at p = (.5, .3, .2)."""

import pytest
import torch

from config_options import make_component

P = torch.tensor([[0.5, 0.3, 0.2]], dtype=torch.float64)


def test_rhfls_constants_are_the_default() -> None:
    # .1 * .6931472 + 9.2103404 * .5
    loss, cross_entropy = make_component("objective", "sce").per_sample(P.log(), torch.tensor([0]), None)
    assert float(loss) == pytest.approx(4.6744849040, abs=1e-9)
    assert float(cross_entropy) == pytest.approx(0.6931471806, abs=1e-10)


@pytest.mark.parametrize("y", [0, 1, 2])
def test_sce_equals_flashs_loss_without_pseudo_labels(y: int) -> None:
    flash = make_component("objective", "flash_robust", alpha=0, beta=2.5, A=-4.0)
    sce = make_component("objective", "sce", a=1, b=2.5, A=-4.0)
    label = torch.tensor([y])
    torch.testing.assert_close(sce.per_sample(P.log(), label, None)[0], flash.per_sample(P.log(), label, P)[0])
    assert sce.max_bounded_loss == flash.max_bounded_loss == 10.0


def test_the_reverse_term_is_symmetric() -> None:
    # sum over y of -A (1 - p_y) = -A (C - 1), whatever p is: labels flipped at random only scale it.
    objective = make_component("objective", "sce", a=0, b=1, A=-4.0)
    losses = objective.per_sample(P.log().expand(3, 3), torch.arange(3), None)[0]
    assert float(losses.sum()) == pytest.approx(8.0, abs=1e-12)


def test_the_logit_gradient_of_sce_by_hand() -> None:
    # a (p - e_y) - b A p_y (p - e_y) at y = 0: (.1 + 4 * .5) (-.5, .3, .2)
    logits = P.log().requires_grad_()
    loss, _ = make_component("objective", "sce", a=0.1, b=1, A=-4.0).per_sample(logits, torch.tensor([0]), None)
    (gradient,) = torch.autograd.grad(loss.sum(), logits)
    assert gradient[0].tolist() == pytest.approx([-1.05, 0.63, 0.42], abs=1e-12)
