"""An update that arrives rounds after the selection of its client is credited to the context of the selection."""

import numpy as np

from fedcohort.types import Population
from flash_harness import make_flash, make_probe_results
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
