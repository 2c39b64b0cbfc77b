"""FedAdam's first steps by hand (Reddi et al. 2021, Alg. 2)."""

import pytest
import torch

from config_options import make_component


def test_three_server_adam_steps_by_hand() -> None:
    # beta1 = .5, beta2 = .75, tau = .5, lr = 2; G = 1, -2, .5; v = .25 at first
    # m: .5, .25 - 1 = -.75, -.375 + .25 = -.125
    # v: .1875 + .25 = .4375, .328125 + 1 = 1.328125, .99609375 + .0625 = 1.05859375
    # 2 m / (sqrt v + .5): 1 / 1.1614378, -1.5 / 1.6524430, -.25 / 1.5288799
    server = make_component("server", "adam", lr=2.0, beta1=0.5, beta2=0.75, tau=0.5)
    state, steps, v = server.init(1), [], []
    for g in (1.0, -2.0, 0.5):
        step, state = server.step(state, torch.tensor([g], dtype=torch.float64))
        steps.append(float(step))
        v.append(float(state.v))
    assert v == pytest.approx([0.4375, 1.328125, 1.05859375], abs=1e-12)
    assert float(state.m) == pytest.approx(-0.125, abs=1e-12)
    assert steps == pytest.approx([0.8610018, -0.9077469, -0.1635184], abs=1e-7)


def test_without_bias_correction_the_first_step_is_the_root_of_the_rates() -> None:
    # tau -> 0: lr (1 - beta1) / sqrt(1 - beta2) = .1 / .1, and with the correction 1 too; .5 / .1 = 5, and not 1
    g = torch.tensor([3.0], dtype=torch.float64)
    for beta1, first in ((0.9, 1.0), (0.5, 5.0)):
        server = make_component("server", "adam", lr=1.0, beta1=beta1, tau=1e-9)
        assert float(server.step(server.init(1), g)[0]) == pytest.approx(first, rel=1e-6)


def test_a_tau_far_above_the_directions_is_plain_averaging() -> None:
    # sqrt v ~ tau: lr m / (2 tau), m = G where beta1 = 0
    g = torch.tensor([1.0, -2.0], dtype=torch.float64)
    server = make_component("server", "adam", lr=2e6, beta1=0.0, beta2=0.999, tau=1e6)
    torch.testing.assert_close(server.step(server.init(2), g)[0], g, rtol=1e-2, atol=0)


def test_each_coordinate_is_scaled_separately() -> None:
    g = torch.tensor([100.0, -0.1], dtype=torch.float64)
    server = make_component("server", "adam", tau=1e-6)
    assert server.step(server.init(2), g)[0].tolist() == pytest.approx([0.01, -0.01], rel=1e-3)
