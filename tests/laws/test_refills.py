"""Selections of single places in a round that has selected clients before (`RoundContext.is_refill`)."""

from dataclasses import replace

import numpy as np
import pytest

from selector.test_fedcor import quick
from selector.test_oort import EXPECTED, NAN, PLAIN, five, oort
from selector_harness import World, ids, make_context, play_rounds


def test_oorts_single_places_explore_by_the_share() -> None:
    """Client 4 never trained, and client 3 is at work. Of 200 selections of one client .3 explore: 4 sigma."""
    state = five(eps=0.3, utilities=np.array([1.0, 2.0, 3.0, 4.0, NAN]), last_rounds=ids(9, 8, 7, 6, 0))
    selector = replace(PLAIN, eps_decay=1.0, eps_min=0.0)
    explored = 0
    for seed in range(200):
        ctx = replace(make_context(20, 1, 5, [0, 1, 2, 4], EXPECTED, seed), in_flight=ids(3))
        explored += selector.select(state, ctx, {})[0].clients.tolist() == [4]
    assert abs(explored - 60) < 4 * np.sqrt(200 * 0.3 * 0.7)


def test_oorts_exploration_decays_once_per_round() -> None:
    """After 3 rounds eps is .98^3 .9, whether a round refills no place or five."""
    for n_refills in (0, 5):
        state = oort().init(World().population(oort().needs))
        for round in range(3):
            ctx = World().context(round, oort().needs)
            for is_refill in (False, *[True] * n_refills):
                state = oort().select(state, replace(ctx, is_refill=is_refill), {})[1]
        assert state.eps == pytest.approx(0.9 * 0.98**3, rel=1e-14)


def test_a_refill_leaves_fedcors_losses_and_the_fit_of_the_round() -> None:
    """Clients 0 and 1, which are busy at the refill, keep their answers in rounds 1, 3 (fit) and 4 (shadow)."""
    selector = quick(warmup=2, interval=3, memory=100)
    for step in play_rounds(selector, World(), 5)[1:]:
        answers = {k: result.without(np.arange(12) < 2) for k, result in step.blocking_answers.items()}
        refill = replace(step.ctx, cohort=1, available=np.arange(2, 12), is_refill=True)
        assert selector.select(step.chosen, refill, answers)[1] is step.chosen
