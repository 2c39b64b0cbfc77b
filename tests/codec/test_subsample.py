"""Subsampled updates."""

import pytest
import torch

from codec_harness import make_generator_factory, make_layout
from config_options import make_component
from fedcohort.codec.wire import draw_seed, draw_sent_positions

FOUR = torch.tensor([1.0, 2.0, 3.0, 4.0])


def test_a_subsampled_update_by_hand() -> None:
    # rho = .25 of 4 numbers is one of them, times 4: mask 0100 gives (0, 8, 0, 0)
    layout = make_layout((4,))
    k = next(
        k
        for k in range(1000)
        if draw_sent_positions(0.25, layout, draw_seed(make_generator_factory(k)()))[0].tolist() == [1]
    )
    assert make_component("codec", "subsample", rho=0.25).transmit(
        FOUR, layout, make_generator_factory(k)
    ).tolist() == [
        0,
        8,
        0,
        0,
    ]


@pytest.mark.parametrize("rho", [0.25, 0.7])
def test_subsampling_is_unbiased(rho: float) -> None:
    # 2,000 copies of each of 4 numbers: a mean of copies is the number, give or take sqrt((1 / rho - 1) / 2000) of it
    codec = make_component("codec", "subsample", rho=rho)
    received = codec.transmit(FOUR.repeat(2000), make_layout((8000,)), make_generator_factory()).view(2000, 4)
    assert ((received.mean(0) - FOUR).abs() < 5 * ((1 / rho - 1) / 2000) ** 0.5 * FOUR).all()
    assert ((received == 0) | ((received * rho - FOUR).abs() < 1e-5)).all()


def test_a_rounded_share_is_scaled_by_what_is_sent() -> None:
    # .4 of 4 is 2 numbers, so that twice the number and not 2.5 times it is right on average
    received = make_component("codec", "subsample", rho=0.4).transmit(FOUR, make_layout((4,)), make_generator_factory())
    assert ((received == 0) | (received == 2 * FOUR)).all()
    assert int((received != 0).sum()) == 2


def test_the_bytes_of_a_subsampled_update() -> None:
    assert make_component("codec", "subsample", rho=0.25).bytes_up(make_layout((40, 20), (40,))) == 0.25 * 840 * 4 + 8


def test_training_is_unchanged() -> None:
    codec = make_component("codec", "subsample")
    assert (codec.hooks, codec.requirements) == ((), frozenset())
    assert torch.equal(
        make_component("codec", "subsample", rho=1.0).transmit(FOUR, make_layout((4,)), make_generator_factory()), FOUR
    )
