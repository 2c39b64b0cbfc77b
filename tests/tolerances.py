"""Types of keyword arguments for tolerances."""

from typing import TypedDict


class AllcloseTolerance(TypedDict):
    """Arguments of `torch.testing.assert_close` and `numpy.testing.assert_allclose`."""

    atol: float
    rtol: float


class ApproxTolerance(TypedDict):
    """Argument of `pytest.approx`."""

    abs: float
