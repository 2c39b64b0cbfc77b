"""FLASH's robust loss, at p = (.5, .3, .2)."""

import pytest
import torch

from config_options import make_component

P = torch.tensor([[0.5, 0.3, 0.2]], dtype=torch.float64)
Z = torch.tensor([[0.2, 0.2, 0.6]], dtype=torch.float64)


def loss(alpha: float, beta: float, z: torch.Tensor, y: int = 0, p: torch.Tensor = P) -> float:
    part = make_component("objective", "flash_robust", alpha=alpha, beta=beta)
    return float(part.per_sample(p.log(), torch.tensor([y]), z)[0])


def gradient(alpha: float, beta: float, z: torch.Tensor, y: int = 0) -> list[float]:
    logits = P.log().requires_grad_()
    objective, _ = make_component("objective", "flash_robust", alpha=alpha, beta=beta).per_sample(
        logits, torch.tensor([y]), z
    )
    return torch.autograd.grad(objective.sum(), logits)[0][0].tolist()


def test_reverse_cross_entropy_is_symmetric() -> None:
    # RCE(y) = 4 (1 - p_y): 2.0 and 3.2; summed over y it is -A (C - 1) = 8 whatever p is: noise tolerant.
    rce = [loss(0, 1, P, y) - loss(0, 0, P, y) for y in range(3)]
    assert rce[0] == pytest.approx(2.0, abs=1e-12)
    assert rce[2] == pytest.approx(3.2, abs=1e-12)
    assert sum(rce) == pytest.approx(8.0, abs=1e-12)


def test_the_loss_of_the_first_step() -> None:
    # z = p: CE .6931 + entropy 1.0297 + 4 * 2
    assert loss(1, 4, P) == pytest.approx(9.7228001946, abs=1e-9)


def test_the_loss_with_other_pseudo_labels() -> None:
    assert loss(0.1, 4, Z) == pytest.approx(8.8276558550, abs=1e-9)


def test_the_loss_with_the_selectors_constants() -> None:
    # p = (.7, .2, .1), y = 0: CE .3566749, entropy .8018186, RCE 1.2
    p = torch.tensor([[0.7, 0.2, 0.1]], dtype=torch.float64)
    assert loss(0.1, 4, p, 0, p) == pytest.approx(5.2368568, abs=1e-7)
    assert loss(1, 1, p, 0, p) == pytest.approx(2.3584935, abs=1e-7)


def test_the_logit_gradients_by_hand() -> None:
    cross_entropy = gradient(0, 0, Z)
    assert [a - b for a, b in zip(gradient(1, 0, P), cross_entropy, strict=True)] == pytest.approx([0, 0, 0], abs=1e-12)
    assert [a - b for a, b in zip(gradient(1, 0, Z), cross_entropy, strict=True)] == pytest.approx(
        [0.3, 0.1, -0.4], abs=1e-12
    )
    assert [a - b for a, b in zip(gradient(0, 1, Z), cross_entropy, strict=True)] == pytest.approx(
        [-1, 0.6, 0.4], abs=1e-12
    )
    assert gradient(1, 1, Z) == pytest.approx([-1.2, 1.0, 0.2], abs=1e-12)


def test_without_robust_terms_the_loss_is_cross_entropy() -> None:
    logits = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
    y = torch.tensor([0, 1, 2, 0, 1])
    robust, plain = (
        make_component("objective", "flash_robust", alpha=0, beta=0).per_sample(logits, y, torch.full((5, 3), 1 / 3))[
            0
        ],
        make_component("objective", "ce").per_sample(logits, y, None)[0],
    )
    torch.testing.assert_close(robust, plain, atol=1e-6, rtol=0)


def test_no_gradient_reaches_the_pseudo_labels() -> None:
    z = Z.clone().requires_grad_(False)
    objective, _ = make_component("objective", "flash_robust").per_sample(
        P.log().requires_grad_(), torch.tensor([0]), z
    )
    objective.sum().backward()
    assert z.grad is None


def test_the_robust_loss_requires_reference_predictions() -> None:
    with pytest.raises(ValueError, match="reference"):
        make_component("objective", "flash_robust").per_sample(P.log(), torch.tensor([0]), None)
