"""Quantised and rotated updates."""

import numpy as np
import pytest
import torch

from case_loop import for_all
from codec_harness import draw_normal, make_generator_factory, make_layout
from config_options import make_component
from fedcohort.codec.quant import dequantise_levels, hadamard_transform, pack_bits, quantise, unpack_bits

UNIFORM_GRID = (np.arange(1000) + 0.5) / 1000  # u in [0, 1), so that shares of 1/1000 are exact


def dequantise_over_grid(h: list[float], bits: int) -> np.ndarray:
    """What becomes of h under each u, [1000, len(h)]."""
    rows = [dequantise_levels(*quantise(np.array(h), bits, np.full(len(h), u)), bits) for u in UNIFORM_GRID]
    return np.stack(rows)


def test_quantising_to_one_bit_by_hand() -> None:
    # on [-1, 3]: P(max) = (h + 1) / 4, mean h, variance (h - lo)(hi - h)
    h = [-1.0, 0.0, 0.5, 3.0]
    received = dequantise_over_grid(h, 1)
    assert (received == 3).mean(0).tolist() == [0, 0.25, 0.375, 1]
    assert received.mean(0).tolist() == pytest.approx(h, abs=1e-12)
    assert received.var(0).tolist() == pytest.approx([0, 3, 3.75, 0], abs=1e-12)


def test_quantising_to_two_bits_by_hand() -> None:
    # levels -1, 1/3, 5/3, 3: 0 is 3/4 of a step above -1
    received = dequantise_over_grid([-1.0, 0.0, 3.0], 2)[:, 1]
    assert received.max() == pytest.approx(1 / 3)
    assert (received > 0).mean() == 0.75
    assert received.mean() == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("bits", [1, 2, 5, 8, 16])
def test_the_error_is_at_most_one_quantisation_step(bits: int) -> None:
    layout, delta = make_layout((30, 20)), draw_normal(600)
    received = make_component("codec", "quant", bits=bits).transmit(delta, layout, make_generator_factory())
    step = float(delta.max() - delta.min()) / (2**bits - 1)
    assert float((received - delta).abs().max()) <= step * (1 + 1e-3)
    assert len(received.unique()) <= 2**bits


@pytest.mark.parametrize("rotate", [False, True])
@pytest.mark.parametrize("value", [0.0, -0.3, 7.0])
def test_a_constant_tensor_is_exact(rotate: bool, value: float) -> None:
    # rotated, a tensor of one number is still constant; of more, only zeros are
    n = 1 if rotate and value else 5
    received = make_component("codec", "quant", rotate=rotate).transmit(
        torch.full((n,), value), make_layout((n,)), make_generator_factory()
    )
    assert received.tolist() == pytest.approx([value] * n, abs=1e-7)


def test_each_tensor_has_its_own_range() -> None:
    layout = make_layout((2,), (2,))
    delta = torch.tensor([0.0, 1.0, 0.0, 1000.0])
    assert make_component("codec", "quant", bits=1).transmit(delta, layout, make_generator_factory()).tolist() == [
        0,
        1,
        0,
        1000,
    ]


@for_all("bits", range(1, 17))
def test_packing_is_lossless(bits: int) -> None:
    codes = np.random.default_rng(bits).integers(0, 2**bits, 37).astype(np.uint16)
    string = pack_bits(codes, bits)
    assert string.nbytes == -(-37 * bits // 8)
    np.testing.assert_array_equal(unpack_bits(string, bits, 37), codes)


def test_packed_bits_by_hand() -> None:
    # 1, 2, 3 in two bits each, lowest first: 10 01 11 is 1 + 2^3 + 2^4 + 2^5
    assert pack_bits(np.array([1, 2, 3], dtype=np.uint16), 2).tolist() == [1 + 8 + 16 + 32]


def test_the_bytes_of_a_quantised_update() -> None:
    layout = make_layout((30, 20), (7,))
    assert make_component("codec", "quant", bits=3).bytes_up(layout) == -(-607 * 3 // 8) + 2 * 8
    assert make_component("codec", "quant", bits=8, rotate=True).bytes_up(layout) == 1024 + 8 + 2 * 8 + 8
    assert make_component("codec", "quant", bits=8, rho=0.5).bytes_up(layout) == 300 + 4 + 2 * 8 + 8  # round(3.5) = 4


def test_the_hadamard_transform_by_hand() -> None:
    assert hadamard_transform(np.array([1.0, 0, 0, 0])).tolist() == [0.5] * 4
    kron = np.ones((1, 1))
    for _ in range(3):
        kron = np.kron(np.array([[1.0, 1.0], [1.0, -1.0]]) / np.sqrt(2), kron)
    x = np.random.default_rng(0).normal(size=8)
    np.testing.assert_allclose(hadamard_transform(x), kron @ x, atol=1e-14)
    np.testing.assert_allclose(hadamard_transform(hadamard_transform(x)), x, atol=1e-14)
    assert hadamard_transform(np.array([3.0])).tolist() == [3]


def test_a_rotation_without_quantisation_is_inverted() -> None:
    # 16 bits: an error of at most a step, 2^-16 of the range, in each rotated number
    layout, delta = make_layout((30, 20), (), (5,)), draw_normal(606)
    received = make_component("codec", "quant", bits=16, rotate=True).transmit(delta, layout, make_generator_factory())
    assert float((received - delta).norm()) < 606**0.5 * 8 / 2**16


def test_a_rotation_shortens_the_range_of_a_spike() -> None:
    # one number of 1024 is 32, the others are small: rotated each is +-1 and something
    delta = draw_normal(1024) / 10
    delta[5] = 32.0
    plain, rotated = (
        make_component("codec", "quant", bits=4, rotate=rotate).transmit(
            delta, make_layout((1024,)), make_generator_factory()
        )
        for rotate in (False, True)
    )
    assert float((rotated - delta).norm()) < float((plain - delta).norm()) / 5


@pytest.mark.parametrize("options", [{}, {"rotate": True}, {"rho": 0.5}, {"rotate": True, "rho": 0.5}], ids=str)
def test_quantisation_is_unbiased(options: dict[str, bool | float]) -> None:
    layout, delta, n = make_layout((5,), (3,)), torch.tensor([1.0, -2, 0.5, 0, 3, -1, 2, 0.25]), 400
    codec = make_component("codec", "quant", bits=2, **options)
    received = torch.stack([codec.transmit(delta, layout, make_generator_factory(k)) for k in range(n)])
    assert ((received.mean(0) - delta).abs() <= 5 * received.std(0) / n**0.5 + 1e-6).all()
