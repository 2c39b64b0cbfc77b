"""Laws of every selector in federations with clients that never arrive."""

import itertools
from collections.abc import Callable
from functools import cache

import numpy as np

from case_loop import for_all
from failure_hints import failure_hint
from fedcohort.types import Ids
from selector_harness import Step, World, play_rounds
from selector_worlds import cached_selector, every_selector

ABSENT = np.array([3, 8, 17])  # clients, among 20, that answer every query and never arrive
SMALL_IS_GOOD = {"expected_s", "expected_unit_s", "expected_up_s", "expected_down_s", "noise_rate"}


def favour_absent_clients(absent: Ids, factor: float) -> Callable[[str, np.ndarray], np.ndarray]:
    """Return a change of signals that makes absent clients `factor` times more attractive."""

    def change(signal: str, values: np.ndarray) -> np.ndarray:
        changed = values.copy()
        if signal in ("label_counts", "group_counts") and factor > 1:
            changed[absent] = 20  # a perfect balance
        else:
            changed[absent] = (changed[absent] * (1 / factor if signal in SMALL_IS_GOOD else factor)).astype(
                changed.dtype
            )
        return changed

    return change


@cache
def play_with_absent(choice: str, cohort: int, factor: float) -> list[Step]:
    """Return fifty rounds in which three of twenty clients never arrive; `factor` makes the selector prefer them."""
    change = favour_absent_clients(ABSENT, factor)
    world = World(
        20,
        cohort,
        find_failing=lambda t, cohort_ids: np.intersect1d(cohort_ids, ABSENT),
        corrupt=change,
        change_static=change,
    )
    return play_rounds(cached_selector(choice), world, 50)


@every_selector
@for_all("cohort, factor", [(3, 10.0), (5, 1.0)])
@failure_hint("Set `backs_off = True`, or lower the score of clients in `outcome.failed`.")
def test_clients_that_never_arrive_are_selected_less_often(choice: str, cohort: int, factor: float) -> None:
    """They have at most 1.2 times their share of places in the last 30 of 50 rounds, and the run does not stall."""
    later = play_with_absent(choice, cohort, factor)[20:]
    places = sum(len(step.selection.clients) for step in later)
    n_failed = sum(len(step.outcome.failed) for step in later)
    assert n_failed <= 1.2 * places * len(ABSENT) / 20
    empty = [not len(step.outcome.clients) for step in later]
    assert sum(empty) <= 2
    assert not any(before and after for before, after in itertools.pairwise(empty))


@every_selector
@failure_hint("Leave back-off to the run: set `backs_off`, and return from `shortlist` how many clients you need.")
def test_a_client_is_offered_again_when_its_back_off_ends(choice: str) -> None:
    """Selectors with `backs_off` are not offered it before; all others are offered every ready client."""
    selector, counts, return_rounds = (
        cached_selector(choice),
        dict.fromkeys(ABSENT.tolist(), 0),
        dict.fromkeys(ABSENT.tolist(), 0),
    )
    cycle_rounds = -(-20 // selector.shortlist(3))
    for step in play_with_absent(choice, 3, 10.0):
        is_offered = np.isin(ABSENT, step.ctx.available)
        expected = [not selector.backs_off or step.ctx.round >= return_rounds[k] for k in ABSENT.tolist()]
        assert is_offered.tolist() == expected
        assert len(step.ctx.ready) == 20
        for k in step.outcome.failed.tolist():
            counts[k] += 1
            if counts[k] >= 3:
                return_rounds[k] = step.ctx.round + 1 + cycle_rounds * min(2 ** (counts[k] - 3), 8)
    assert max(counts.values()) >= (3 if selector.backs_off else 0)
