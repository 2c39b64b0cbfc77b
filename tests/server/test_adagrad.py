"""FedAdagrad's first steps by hand (Reddi et al. 2021, Alg. 2)."""

import pytest
import torch

from config_options import make_component


@pytest.mark.parametrize(
    ("beta1", "expected"),
    [
        # 2 G / (sqrt v + .5): 2 / 1.6180340, -4 / 2.7912878, 1 / 2.8452079
        (0.0, [1.2360680, -1.4330303, 0.3514682]),
        # m = .5, -.75, -.125: 1 / 1.6180340, -1.5 / 2.7912878, -.25 / 2.8452079
        (0.5, [0.6180340, -0.5373864, -0.0878671]),
    ],
)
def test_three_adagrad_steps_by_hand(beta1: float, expected: list[float]) -> None:
    # tau = .5, lr = 2; G = 1, -2, .5; v = .25 at first, then + 1, + 4, + .25
    server = make_component("server", "adagrad", lr=2.0, beta1=beta1, tau=0.5)
    state, steps, v = server.init(1), [], []
    for g in (1.0, -2.0, 0.5):
        step, state = server.step(state, torch.tensor([g], dtype=torch.float64))
        steps.append(float(step))
        v.append(float(state.v))
    assert v == pytest.approx([1.25, 5.25, 5.5], abs=1e-12)
    assert steps == pytest.approx(expected, abs=1e-7)


def test_adagrad_steps_shrink() -> None:
    # G = 1 for ever: lr / (sqrt(t + tau^2) + tau)
    server = make_component("server", "adagrad", lr=1.0, tau=1e-3)
    state, steps = server.init(1), []
    for _ in range(100):
        step, state = server.step(state, torch.ones(1, dtype=torch.float64))
        steps.append(float(step))
    assert [steps[0], steps[3], steps[99]] == pytest.approx([1, 1 / 2, 1 / 10], rel=2e-3)
