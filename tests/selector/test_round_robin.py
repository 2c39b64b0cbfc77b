"""Round robin: laps by hand, and no client is more than one selection ahead of another."""

import numpy as np

from fedcohort.selector.round_robin import RoundRobin
from selector_harness import World, list_cohorts, play_rounds


def turns(n_clients: int, cohort: int, rounds: int, tie: str = "id") -> tuple[list[list[int]], list[list[int]]]:
    steps = play_rounds(RoundRobin(tie), World(n_clients, cohort), rounds)
    return list_cohorts(steps), [step.after.R.tolist() for step in steps]


def test_five_clients_two_per_round() -> None:
    """Round 2 ends the first lap with 4 and begins the second with 0."""
    chosen, R = turns(5, 2, 5)
    assert chosen == [[0, 1], [2, 3], [0, 4], [1, 2], [3, 4]]
    assert R[-1] == [2] * 5


def test_five_clients_three_per_round() -> None:
    chosen, R = turns(5, 3, 4)
    assert chosen == [[0, 1, 2], [0, 3, 4], [1, 2, 3], [0, 1, 4]]
    assert R[-1] == [3, 3, 2, 2, 2]


def test_no_client_is_two_turns_ahead() -> None:
    for n_clients, cohort in ((5, 2), (5, 3), (7, 7), (12, 5)):
        for R in turns(n_clients, cohort, 30, "random")[1]:
            assert max(R) - min(R) <= 1


def test_random_ties_mix_the_laps() -> None:
    laps = turns(12, 3, 40, "random")[0]
    assert len({tuple(c) for c in laps}) > 4, "with id ties there are only four cohorts"


def test_a_client_that_fails_has_had_its_turn() -> None:
    world = World(6, 2, find_failing=lambda t, cohort: cohort)
    assert list_cohorts(play_rounds(RoundRobin("id"), world, 3)) == [[0, 1], [2, 3], [4, 5]]


def test_only_available_clients_are_compared() -> None:
    """Client 5 never shows up; the others go on, and it comes first when it does."""
    world = World(6, 2, available=lambda t: range(5 if t < 10 else 6))
    steps = play_rounds(RoundRobin("id"), world, 11)
    assert steps[9].after.R.tolist() == [4, 4, 4, 4, 4, 0]
    assert 5 in steps[10].selection.clients


def test_scores_count_the_turns() -> None:
    steps = play_rounds(RoundRobin("id"), World(5, 2), 3)
    np.testing.assert_array_equal(steps[2].selection.scores, [-1, -1, -1, -1, 0])
