"""FedAvgM."""

import pytest
import torch

from config_options import make_component
from state_saving import save_and_restore

G = -torch.ones(1, dtype=torch.float64)


def trajectory(beta: float, rounds: int, save_round: int | None = None) -> tuple[list[float], list[float]]:
    server = make_component("server", "momentum", beta=beta)
    state, w, ws, vs = server.init(1), 0.0, [], []
    for t in range(rounds):
        if t == save_round:
            state = save_and_restore(state)
        step, state = server.step(state, G)
        w += float(step)
        ws.append(w)
        vs.append(float(state.v))
    return vs, ws


def test_server_momentum_is_the_heavy_ball_without_damping() -> None:
    # v: -1, -1.9, -2.71; w: -1, -2.9, -5.61. The damped (EMA) form gives w = -0.1, -0.29, -0.561.
    vs, ws = trajectory(0.9, 3)
    assert vs == pytest.approx([-1, -1.9, -2.71], abs=1e-12)
    assert ws == pytest.approx([-1, -2.9, -5.61], abs=1e-12)


def test_server_momentum_with_beta_0_is_sgd() -> None:
    step = make_component("server", "momentum", beta=0.0).step(make_component("server", "momentum").init(1), G)[0]
    assert torch.equal(step, make_component("server", "sgd").step(None, G)[0])


def test_a_restored_state_continues_identically() -> None:
    assert trajectory(0.9, 6, save_round=3) == trajectory(0.9, 6)


def test_a_constant_direction_is_amplified_by_one_over_one_minus_beta() -> None:
    vs, _ = trajectory(0.95, 600)
    assert vs[-1] == pytest.approx(-20.0, rel=1e-6)
