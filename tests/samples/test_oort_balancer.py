"""OortBalancer by hand: five mini-batches of ten, above a threshold where there are enough samples."""

from dataclasses import replace

import numpy as np
import pytest

from config_options import make_component
from fedcohort.samples.base import SampleRequest
from fedcohort.types import Population


def request(n: int) -> SampleRequest:
    losses = np.arange(n) / n
    return SampleRequest(0, n, 1.0, 0.0, 1.0, 5, min(10, n), losses, lambda purpose: np.random.default_rng(0))


def choose_rows(n: int, lt: float, p: float = 1.0) -> list[int]:
    samples = make_component("samples", "oort_balancer", p=p)
    rows: np.ndarray = samples.choose(replace(samples.init(Population(1, 6, 1, {})), threshold=lt), request(n))
    return [int(row) for row in rows]


@pytest.mark.parametrize(("n", "count"), [(100, 50), (51, 50), (50, 50), (30, 30), (7, 7)])
def test_the_number_of_samples_is_that_of_the_steps(n: int, count: int) -> None:
    assert len(choose_rows(n, 0.0)) == count


def test_samples_above_the_threshold_come_first() -> None:
    """Of 100 samples 30 are at .7 or above: they and 20 others; with p = .5 25 of either."""
    rows = choose_rows(100, 0.7)
    assert set(range(70, 100)) < set(rows)
    assert len([row for row in choose_rows(100, 0.7, p=0.5) if row >= 70]) == 25
