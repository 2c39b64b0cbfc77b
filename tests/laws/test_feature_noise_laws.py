"""Every feature noise draws its levels once per run, and a client's noise does not depend on other clients."""

from typing import Any

import numpy as np
import pytest

from config_options import list_options, make_component
from failure_hints import failure_hint
from fedcohort.data.ragged import RaggedPositions
from fedcohort.data.row_hashes import hash_rows
from fedcohort.feature_noise.base import disturb_clients
from fedcohort.rng import Draws
from global_rng_guard import forbid_global_rng

K = 12


@pytest.fixture(params=list_options("feature_noise"))
def noise(request: pytest.FixtureRequest) -> Any:
    return make_component("feature_noise", request.param)


def images(n: int = 20) -> np.ndarray:
    return np.random.default_rng(4).random((n, 2, 9, 7)).astype(np.float32)


@failure_hint("Return one level for each client, from the Draws of the run.")
def test_levels_are_drawn_once_per_run(noise: Any) -> None:
    with forbid_global_rng():
        levels = noise.levels(Draws(0, K))
    assert (levels.shape, levels.dtype) == ((K,), np.float64)
    assert (levels >= 0).all()
    np.testing.assert_array_equal(levels, noise.levels(Draws(0, K, round=6)))
    assert not levels.any() or not np.array_equal(levels, noise.levels(Draws(1, K)))


@failure_hint("Return new arrays of the inputs' shape and dtype.")
def test_noisy_inputs_keep_shape_and_type_and_the_originals_are_unchanged(noise: Any) -> None:
    x = images()
    x.flags.writeable = False
    with forbid_global_rng():
        first, repeat = (noise.disturb(x, 0.8, np.random.default_rng(1)) for _ in range(2))
    assert (first.shape, first.dtype) == (x.shape, x.dtype)
    np.testing.assert_array_equal(first, repeat)
    assert np.isfinite(first).all()
    assert not np.array_equal(first, x) or not noise.levels(Draws(0, K)).any()


@failure_hint("Draw the noise of each client from its own generator.")
def test_a_clients_inputs_do_not_depend_on_the_other_clients_data(noise: Any) -> None:
    """Client 2 of six gets the same noise whether its neighbours have equally many samples or one."""
    inputs_by_neighbour = []
    for n_others in (5, 1):
        sizes = np.array([n_others, n_others, 6, n_others, n_others, n_others])
        start = int(sizes[:2].sum())
        train, val = (np.zeros((int(sizes.sum()), 2, 9, 7), dtype=np.float32) for _ in range(2))
        train[start : start + 6], val[start : start + 6] = images(12)[:6], images(12)[6:]
        parts = [(x, RaggedPositions.from_sizes(np.arange(len(x)), sizes)) for x in (train, val)]
        before = [x.copy() for x in (train, val)]
        levels, noise_facts = noise.levels(Draws(3, 6)), disturb_clients(noise, parts, seed=3)
        assert (noise_facts is None) == (not levels.any())
        if noise_facts is not None:
            np.testing.assert_array_equal(noise_facts.noise_levels, levels)
            rows = np.repeat(levels > 0, sizes)
            original_hashes = np.concatenate([hash_rows(x[rows]) for x in before])
            np.testing.assert_array_equal(np.sort(noise_facts.clean_row_hashes), np.sort(original_hashes))
        inputs_by_neighbour.append(np.concatenate([x[start : start + 6] for x in (train, val)]))
    np.testing.assert_array_equal(inputs_by_neighbour[0], inputs_by_neighbour[1])
