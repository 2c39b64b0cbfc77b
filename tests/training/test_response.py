"""FedNova's a_i in closed forms, and updates under a constant gradient, which have this length."""

from typing import Any

import pytest
import torch

from config_options import make_component
from engine_harness import make_federation, make_network, make_task, make_trainer
from fedcohort.hook import HookResult
from fedcohort.training.response import GradientCoefficientNorms


def response(mu: float = 0.0, choice: str = "sgd", **client: Any) -> GradientCoefficientNorms:
    return GradientCoefficientNorms(
        make_component("client", choice, **client), make_component("regulariser", "prox", mu=mu).hooks
    )


@pytest.mark.parametrize("steps", [0, 1, 7])
def test_the_coefficient_norm_of_plain_sgd_is_the_number_of_steps(steps: int) -> None:
    assert response()(steps, 0.1) == steps


# [K - rho (1 - rho^K) / (1 - rho)] / (1 - rho), rho = .9: the buffers are 1, 1.9, 2.71, 3.439, 4.0951; their sums
@pytest.mark.parametrize(("steps", "norm"), [(0, 0.0), (1, 1.0), (2, 2.9), (3, 5.61), (4, 9.049), (5, 13.1441)])
def test_the_coefficient_norm_under_momentum_by_hand(steps: int, norm: float) -> None:
    assert response(momentum=0.9)(steps, 0.1) == pytest.approx(norm, abs=1e-12)


# (1 - (1 - lr mu)^K) / (lr mu), lr = .1, mu = 1: 1, then 1 + .9, then 1.9 + .81
@pytest.mark.parametrize(("steps", "norm"), [(0, 0.0), (1, 1.0), (2, 1.9), (3, 2.71)])
def test_the_coefficient_norm_with_a_proximal_term_by_hand(steps: int, norm: float) -> None:
    assert response(mu=1.0)(steps, 0.1) == pytest.approx(norm, abs=1e-12)


def test_momentum_includes_the_gradient_of_the_proximal_term() -> None:
    # rho = .9, mu = 1, lr = .1: g = 1, .9, .72 (x = 0, -.1, -.28), buffers 1, 1.8, 2.34: 5.14. Added after the buffer
    # it would be 5.23; FedNova's own code counts both twice: 7.417.
    assert response(mu=1.0, momentum=0.9)(3, 0.1) == pytest.approx(5.14, abs=1e-12)


def test_the_coefficient_norm_depends_on_the_learning_rate_of_the_round() -> None:
    # lr mu = .2: 1 + .8 + .64; back at .1 it is what it was
    response_function = response(mu=1.0)
    assert [response_function(3, lr) for lr in (0.1, 0.2, 0.1)] == pytest.approx([2.71, 2.44, 2.71], abs=1e-12)


def test_coefficient_norms_are_right_for_any_order_of_step_counts() -> None:
    response_function = response(momentum=0.9)
    assert [response_function(k, 0.1) for k in (2, 5, 3, 5, 0)] == pytest.approx(
        [2.9, 13.1441, 5.61, 13.1441, 0], abs=1e-12
    )


@pytest.mark.parametrize("more_options", [{"weight_decay": 0.5}, {"clip": 0.25}])
def test_weight_decay_and_clipping_are_part_of_the_gradient(more_options: dict[str, Any]) -> None:
    assert response(momentum=0.9, **more_options)(3, 0.1) == pytest.approx(5.61, abs=1e-12)
    assert response(**more_options)(3, 0.1) == pytest.approx(3, abs=1e-12)


@pytest.mark.parametrize("mu", [0.0, 1.0])
def test_the_coefficient_norm_of_adam_is_the_number_of_steps(mu: float) -> None:
    assert response(mu=mu, choice="adam")(7, 0.001) == 7.0


class Constant:
    """A client half that puts a constant in place of every gradient."""

    downloads = uploads = remembers = ()

    def __init__(self, slope: torch.Tensor) -> None:
        self.slope = slope

    def begin(self, *arguments: Any) -> "Constant":
        return self

    def correct(self, g: torch.Tensor, y: torch.Tensor) -> None:
        g.copy_(self.slope)

    def finish(self, *arguments: Any) -> HookResult:
        return HookResult()


@pytest.mark.parametrize("options", [{}, {"momentum": 0.9}, {"mu": 0.3}, {"momentum": 0.9, "mu": 0.3}])
def test_the_coefficient_norm_predicts_the_update_of_a_constant_gradient(options: dict[str, Any]) -> None:
    # The engine itself, 9 mini-batches: y - w_t = -lr a g
    mu = options.pop("mu", 0.0)
    regularisers = make_component("regulariser", "prox", mu=mu).hooks
    network = make_network(torch.float64)
    slope = torch.linspace(-1, 1, sum(p.numel() for p in network.parameters()), dtype=torch.float64)
    hooks = (Constant(slope), *regularisers)
    trainer = make_trainer(make_federation(dtype=torch.float64), network, hooks=hooks, batch=9, **options)
    trainer.response = GradientCoefficientNorms(trainer.client, regularisers)
    update = trainer.train(make_task(0, units=3), {})
    assert update.steps == 9
    assert update.response == pytest.approx(response(mu=mu, **options)(9, 0.1))
    torch.testing.assert_close(update.delta, -0.1 * update.response * slope, atol=1e-12, rtol=0)


class Drawing(Constant):
    """A regulariser that draws a random number at the begin of each job."""

    def begin(self, w: torch.Tensor, broadcast: Any, stored: Any, job: Any) -> "Drawing":
        return Drawing(torch.full_like(w, 1.0 + job.rng("dither").random()))


def test_a_random_regulariser_gives_a_repeatable_coefficient_norm() -> None:
    client = make_component("client", "sgd")
    first, second = (GradientCoefficientNorms(client, (Drawing(torch.ones(1)),))(3, 0.1) for _ in range(2))
    assert 3 < first < 6
    assert first == second
