"""How many samples FedBalancer trains on, by hand: n = 10, batches of 2 that take a second, E = 5."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from config_options import make_component
from fedcohort.samples.base import SampleRequest
from fedcohort.types import Population

LOSSES = np.arange(1, 11) / 10
POPULATION = Population(1, 6, 1, {"n_train": np.array([10])})
FAST = 2.0  # a threshold that exceeds all clients' values


def request(deadline: float, travel_s: float = 0.0, batch: int = 2, epoch: float = 5.0) -> SampleRequest:
    return SampleRequest(0, 10, deadline, travel_s, epoch, 5, batch, LOSSES, lambda purpose: np.random.default_rng(0))


def choose_rows(samples: Any, sample_request: SampleRequest, lt: float = FAST) -> list[int]:
    rows: np.ndarray = samples.choose(replace(samples.init(POPULATION), threshold=lt), sample_request)
    return [int(row) for row in rows]


@pytest.mark.parametrize(
    ("deadline", "fit", "fit_with_travel"), [(25, 10, 8), (24.9, 8, 6), (12, 4, 2), (4.9, 1, 1), (50, 10, 10)]
)
def test_the_number_of_samples_that_fit(deadline: float, fit: int, fit_with_travel: int) -> None:
    """24.9 s are 4 whole batches of 5 s; 4.9 s none, and one sample is trained on. Travel of 5 s leaves less."""
    samples = make_component("samples", "fedbalancer")
    assert len(choose_rows(samples, request(deadline))) == fit
    assert len(choose_rows(samples, request(deadline, travel_s=5.0))) == fit_with_travel


def test_as_released_counts_parts_of_batches_and_no_travel() -> None:
    """12 s are 2.4 batches of 5 s, 4.8 samples."""
    samples = make_component("samples", "fedbalancer", as_released=True)
    assert len(choose_rows(samples, request(12))) == len(choose_rows(samples, request(12, travel_s=5.0))) == 4
    assert len(choose_rows(samples, request(12.5))) == 5


def test_samples_above_the_threshold_are_used_even_if_they_do_not_fit() -> None:
    """Five are above .55; none of them fits into 4.9 s, four into 12, eight into 24.9: three more."""
    samples = make_component("samples", "fedbalancer")
    rows_above = [5, 6, 7, 8, 9]
    assert choose_rows(samples, request(4.9), 0.55) == choose_rows(samples, request(12), 0.55) == rows_above
    selected = choose_rows(samples, request(24.9), 0.55)
    assert len(selected) == 8
    assert set(rows_above) < set(selected)


def test_all_samples_are_used_if_they_fit() -> None:
    samples = make_component("samples", "fedbalancer", p=0.5)
    assert choose_rows(samples, request(25), 0.55) == list(range(10))


def test_a_share_of_easy_samples_is_added() -> None:
    rows = choose_rows(make_component("samples", "fedbalancer", p=0.75), request(4.9), 0.55)
    assert len([row for row in rows if row < 5]) == 1
    assert len(rows) == 5


def test_without_a_deadline_or_duration_all_samples_fit() -> None:
    samples = make_component("samples", "fedbalancer")
    assert len(choose_rows(samples, request(np.inf))) == len(choose_rows(samples, request(1.0, epoch=0.0))) == 10


def test_rounding_errors_do_not_reduce_the_number_of_batches() -> None:
    """A batch of .1 s: 2.5 s are five rounds of five batches, though 2.5 / (5 x .1) is 4.999999999999999 or so."""
    samples = make_component("samples", "fedbalancer")
    for k in range(1, 5):
        assert len(choose_rows(samples, request(0.5 * k, epoch=0.5))) == 2 * k


def test_a_loss_at_the_threshold_counts_as_above_it() -> None:
    """Of the losses .1 to 1 the two at .9 and 1 reach the threshold .9, and nothing fits in 4.9 s."""
    assert choose_rows(make_component("samples", "fedbalancer"), request(4.9), 0.9) == [8, 9]
