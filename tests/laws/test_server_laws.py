"""Laws of every server optimizer, with the defaults of its yaml file."""

import copy
from typing import Any

import pytest
import torch

from config_options import list_options, make_component
from failure_hints import failure_hint
from state_saving import save_and_restore

P = 4


@pytest.fixture(params=list_options("server"))
def server(request: pytest.FixtureRequest) -> Any:
    return make_component("server", request.param)


def g(seed: int) -> torch.Tensor:
    return torch.randn(P, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def run_rounds(server: Any, rounds: int) -> Any:
    state = server.init(P)
    for t in range(rounds):
        state = server.step(state, g(t))[1]
    return state


@failure_hint("Return a displacement that has a positive product with the direction: the server adds it to the model.")
def test_the_first_step_goes_along_the_direction(server: Any) -> None:
    step, _ = server.step(server.init(P), g(0))
    assert step.shape == (P,)
    assert step.dtype == torch.float64
    assert torch.equal(step.sign(), g(0).sign())


@failure_hint("Multiply the displacement by `lr`, and leave `lr` out of the state.")
def test_the_step_is_proportional_to_the_learning_rate(server: Any) -> None:
    object.__setattr__(server, "lr", 0.25)
    quarter, _ = server.step(run_rounds(server, 3), g(9))
    object.__setattr__(server, "lr", 1.0)
    full_step, _ = server.step(run_rounds(server, 3), g(9))
    torch.testing.assert_close(quarter, full_step / 4, atol=1e-15, rtol=0)


@failure_hint("Treat both signs in the same way.")
def test_opposite_directions_give_opposite_steps(server: Any) -> None:
    forward = backward = server.init(P)
    for t in range(4):
        (a, forward), (b, backward) = server.step(forward, g(t)), server.step(backward, -g(t))
        assert torch.equal(a, -b)


@failure_hint("Return a displacement of 0 for a first direction of 0: add a constant to each divisor.")
def test_a_zero_direction_changes_nothing(server: Any) -> None:
    step, _ = server.step(server.init(P), torch.zeros(P, dtype=torch.float64))
    assert step.tolist() == [0.0] * P


@failure_hint("Keep everything that changes between rounds in the State dataclass.")
def test_a_restored_state_continues_identically(server: Any) -> None:
    state = run_rounds(server, 3)
    loaded = save_and_restore(state)
    assert torch.equal(server.step(state, g(7))[0], server.step(loaded, g(7))[0])


@failure_hint("Return a new state: no in-place operation on the argument.")
def test_the_input_state_is_not_modified(server: Any) -> None:
    state, direction = run_rounds(server, 2), g(5)
    before = copy.deepcopy(state)
    server.step(state, direction)
    assert torch.equal(direction, g(5))
    assert torch.equal(server.step(state, g(6))[0], server.step(before, g(6))[0])
