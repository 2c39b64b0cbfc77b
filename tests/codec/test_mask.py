"""Random masks."""

from typing import Any

import numpy as np
import pytest
import torch

from codec_harness import begin_round, draw_normal, make_generator_factory, make_layout
from config_options import make_component
from fedcohort.codec.wire import draw_seed, draw_sent_positions

FOUR = torch.tensor([1.0, 2.0, 3.0, 4.0])


def client_that_draws(rho: float, layout: Any, positions: list[int]) -> int:
    return next(
        k
        for k in range(1000)
        if draw_sent_positions(rho, layout, draw_seed(make_generator_factory(k)()))[0].tolist() == positions
    )


def test_a_masked_update_by_hand() -> None:
    # rho = .25 of 4 numbers is one of them; mask 0100 leaves (0, 2, 0, 0), not scaled
    layout, codec = make_layout((4,)), make_component("codec", "mask", rho=0.25)
    k = client_that_draws(0.25, layout, [1])
    assert codec.transmit(FOUR, layout, make_generator_factory(k)).tolist() == [0, 2, 0, 0]
    g = FOUR.clone()
    begin_round(codec, torch.zeros(4), layout, k).correct(g, torch.zeros(4))
    assert g.tolist() == [0, 2, 0, 0]


def test_the_bytes_of_a_masked_update() -> None:
    assert make_component("codec", "mask", rho=0.25).bytes_up(make_layout((40, 20), (40,))) == 0.25 * 840 * 4 + 8
    # one number at least of each tensor, and the nearest whole number of them
    assert make_component("codec", "mask", rho=0.1).bytes_up(make_layout((2,), (), (27,))) == 4 * (1 + 1 + 3) + 8


def test_every_coordinate_is_equally_likely() -> None:
    # 4,000 draws of 3 of 12: a count is 1,000 on average, sd sqrt(4000 * .25 * .75) = 27
    layout = make_layout((12,))
    counts = np.zeros(12)
    for k in range(4000):
        counts[draw_sent_positions(0.25, layout, draw_seed(make_generator_factory(k)()))[0]] += 1
    assert counts.sum() == 3 * 4000
    assert np.abs(counts - 1000).max() < 5 * 27


@pytest.mark.parametrize(("choice", "client"), [("sgd", {"momentum": 0.9}), ("adam", {})])
def test_only_masked_coordinates_are_trained(choice: str, client: dict[str, float]) -> None:
    layout, codec = make_layout((6, 4), (3,)), make_component("codec", "mask", rho=0.5)
    w, target = draw_normal(27, 1), draw_normal(27, 2)
    y = w.clone().requires_grad_()
    optimizer, correction = make_component("client", choice, **client).optimizer(y, 0.1), begin_round(codec, w, layout)
    for _ in range(5):
        y.grad = (y - target).detach()
        correction.correct(y.grad, y.detach())
        optimizer.step()
    delta = y.detach() - w
    assert torch.equal(codec.transmit(delta, layout, make_generator_factory()), delta)
    assert int((delta != 0).sum()) == 12 + 2  # round(1.5) = 2


def test_gradients_outside_the_mask_become_zero_even_if_not_finite() -> None:
    layout, codec = make_layout((4,)), make_component("codec", "mask", rho=0.25)
    k = client_that_draws(0.25, layout, [1])
    g = torch.tensor([float("nan"), 2.0, float("inf"), 4.0])
    begin_round(codec, torch.zeros(4), layout, k).correct(g, torch.zeros(4))
    assert g.tolist() == [0, 2, 0, 0]


def test_a_full_mask_equals_no_mask() -> None:
    assert torch.equal(
        make_component("codec", "mask", rho=1.0).transmit(FOUR, make_layout((4,)), make_generator_factory()), FOUR
    )
