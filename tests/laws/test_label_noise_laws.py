"""Every label noise has rates in [0, 1], and a client's flips do not depend on the other clients."""

from typing import Any

import numpy as np
import pytest

from config_options import list_options, make_component
from failure_hints import failure_hint
from fedcohort.data.ragged import RaggedPositions
from fedcohort.rng import Draws, new_generator
from fedcohort.startup.assign import _flip_labels
from global_rng_guard import forbid_global_rng
from optional_values import not_none

K, C = 40, 7
LABELS = np.arange(5000) % C


@pytest.fixture(params=list_options("label_noise"))
def noise(request: pytest.FixtureRequest) -> Any:
    return make_component("label_noise", request.param)


@failure_hint("Return one rate in [0, 1] for each client, drawn from `draws.draws_of_run()`.")
def test_rates_are_probabilities_drawn_once_per_run(noise: Any) -> None:
    with forbid_global_rng():
        rates = noise.rates(Draws(0, K))
    assert rates.shape == (K,)
    assert rates.dtype == np.float64
    assert ((rates >= 0) & (rates <= 1)).all()
    np.testing.assert_array_equal(rates, noise.rates(Draws(0, K, round=6)))
    if rates.any():
        assert not np.array_equal(rates, noise.rates(Draws(1, K)))


@failure_hint("Flip each label with the client's rate, to another class.")
def test_the_share_of_wrong_labels_is_the_rate(noise: Any) -> None:
    """All partners are other classes by default; 4.5 standard errors."""
    labels = LABELS.copy()
    labels.flags.writeable = False
    for rate in (0.0, 0.2, 0.9, 1.0):
        noisy = noise.flip(labels, rate, C, np.random.default_rng(1))
        assert (noisy.dtype, noisy.min(), noisy.max()) == (np.int64, 0, C - 1)
        error = np.sqrt(rate * (1 - rate) / len(labels))
        assert abs((noisy != labels).mean() - rate) <= 4.5 * error


@failure_hint("Compare one uniform draw for each sample with the rate, so that a higher rate adds flips only.")
def test_a_higher_rate_keeps_the_flips_of_a_lower_one(noise: Any) -> None:
    low_rate, high_rate = (noise.flip(LABELS, rate, C, np.random.default_rng(1)) for rate in (0.1, 0.5))
    wrong = low_rate != LABELS
    assert wrong.any()
    np.testing.assert_array_equal(high_rate[wrong], low_rate[wrong])


@failure_hint("Flip nothing where there is one class only.")
def test_labels_of_a_single_class_are_not_flipped(noise: Any) -> None:
    labels = np.zeros(20, dtype=np.int64)
    assert not noise.flip(labels, 1.0, 1, np.random.default_rng(0)).any()


@failure_hint("Draw the flips of each client from its own generator.")
def test_the_flips_of_a_client_do_not_depend_on_the_others(noise: Any) -> None:
    parts = RaggedPositions.from_sizes(np.arange(600), np.full(3, 200))
    true_y, rates = np.arange(600) % C, np.array([0.0, 0.5, 0.0])
    client_labels = not_none(_flip_labels(noise, parts, true_y, np.array([0.9, 0.5, 0.1]), C, seed=2))[200:400]
    np.testing.assert_array_equal(
        not_none(_flip_labels(noise, parts, true_y, rates, C, seed=2))[200:400], client_labels
    )
    expected = noise.flip(true_y[200:400], 0.5, C, new_generator(2, "label_flip", client=1))
    np.testing.assert_array_equal(client_labels, expected)
