"""The share of the headroom that a method closes."""

import numpy as np
import pytest

from fedcohort.results.headroom import estimate_headroom_share


def test_the_ends_solve_fiellers_equation() -> None:
    rng = np.random.default_rng(0)
    oracle = rng.normal(10, 2, 10)
    method = 0.3 * oracle + rng.normal(0, 1, 10)
    share = estimate_headroom_share(method, oracle)
    assert share is not None
    assert share.share == pytest.approx(method.mean() / oracle.mean())
    for end in (share.low, share.high):
        residual = method - end * oracle
        assert abs(residual.mean()) / (residual.std(ddof=1) / np.sqrt(10)) == pytest.approx(2.262157, abs=1e-5)


def test_without_headroom_there_is_no_share() -> None:
    oracle = np.array([1.0, -1.0, 0.5])
    assert estimate_headroom_share(oracle, oracle) is None
    assert estimate_headroom_share(oracle + 10, oracle + 10, min_headroom=11) is None
    full_share = estimate_headroom_share(2 * (oracle + 10), oracle + 10)
    assert full_share is not None
    assert (full_share.share, full_share.low, full_share.high) == pytest.approx(
        (2, 2, 2), abs=1e-6
    )  # above 100 % is shown
