"""HCSFed as FedDiverse's paper describes it: sketches of updates, and uniform draws within three strata."""

import numpy as np
import pytest

from optional_values import not_none
from selector.test_hcsfed import NAN, X, feddiverse_state, hcs, make_blank_state, updates
from selector_harness import World, list_cohorts, make_context, play_rounds
from state_saving import save_and_restore


def test_feddiverses_version_updates_the_sketch_with_the_next_update() -> None:
    """No client is queried: a client that trains after the second round has its sketch replaced, once in two rounds."""
    selector = hcs(variant="feddiverse_paper", recluster=2)
    steps = play_rounds(selector, World(), 5)
    assert not any(step.probes for step in steps)
    before, after = steps[1].after.X, steps[2].after.X
    changed = np.flatnonzero((before != after).any(1))
    assert set(changed) <= set(steps[2].selection.clients)
    assert len(changed)
    assert not steps[2].after.is_queried.all()


def test_feddiverses_version_draws_equally_from_each_stratum() -> None:
    """Sketches of (0, x) are (0, x); strata of 6, 3 and 1 clients get m / 3 uniform draws each, for any norms."""
    selector = hcs(variant="feddiverse_paper")
    rows = np.sort(X, axis=1)
    state = feddiverse_state(rows)
    np.testing.assert_allclose(state.X, rows, rtol=1e-12)
    sizes = np.bincount(state.stratum_of_client)
    selection, _ = selector.select(state, make_context(2, 3, 10), {})
    assert np.bincount(state.stratum_of_client[selection.clients]).tolist() == [1, 1, 1]
    np.testing.assert_allclose(not_none(selection.probability), 1 / 3 / sizes[state.stratum_of_client])
    assert selector.needs == {"update"}
    assert not selector.plan(state, make_context(2, 3, 10))


def test_feddiverses_version_gives_failed_clients_a_stratum_later() -> None:
    """Client 9 fails at first: it is drawn like a tenth of the clients, and has a stratum once its update arrived."""
    selector = hcs(variant="feddiverse_paper")
    _, state = selector.select(make_blank_state(), make_context(0, 3, 10), {})
    _, state = selector.observe(state, updates(list(range(9)), np.sort(X[:9], axis=1)))
    _, state = selector.select(state, make_context(1, 3, 10), {})
    assert state.stratum_of_client[9] == -1
    picks = []
    for seed in range(500):
        selection, _ = selector.select(state, make_context(1, 3, 10, seed=seed), {})
        assert len(selection.clients) == 3
        picks.append(9 in selection.clients)
    assert abs(np.mean(picks) - 0.3) < 4 * np.sqrt(0.21 / 500)
    _, state = selector.observe(state, updates([9], np.sort(X[9:], axis=1), 1))
    assert (selector.select(state, make_context(2, 3, 10), {})[1].stratum_of_client >= 0).all()


def changing_available(round: int) -> list[int]:
    return [k for k in range(12) if (k * 7 + round * 5) % 11 < 3 + round % 5]


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("value", [NAN, float("inf"), 0.0, 1e300, -1.0])
@pytest.mark.parametrize("frequency", [1, 2])
def test_the_laws_hold_for_feddiverses_version(value: float, frequency: int) -> None:
    def corrupt(signal: str, values: np.ndarray) -> np.ndarray:
        return np.where(np.arange(len(values)) % frequency == 0, value, values)

    selector = hcs(variant="feddiverse_paper", agg="stratified")
    world = World(corrupt=corrupt, available=changing_available, find_failing=lambda t, cohort: cohort[::2])
    steps = play_rounds(selector, world, 8)
    for step in steps:
        picked = step.selection.clients
        available = step.ctx.available
        assert (
            len(picked) == (len(available) if step.ctx.round == 0 else min(3, len(available))) == len(np.unique(picked))
        )
        assert np.isin(picked, available).all()
    assert world.read_signals == {"update"}
    resumed = play_rounds(selector, world, 4, save_and_restore(steps[3].after), start=4)
    assert list_cohorts(resumed) == list_cohorts(steps)[4:]


def test_without_a_sketch_there_is_no_norm() -> None:
    """No client arrived in the first round of the variant whose sketches are updates."""
    selection, _ = hcs(variant="feddiverse_paper").select(make_blank_state(), make_context(1, 4, 10), {})
    assert np.isnan(selection.score_terms["norm"]).all()
    assert len(selection.clients) == 4
