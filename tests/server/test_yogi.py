"""FedYogi's first steps by hand (Reddi et al. 2021, Alg. 2)."""

import pytest
import torch

from config_options import make_component


def test_three_yogi_steps_by_hand() -> None:
    # beta1 = .5, beta2 = .75, tau = .5, lr = 2; G = 1, -2, .5, squares 1, 4, .25; v = .25 at first
    # m: .5, -.75, -.125
    # v: .25 < 1: + .25 = .5; .5 < 4: + 1 = 1.5; 1.5 > .25: - .0625 = 1.4375
    # 2 m / (sqrt v + .5): 1 / 1.2071068, -1.5 / 1.7247449, -.25 / 1.6989579
    server = make_component("server", "yogi", lr=2.0, beta1=0.5, beta2=0.75, tau=0.5)
    state, steps, v = server.init(1), [], []
    for g in (1.0, -2.0, 0.5):
        step, state = server.step(state, torch.tensor([g], dtype=torch.float64))
        steps.append(float(step))
        v.append(float(state.v))
    assert v == pytest.approx([0.5, 1.5, 1.4375], abs=1e-12)
    assert float(state.m) == pytest.approx(-0.125, abs=1e-12)
    assert steps == pytest.approx([0.8284271, -0.8696938, -0.1471490], abs=1e-7)


def test_a_squared_direction_equal_to_v_keeps_v() -> None:
    server = make_component("server", "yogi", tau=2.0)
    assert float(server.step(server.init(1), torch.tensor([-2.0], dtype=torch.float64))[1].v) == 4.0


def test_yogi_forgets_a_large_direction_more_slowly_than_adam() -> None:
    # after G = 10 and ten zeros: Adam's v falls by a share of itself, Yogi's by (1 - beta2) 0^2
    v_by_server = {}
    for choice in ("adam", "yogi"):
        server = make_component("server", choice)
        state = server.init(1)
        for g in (10.0, *[0.0] * 10):
            state = server.step(state, torch.tensor([g], dtype=torch.float64))[1]
        v_by_server[choice] = float(state.v)
    assert v_by_server["yogi"] == pytest.approx(1.0, rel=1e-5)
    assert v_by_server["adam"] == pytest.approx(0.99**10, rel=1e-5)
