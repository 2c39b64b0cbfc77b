"""The draws in a line of the journal: they are read back unchanged, and their size is limited."""

import json
from dataclasses import replace

import numpy as np
import pytest

from fedcohort.draw_log import DrawLog, LoggedGenerator, list_logged_clients
from fedcohort.record.logged_draws import decode_draws, encode_draws
from fedcohort.rng import new_generator
from fedcohort.selector.base import draw, top

MAX_BYTES = 10_500  # of a draw of 100 clients: 5,400 of a sample of 1,000 weights, and 45 of each client


def draws_of(n_clients: int, n_drawn: int, n_draws: int = 1) -> DrawLog:
    rng = LoggedGenerator(new_generator(0, "draw"), list_logged_clients(0, n_clients))
    draw(np.ones(n_clients), np.arange(n_clients), n_drawn, rng)
    rng.start_selection()
    for seed in range(n_draws):
        weights = np.random.default_rng(seed).random(n_clients)
        draw(weights, np.arange(1, n_clients), n_drawn, rng)
        top(weights, np.arange(1, n_clients), n_drawn, rng)
    rng.random()
    return rng.finish()


@pytest.mark.parametrize("n_clients", [7, 10_000, 10_001])
def test_draws_are_read_back_unchanged(n_clients: int) -> None:
    log = draws_of(n_clients, 3)
    decoded = decode_draws(json.loads(json.dumps(encode_draws(log))), list_logged_clients(0, n_clients))
    assert decoded.has_other_randomness
    assert len(decoded.draws) == len(log.draws) == 3
    for entry, logged_entry in zip(decoded.draws, log.draws, strict=True):
        expected = replace(logged_entry, pool_weights=logged_entry.pool_weights.astype(np.float32).astype(float))
        assert {name: np.asarray(value).tolist() for name, value in vars(entry).items()} == {
            name: np.asarray(value).tolist() for name, value in vars(expected).items()
        }


@pytest.mark.parametrize("n_draws", [1, 20])
def test_the_size_is_limited_at_100_000_clients(n_draws: int) -> None:
    """After 10,000 weights a draw has those of its drawn clients only."""
    size = len(json.dumps(encode_draws(draws_of(100_000, 100, n_draws))))
    assert size < 10 * MAX_BYTES + 2 * n_draws * 100 * 45
    if n_draws == 1:
        assert size < 3 * MAX_BYTES


def test_weights_beyond_single_precision_stay_positive_and_finite() -> None:
    """A client of the weight 1e-300 can be drawn, one of the weight zero is drawn last only."""
    weights = np.array([0.0, 1e-300, 1.0, 1e300])
    rng = LoggedGenerator(new_generator(0, "draw"), np.arange(4))
    rng.start_selection()
    draw(weights, np.arange(4), 1, rng)
    (entry,) = decode_draws(encode_draws(rng.finish()), np.arange(4)).draws
    assert (entry.pool_weights > 0).tolist() == [False, True, True, True]
    assert np.isfinite(entry.pool_weights).all()
    assert entry.weights.tolist() == [1e300]
