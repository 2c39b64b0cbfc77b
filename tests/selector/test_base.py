"""The choice that all selectors share: ties, and draws without replacement.

Only drawn clients are sorted, which must not change any result.
"""

from collections.abc import Callable

import numpy as np
import pytest

from case_loop import for_all
from fedcohort.selector.base import draw_successively, find_answers, top
from fedcohort.types import ProbeResult


class Coarse:
    """A generator whose draws are often equal."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def standard_exponential(self, size: int) -> np.ndarray:
        return self.rng.integers(0, 4, size).astype(float)


def draw_with_all_weights(
    weights: np.ndarray, available: np.ndarray, count: int, rng: np.random.Generator
) -> list[int]:
    """All clients sorted by key, then noise, then id."""
    noise = rng.standard_exponential(len(weights))
    usable = np.isfinite(weights) & (weights > 0)
    key = {k: noise[k] / weights[k] if usable[k] else np.inf for k in available}
    return sorted(available.tolist(), key=lambda k: (key[k], noise[k], k))[:count]


@pytest.mark.parametrize("make", [np.random.default_rng, Coarse])
def test_top_equals_the_start_of_the_full_order(make: Callable[[int], np.random.Generator]) -> None:
    rng = np.random.default_rng(0)
    for seed in range(500):
        K = int(rng.integers(1, 40))
        weights = rng.integers(0, 4, K).astype(float)
        weights[rng.random(K) < 0.2] = rng.choice([0.0, np.nan, np.inf])
        available = np.flatnonzero(rng.random(K) < 0.8)
        count = int(rng.integers(0, K + 2))
        selections = draw_successively(weights, available, count, make(seed))
        assert selections.tolist() == draw_with_all_weights(weights, available, count, make(seed))


@for_all(
    "scores, tied",
    [
        ([0.0, 0.9e-9], True),
        ([0.0, 1.1e-9], False),  # 1e-9 of max(1, |a|, |b|), which is 1
        ([1e9 - 1, 1e9], True),  # 1 is 1e-9 of the larger, not of the smaller one
        ([1e9 - 2, 1e9], False),
        ([-1e9, 1 - 1e9], True),
        ([-np.inf, -np.inf], True),
        ([-np.inf, np.nan], True),
        ([-np.inf, -1e300], False),
        ([np.inf, np.inf], True),
        ([1e300, np.inf], False),
    ],
)
def test_scores_equal_up_to_rounding_are_ties(scores: list[float], tied: bool) -> None:
    """Out of two, the better one is taken; of equals the draw decides, or the lower id."""
    selections = [top(np.array(scores), np.arange(2), 1, np.random.default_rng(seed)).tolist() for seed in range(20)]
    assert {k for (k,) in selections} == ({0, 1} if tied else {1})
    by_id = top(np.array(scores), np.arange(2), 1, np.random.default_rng(0), tie_rule="id")
    assert by_id.tolist() == ([0] if tied else [1])


def test_clients_above_a_tie_are_selected_first() -> None:
    """One above, three tied for two places, one below."""
    selections = [
        top(np.array([1.0, 3, 2, 2, 2]), np.arange(5), 3, np.random.default_rng(s)).tolist() for s in range(40)
    ]
    assert {tuple(selection) for selection in selections} == {(1, 2, 3), (1, 2, 4), (1, 3, 4)}


def test_without_a_probe_there_are_no_answers() -> None:
    no_clients, answers = find_answers({}, "loss"), ProbeResult(np.arange(2), np.ones(2))
    assert (no_clients.clients.shape, no_clients.values.shape) == ((0,), (0,))
    assert find_answers({"loss": answers}, "loss") is answers
