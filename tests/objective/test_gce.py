"""Generalised cross-entropy, at p = (.5, .3, .2), y = 0."""

import pytest
import torch

from config_options import make_component

P = torch.tensor([[0.5, 0.3, 0.2]], dtype=torch.float64)
Y = torch.tensor([0])


@pytest.mark.parametrize(("q", "expected"), [(0.7, 0.5491825619), (1.0, 0.5), (1e-9, 0.69314720)])
def test_gce_ranges_from_cross_entropy_to_absolute_error(q: float, expected: float) -> None:
    # (1 - .5^.7) / .7; at q = 1 it is 1 - p_y; q -> 0 is -ln .5 = .6931472
    loss, cross_entropy = make_component("objective", "gce", q=q).per_sample(P.log(), Y, None)
    assert float(loss) == pytest.approx(expected, abs=2e-8 if q < 1e-6 else 1e-10)
    assert float(cross_entropy) == pytest.approx(0.6931471806, abs=1e-10)


def test_the_logit_gradient_of_gce_by_hand() -> None:
    # p_y^q (p - e_y) = .5^.7 (-.5, .3, .2)
    logits = P.log().requires_grad_()
    loss, _ = make_component("objective", "gce", q=0.7).per_sample(logits, Y, None)
    (gradient,) = torch.autograd.grad(loss.sum(), logits)
    assert gradient[0].tolist() == pytest.approx([-0.3077861033, 0.1846716620, 0.1231144413], abs=1e-9)


def test_the_bound_of_gce_is_the_loss_of_a_wrong_prediction() -> None:
    objective = make_component("objective", "gce", q=0.5)
    wrong_logits = torch.tensor([[-500.0, 500.0]], dtype=torch.float64)
    assert (
        float(objective.per_sample(wrong_logits, Y, None)[0])
        == pytest.approx(2.0, abs=1e-12)
        == objective.max_bounded_loss
    )
