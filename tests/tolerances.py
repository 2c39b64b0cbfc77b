"""Tolerances with names, as numpy and torch have them and as pytest has them."""

from typing import TypedDict


class Within(TypedDict):
    """Of `torch.testing.assert_close` and `numpy.testing.assert_allclose`."""

    atol: float
    rtol: float


class Absolutely(TypedDict):
    """Of `pytest.approx`."""

    abs: float
