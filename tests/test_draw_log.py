"""The log of draws: its fields for each draw, and its limits for large populations."""

import numpy as np
import pytest

from fedcohort.draw_log import LOGGED_SAMPLE_SIZE, MAX_LOGGED_CLIENTS, DrawLog, LoggedGenerator, list_logged_clients
from fedcohort.rng import new_generator
from fedcohort.selector.base import draw, draw_successively, top


def make_logged_generator(n_clients: int) -> LoggedGenerator:
    rng = LoggedGenerator(new_generator(3, "draw"), list_logged_clients(0, n_clients))
    rng.start_selection()
    return rng


def test_a_draw_is_logged_in_its_order_with_all_weights() -> None:
    weights, available = np.array([4.0, 0.0, 2.0, 9.0, 1.0]), np.array([0, 1, 2, 4])
    rng = make_logged_generator(5)
    clients = draw_successively(weights, available, 2, rng)
    (entry,) = rng.finish().draws
    assert np.array_equal(clients, draw_successively(weights, available, 2, new_generator(3, "draw")))
    assert entry.clients.tolist() == clients.tolist()
    assert entry.weights.tolist() == weights[clients].tolist()
    assert (entry.pool_size, entry.n_zero_weights, entry.weight_sum) == (4, 1, 7.0)
    assert entry.pool.tolist() == [0, 1, 2, 4]
    assert entry.pool_weights.tolist() == [4.0, 0.0, 2.0, 1.0]


def test_invalid_weights_count_as_zero() -> None:
    """`draw` treats NaN and infinity as weight zero, and the log must have weight zero, too."""
    rng = make_logged_generator(4)
    draw(np.array([np.nan, np.inf, 1.0, 2.0]), np.arange(4), 2, rng)
    (entry,) = rng.finish().draws
    assert entry.pool_weights.tolist() == [0.0, 0.0, 1.0, 2.0]
    assert (entry.n_zero_weights, entry.weight_sum) == (2, 3.0)


@pytest.mark.parametrize(("tie_rule", "weights"), [("random", [0, 1, 1, np.inf]), ("id", [0, np.inf, 0, np.inf])])
def test_the_highest_scores_are_a_draw_with_infinite_weights(tie_rule: str, weights: list[float]) -> None:
    rng = make_logged_generator(4)
    clients = top(np.array([0.0, 1.0, 1.0, 2.0]), np.arange(4), 2, rng, tie_rule)
    (entry,) = rng.finish().draws
    assert entry.pool_weights.tolist() == weights
    assert np.array_equal(np.sort(entry.clients), clients)


def test_random_numbers_outside_of_draws_are_noted() -> None:
    for is_early in (True, False):
        rng = make_logged_generator(4)
        if is_early:
            rng.random()
        draw(np.ones(4), np.arange(4), 2, rng)
        if not is_early:
            rng.integers(7)
        assert rng.finish().has_other_randomness
    assert not make_logged_generator(4).finish().has_other_randomness


def test_random_numbers_of_the_queries_do_not_count() -> None:
    rng = LoggedGenerator(new_generator(3, "draw"), np.arange(4))
    rng.random()
    draw(np.ones(4), np.arange(4), 2, rng)
    rng.start_selection()
    log = rng.finish()
    assert not log.has_other_randomness
    assert [entry.is_query for entry in log.draws] == [True]


def test_a_large_population_has_the_weights_of_a_sample() -> None:
    n_clients, weights = MAX_LOGGED_CLIENTS + 1, np.arange(MAX_LOGGED_CLIENTS + 1.0)
    rng = make_logged_generator(n_clients)
    clients = draw_successively(weights, np.arange(n_clients), 20, rng)
    (entry,) = rng.finish().draws
    sample = list_logged_clients(0, n_clients)
    assert len(sample) == len(np.unique(sample)) == LOGGED_SAMPLE_SIZE
    assert np.array_equal(entry.pool, sample)
    assert np.array_equal(entry.pool_weights, weights[sample])
    assert np.array_equal(entry.weights, weights[clients])
    assert (entry.pool_size, entry.weight_sum) == (n_clients, weights.sum())
    assert len(list_logged_clients(0, MAX_LOGGED_CLIENTS)) == MAX_LOGGED_CLIENTS
    assert not np.array_equal(sample, list_logged_clients(1, n_clients))


def test_a_round_has_a_limited_number_of_weights() -> None:
    """The second draw of 6,000 of 10,000 weights has those of its drawn clients only."""
    rng = make_logged_generator(6_000)
    for _ in range(2):
        draw(np.ones(6_000), np.arange(6_000), 5, rng)
    first, second = rng.finish().draws
    assert (len(first.pool), len(second.pool)) == (6_000, 0)
    assert (len(second.weights), second.pool_size, second.weight_sum) == (5, 6_000, 6_000.0)


def test_logs_are_joined() -> None:
    rng = make_logged_generator(4)
    draw(np.ones(4), np.arange(4), 2, rng)
    log = rng.finish()
    joined = DrawLog().append_log(log).append_log(log)
    assert [entry.is_dependent for entry in joined.draws] == [False, True]
    assert not joined.has_other_randomness
    assert joined.logged_ids.tolist() == [0, 1, 2, 3]
    assert DrawLog(has_other_randomness=True).append_log(log).has_other_randomness
