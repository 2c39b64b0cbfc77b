"""FLASH: nonsense, absence, failure and time that stands still."""

import numpy as np
import pytest

from fedcohort.types import Population, ProbeResult
from flash_harness import (
    INF,
    LOSSES,
    NAN,
    RAW_FEATURES,
    SECONDS,
    get_ridge,
    make_flash,
    make_probe_results,
    play_losses,
)
from selector_harness import World, ids, make_context, make_outcome, play_rounds


@pytest.mark.parametrize("non_finite", [NAN, INF, -INF])
@pytest.mark.parametrize("invalid_signal", ["robust_loss", "val_loss"])
def test_a_client_with_invalid_answers_is_never_preferred(non_finite: float, invalid_signal: str) -> None:
    def corrupt(signal: str, values: np.ndarray) -> np.ndarray:
        return np.where((np.arange(12) == 4) & (signal == invalid_signal), non_finite, values)

    steps = play_rounds(make_flash(), World(corrupt=corrupt), 8)
    for step in steps[1:]:
        assert step.selection.scores is not None
        assert step.selection.scores[4] == -INF
        assert 4 not in step.selection.clients
        assert np.isnan(step.before.X[4]).sum() == 1
        assert np.isfinite(step.after.posterior.b).all()
    assert steps[-1].after.posterior.b.any(), "the others still teach"


def test_an_unavailable_client_keeps_its_last_values() -> None:
    """Client 0 is away in round 2, when w_2 is measured."""
    world = World(3, 2, available=lambda t: [1, 2] if t == 2 else [0, 1, 2])
    steps = play_rounds(make_flash(**RAW_FEATURES), world, 4)
    np.testing.assert_array_equal(steps[2].after.X[0, :2], steps[1].after.X[0, :2])
    assert np.isfinite(steps[3].after.X).all()


def test_a_reward_is_of_one_round_only() -> None:
    """Client 0 trains in round 1 and is away when w_2 is measured: what w_3 gains over w_1 isn't that round's doing."""
    selector = make_flash(context="fresh", **RAW_FEATURES)
    state = selector.init(Population(2, 2, 2, {}))
    without_client_0 = {signal: ProbeResult(ids(1), np.array([0.5])) for signal in ("robust_loss", "val_loss")}
    measured = [
        make_probe_results([1.0, 1.0], [1.0, 1.0]),
        make_probe_results([0.8, 0.8], [1.0, 1.0]),
        without_client_0,
        make_probe_results([0.1, 0.1], [1.0, 1.0]),
    ]
    for t, probes in enumerate(measured):
        available = [1] if t == 2 else [0, 1]
        state = selector.select(state, make_context(t, 2, 2, available=available), probes)[1]
        if t < 3:
            state = selector.observe(state, make_outcome(t, available, duration=[1.0] * len(available)))[1]
    np.testing.assert_allclose(state.measurements.r, [0.2, 0.4], rtol=1e-12)  # client 0's is still round 0's


def test_failed_clients_affect_neither_learning_nor_time() -> None:
    """Client 0 fails in round 0: only client 1's row, over its own 2 s."""
    state = play_losses(
        make_flash(context="fresh", **RAW_FEATURES), LOSSES[:2], [{1: 2.0}, {1: 1.0}], failed_by_round=[[0]]
    )[1]
    np.testing.assert_allclose(get_ridge(state).V, np.eye(4) + np.outer([1, 1, 0, 0], [1, 1, 0, 0]), rtol=1e-14)
    np.testing.assert_allclose(state.measurements.r, [0.0, 0.25], rtol=1e-12)


def test_a_client_without_a_duration_gets_the_mean() -> None:
    state = play_losses(
        make_flash(**RAW_FEATURES), LOSSES[:2], [{1: 2.0}, {1: 4.0}], n_train=[1, 1], failed_by_round=[[0]]
    )[1]
    np.testing.assert_array_equal(state.X[:, 2], [4.0, 4.0])


def test_a_non_finite_duration_keeps_the_last_one() -> None:
    state = play_losses(make_flash(**RAW_FEATURES), LOSSES[:2], [{0: 1.0, 1: 2.0}, {0: 4.0, 1: NAN}])[1]
    np.testing.assert_array_equal(state.X[:, 2], [4.0, 2.0])


def test_ratios_are_to_the_first_finite_loss_and_never_over_zero() -> None:
    """Client 0 first reports infinity, so that its baseline is the loss at w_1; client 1's 0 becomes 1e-8."""
    losses = [([INF, 0.0], [NAN, 1.0]), ([4.0, 0.0], [2.0, 1.0]), ([3.0, 2e-8], [1.0, 0.5])]
    states = play_losses(make_flash(**RAW_FEATURES), losses, SECONDS)
    assert np.isnan(states[0].X[0, :2]).all()
    np.testing.assert_allclose(states[1].X[:, :2], [[1.0, 1.0], [0.0, 1.0]], rtol=1e-12)
    np.testing.assert_allclose(states[2].X[:, :2], [[0.75, 0.5], [2.0, 0.5]], rtol=1e-12)


def test_a_round_without_clients_postpones_the_reward() -> None:
    """Without available clients there is no query and no call of observe: w_2 = w_1 is measured in round 2."""
    selector = make_flash(context="fresh", skip_first_update=True, **RAW_FEATURES)
    state = play_losses(selector, LOSSES[:1], SECONDS[:1])[0]
    state = selector.select(state, make_context(1, 2, 2, available=[]), {})[1]
    state = selector.select(state, make_context(2, 2, 2), make_probe_results(*LOSSES[1]))[1]
    np.testing.assert_allclose(state.measurements.r, [0.1, 0.25], rtol=1e-12)
    np.testing.assert_array_equal(get_ridge(state).V, np.eye(4))  # they are round 0's contexts still


@pytest.mark.parametrize("seconds", [0.0, -1.0, NAN, INF])
def test_rounds_without_duration_are_not_learned_from(seconds: float) -> None:
    """device=instant is refused at start-up; here a division by zero would end all learning."""
    state = play_losses(make_flash(context="fresh"), LOSSES[:2], [{0: seconds, 1: seconds}, {}])[1]
    np.testing.assert_array_equal(get_ridge(state).V, np.eye(4))
    assert np.isfinite(state.X).all()
