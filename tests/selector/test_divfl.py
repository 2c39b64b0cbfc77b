"""DivFL: greedy cohorts by hand, new clients first, and cluster weights."""

import numpy as np
import pytest

from config_options import make_component
from fedcohort.errors import OptionError
from fedcohort.selector.divfl import choose_facilities
from fedcohort.types import Population
from selector_harness import make_context, make_outcome

LINE = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [10.0, 0.0], [11.0, 0.0]]


def distances(rows: list[list[float]]) -> np.ndarray:
    U = np.array(rows)
    return np.asarray(np.linalg.norm(U[:, None] - U, axis=2))


@pytest.mark.parametrize(
    ("rows", "count", "order", "sizes"),
    [
        (LINE, 2, [1, 3], [3, 2]),
        (LINE, 3, [1, 3, 0], [1, 2, 2]),
        ([[0.0, 0], [0, 0], [0, 0], [3, 0], [9, 0]], 2, [0, 4], [4, 1]),
        (LINE[:2], 0, [], []),
        ([[0.0, 0.0]] * 3, 2, [0, 1], [3, 0]),
    ],
)
def test_facilities_are_chosen_greedily_by_hand(
    rows: list[list[float]], count: int, order: list[int], sizes: list[int]
) -> None:
    """Client 1 has a total of 1 + 0 + 2^.5 + 9 + 10, the least; with client 3 it is 1 + 2^.5 + 1.

    Of three clients at 0, one at 3 and one at 9, the first is at 0 with a total of 12, and the one at 9 leaves 3.
    Squared distances would choose those at 3 and 9.
    """
    chosen, gamma = choose_facilities(distances(rows), count)
    assert chosen.tolist() == order
    assert gamma.tolist() == sizes


def test_new_clients_come_first_and_then_the_greedy_cohort() -> None:
    selector = make_component("selector", "divfl", tie="id", aggregation="cluster")
    state = selector.init(Population(5, 2, 2, {}))
    for round, expected in ((0, [0, 1]), (1, [2, 3])):
        selection, state = selector.select(state, make_context(round=round), {})
        assert selection.clients.tolist() == expected
        advice, state = selector.observe(state, make_outcome(round, expected, update=[LINE[k] for k in expected]))
        assert advice is None
    selection, state = selector.select(state, make_context(round=2), {})
    assert selection.clients.tolist() == [1, 4]  # 4 never trained, so that weights of 1 would leave it out
    advice, state = selector.observe(state, make_outcome(2, [1, 4], update=[LINE[1], LINE[4]]))
    assert advice is None
    np.testing.assert_allclose(state.distances, distances(LINE), rtol=1e-6)
    selection, state = selector.select(state, make_context(round=3), {})
    assert selection.clients.tolist() == [1, 3]
    advice, _ = selector.observe(state, make_outcome(3, [1, 3], update=[LINE[1], LINE[3]]))
    assert advice.weights.tolist() == [3, 2]


def test_a_client_that_is_nearest_to_none_weighs_nothing() -> None:
    """Of three equal updates, all are nearest to the first one of the cohort."""
    selector = make_component("selector", "divfl", tie="id", aggregation="cluster")
    state = selector.init(Population(3, 2, 2, {}))
    assert selector.observe(state, make_outcome(0, [0], update=[[2.0]]))[0] is None  # nothing was selected
    state = selector.observe(state, make_outcome(0, [0, 1, 2], update=[[2.0]] * 3))[1]
    selection, state = selector.select(state, make_context(n_clients=3, cohort=2), {})
    assert selection.clients.tolist() == [0, 1]
    advice, _ = selector.observe(state, make_outcome(1, [0, 1], update=[[2.0]] * 2))
    assert advice.weights.tolist() == [3, 0]


def test_objectives_that_differ_by_rounding_are_equal() -> None:
    """Totals of 1e6 that differ by 5e-10 of it are equal, and the first wins; by 5e-9 of it, the smaller one."""
    for difference, first in ((5e-4, 0), (5e-3, 1)):
        assert choose_facilities(np.array([[1e6 + difference, 1e6], [0.0, 0.0]]), 1)[0].tolist() == [first]


def test_memory_is_that_of_updates_and_distances() -> None:
    """10 clients with 100 parameters: 4 + 4 + 8 bytes of each update's number, and 8 + 8 + 8 of each distance."""
    assert make_component("selector", "divfl").memory_bytes(10, 100) == 16 * 1000 + 24 * 100


def test_an_invalid_update_leaves_the_stored_one() -> None:
    selector = make_component("selector", "divfl")
    state = selector.observe(selector.init(Population(3, 2, 2, {})), make_outcome(0, [0, 1], update=[[1.0], [4.0]]))[1]
    after = selector.observe(state, make_outcome(1, [1, 2], update=[[np.nan], [1e300]]))[1]
    np.testing.assert_array_equal(after.updates, [[1.0], [4.0], [0.0]])
    assert after.has_trained.all()
    assert after.distances[0, 1] == 3


def test_ties_are_broken_at_random() -> None:
    selector = make_component("selector", "divfl")
    state = selector.init(Population(9, 2, 2, {}))
    drawn = {tuple(selector.select(state, make_context(n_clients=9, seed=seed), {})[0].clients) for seed in range(9)}
    assert len(drawn) > 4


def test_a_population_above_the_limit_is_rejected() -> None:
    make_component("selector", "divfl", limit=11).init(Population(11, 2, 2, {}))
    with pytest.raises(OptionError, match="limit must be an integer of at least 11"):
        make_component("selector", "divfl", limit=10).init(Population(11, 2, 2, {}))
