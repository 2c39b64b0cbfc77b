"""An update that arrives rounds after the selection of its client is credited to the context of the selection."""

from dataclasses import replace

import numpy as np

from fedcohort.types import Population
from flash_harness import get_ridge, make_flash, make_probe_results
from optional_values import not_none
from selector_harness import make_context, make_outcome

K = 3


def test_a_late_update_is_credited_to_the_context_at_its_selection() -> None:
    """Client 0 is selected in round 1 and arrives in round 3, and clients 1 and 2 arrive in between."""
    selector = make_flash(context="lagged")
    state = selector.init(Population(K, 2, 1, {"n_train": np.ones(K)}))
    rng = np.random.default_rng(3)
    rounds = [([0, 1, 2], [0, 1, 2]), ([0, 1], [1]), ([2], [2]), ([], [0])]  # selected and arrived clients
    sent_context = np.empty(0)
    for t, (chosen, arrived) in enumerate(rounds):
        if t == 1:
            sent_context = state.X[0].copy()
        if chosen:
            _, state = selector.select(state, make_context(t, len(chosen), K, available=chosen), {})
        probes = make_probe_results(rng.random(K).tolist(), rng.random(K).tolist())
        state = selector.observe(
            state, make_outcome(t, arrived, probes, duration=(rng.random(len(arrived)) + 1).tolist())
        )[1]
    rows = not_none(state.pending)
    assert rows.clients.tolist() == [0]
    np.testing.assert_array_equal(rows.X[0], sent_context)
    assert not np.array_equal(state.X[0], sent_context)


def test_a_refill_leaves_the_losses_of_the_round_and_its_arrivals_are_rewarded() -> None:
    """Client 0 works when a place is refilled in round 1, so that its answer is missing then; it arrives later."""
    selector = make_flash(context="fresh")
    state = selector.init(Population(K, 2, 1, {"n_train": np.ones(K)}))
    state = selector.select(state, make_context(0, K, K), make_probe_results([1.0] * K, [1.0] * K))[1]
    state = selector.observe(state, make_outcome(0, [0, 1, 2], duration=[1.0] * K))[1]
    answers = make_probe_results([0.8, 0.7, 0.6], [1.0] * K)
    first_state = selector.select(state, make_context(1, 1, K, available=[0]), answers)[1]
    refill = replace(make_context(1, 1, K, available=[1, 2]), is_refill=True)
    answers_of_free_clients = {k: result.without(np.arange(K) == 0) for k, result in answers.items()}
    state = selector.select(first_state, refill, answers_of_free_clients)[1]
    assert state.loss.tolist() == [0.8, 0.7, 0.6]
    assert get_ridge(state).V.tolist() == get_ridge(first_state).V.tolist()
    state = selector.observe(state, make_outcome(1, [0], duration=[2.0]))[1]
    state = selector.select(state, make_context(2, 1, K), make_probe_results([0.5, 0.7, 0.6], [1.0] * K))[1]
    np.testing.assert_allclose(state.latest_rewards, [0.15, 0.0, 0.0], rtol=1e-12)
    assert not np.array_equal(get_ridge(state).V, get_ridge(first_state).V)
