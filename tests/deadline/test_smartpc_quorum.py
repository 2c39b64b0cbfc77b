"""T = (1, 2, 3, 4, 10) and a share of .8: k = 4, and the round closes at 4."""

import math

import numpy as np
import pytest

from case_loop import for_all
from fedcohort.deadline.base import DeadlineOutcome, PaceContext, compute_outcome
from fedcohort.deadline.smartpc_quorum import SmartpcQuorum
from fedcohort.deadline.wait_for_all import WaitForAll
from fedcohort.device.base import Timing

T = np.array([1.0, 2, 3, 4, 10])


def timing(finish: np.ndarray) -> Timing:
    none = np.zeros(len(finish))
    return Timing(none, none, finish / 4, none)  # fourths of these times are exact, and so is their sum


def close_round(share: float, finish: np.ndarray) -> DeadlineOutcome:
    quorum = SmartpcQuorum(share)
    return compute_outcome(timing(finish), 4, quorum.close(None, finish, math.inf), quorum.partial_work)


@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 4, 0, 3, 1]])
def test_the_quorum_of_the_specifications_example(order: list[int]) -> None:
    outcome = close_round(0.8, T[order])
    assert outcome.train_s == 4
    assert outcome.is_in_time.tolist() == (T[order] <= 4).tolist()
    assert outcome.units_done.tolist() == [4 if finish <= 4 else 0 for finish in T[order]]  # whole epochs, or none


@for_all(
    "share, m, k",
    [(0.8, 1, 1), (0.8, 2, 1), (0.8, 3, 2), (0.8, 5, 4), (0.8, 10, 8), (0.05, 10, 1), (0.29, 100, 29), (1.0, 7, 7)],
)
def test_the_number_is_rounded_down_but_at_least_one(share: float, m: int, k: int) -> None:
    finish = np.random.default_rng(m).permutation(np.arange(1.0, m + 1))
    assert SmartpcQuorum(share).close(None, finish, math.inf) == k
    assert close_round(share, finish).is_in_time.sum() == k


def test_no_deadline_is_announced_and_an_empty_round_takes_no_time() -> None:
    quorum = SmartpcQuorum(0.8)
    assert quorum.announce(None, PaceContext(0, np.arange(5), 4, timing(T), timing(T))) == math.inf
    assert quorum.close(None, T[:0], math.inf) == 0


def test_a_share_of_one_waits_for_all() -> None:
    assert not SmartpcQuorum(1.0).bounded
    assert SmartpcQuorum(0.8).bounded
    wait = WaitForAll(partial_work=False)
    for seed in range(5):
        finish = np.random.default_rng(seed).exponential(1.0, 6)
        assert SmartpcQuorum(1.0).close(None, finish, math.inf) == wait.close(None, finish, math.inf)


def test_clients_that_finish_at_the_closing_time_arrive() -> None:
    assert close_round(0.5, np.array([1.0, 2, 2, 2, 3])).is_in_time.tolist() == [True, True, True, True, False]
