"""FLASH paid with the progress of the global model: shares by hand, and in a run as its log has them."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from config_options import make_typed
from fedcohort.errors import OptionError
from fedcohort.selector.contexts import PendingRewards, State
from fedcohort.selector.flash import Flash
from fedcohort.selector.rewards import share_loss_decrease
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
from run_harness import run_training
from selector_harness import World, ids, make_context, make_outcome, play_rounds

SERVER = [2.0, 1.5, 1.7]  # the server's loss of w_0, w_1, w_2


def progress(**changes: object) -> Flash:
    return make_typed(Flash, "selector", "flash_progress", **changes)


@pytest.mark.parametrize(("context_kind", "ratios"), [("lagged", [1.0, 1.0]), ("fresh", [0.5, 0.6])])
def test_rewards_shared_by_samples_by_hand(context_kind: str, ratios: list[float]) -> None:
    """Both train in round 0, in 2 s: (2 - 1.5) / 2 / 2 = .125 each, on (1, 1, 0, 0) twice.

    Client 1 alone in round 1, in 1 s: 1.5 - 1.7 = -.2, on what chose it: its ratios (of w_0 where contexts lag), its
    2 s, and its .125, which is known by then in either case.
    """
    states = play_losses(progress(context=context_kind, **RAW_FEATURES), LOSSES, SECONDS, server=SERVER)
    o, x = np.array([1.0, 1.0, 0.0, 0.0]), np.array([*ratios, 2.0, 0.125])
    np.testing.assert_allclose(get_ridge(states[-1]).V, np.eye(4) + 2 * np.outer(o, o) + np.outer(x, x), rtol=1e-14)
    np.testing.assert_allclose(get_ridge(states[-1]).b, 2 * 0.125 * o - 0.2 * x, rtol=1e-13)
    rewards = np.array([state.measurements.r for state in states])
    np.testing.assert_allclose(rewards, [[0.0, 0.0], [0.125, 0.125], [0.125, -0.2]], rtol=1e-13)
    np.testing.assert_allclose(states[1].latest_rewards, [0.125, 0.125], rtol=1e-13)
    np.testing.assert_allclose(states[2].latest_rewards, [NAN, -0.2], rtol=1e-13)  # no other client had a part in it


def test_a_rise_is_a_reward_where_changes_have_no_sign() -> None:
    assert play_losses(progress(change="abs", **RAW_FEATURES), LOSSES, SECONDS, server=SERVER)[-1].measurements.r[
        1
    ] == pytest.approx(0.2)


def test_a_share_is_divided_by_the_clients_seconds() -> None:
    state = play_losses(progress(reward_tau="client", **RAW_FEATURES), LOSSES, SECONDS, server=SERVER)[1]
    np.testing.assert_allclose(state.measurements.r, [0.25, 0.125], rtol=1e-13)


def test_failed_clients_have_no_share() -> None:
    """Client 0 fails in round 0: all of .5 is client 1's, over its 2 s."""
    state = play_losses(
        progress(**RAW_FEATURES), LOSSES[:2], [{1: 2.0}, {1: 1.0}], failed_by_round=[[0]], server=SERVER
    )[1]
    np.testing.assert_allclose(state.measurements.r, [0.0, 0.25], rtol=1e-13)
    np.testing.assert_allclose(get_ridge(state).V, np.eye(4) + np.outer([1, 1, 0, 0], [1, 1, 0, 0]), rtol=1e-14)


def test_without_clients_there_is_no_share() -> None:
    for cohort in (None, PendingRewards(ids(), np.empty((0, 4)), is_first_round=False)):
        np.testing.assert_array_equal(share_loss_decrease(1.0, cohort, 3), [NAN, NAN, NAN])


def test_a_round_without_clients_does_not_repeat_the_reward() -> None:
    """The engine skips observe: S_0 is paid in round 1, and w_2 = w_1 earns it nothing more in round 2."""
    selector = progress(context="fresh", **RAW_FEATURES)
    state = play_losses(selector, LOSSES[:1], SECONDS[:1], server=SERVER)[0]
    for t in (1, 2):
        state = selector.select(state, make_context(t, 2, 2, available=[], signals={"server_val_loss": 1.5}), {})[1]
        np.testing.assert_allclose(state.measurements.r, [0.125, 0.125], rtol=1e-13)
        np.testing.assert_allclose(get_ridge(state).b, [0.25, 0.25, 0, 0], rtol=1e-13)


@pytest.mark.parametrize("non_finite", [NAN, INF, -INF])
def test_a_nan_loss_removes_the_rewards_of_two_rounds(non_finite: float) -> None:
    losses, seconds = [([1.0, 1.0], [1.0, 1.0])] * 4, [{0: 1.0, 1: 1.0}] * 4
    states: list[State] = play_losses(progress(**RAW_FEATURES), losses, seconds, server=[2.0, non_finite, 1.5, 1.0])
    np.testing.assert_array_equal(get_ridge(states[2]).b, np.zeros(4))
    np.testing.assert_allclose(states[3].measurements.r, [0.25, 0.25], rtol=1e-13)


def test_clients_are_queried_only_for_contexts() -> None:
    """The robust loss is used in contexts and not in rewards: without that feature no client is queried."""
    assert progress().needs == {"duration", "robust_loss", "val_loss", "server_val_loss"}
    world, selector = World(), progress(features=["duration", "prev_reward"])
    steps = play_rounds(selector, world, 4)
    assert world.read_signals == selector.needs == {"duration", "server_val_loss"}
    assert not any(step.probes for step in steps)
    assert steps[-1].after.posterior.b.any()
    assert "server_val_loss" not in make_flash().needs


@pytest.mark.parametrize("credit", ["literal", "answered"])
def test_only_the_cohort_gets_credit(credit: str) -> None:
    message = f"credit must be causal with reward=progress, a reward that the cohort shares, got {credit!r}"
    with pytest.raises(OptionError, match=re.escape(message)):
        replace(progress(), credit=credit)


def test_fresh_contexts_do_not_change_shares() -> None:
    """Client 1's own loss is a feature, whatever it says."""
    selector = progress(context="fresh", **RAW_FEATURES)
    state = play_losses(selector, LOSSES[:1], SECONDS[:1], server=SERVER)[0]
    rewards = [
        selector.select(
            state,
            make_context(1, 1, 2, signals={"server_val_loss": 1.5}),
            make_probe_results([0.8, answer], [1.0, 1.0]),
        )[1]
        for answer in (0.1, 9.0)
    ]
    np.testing.assert_array_equal(rewards[0].measurements.r, rewards[1].measurements.r)
    after = selector.observe(rewards[0], make_outcome(1, [0], duration=[1.0]))[1]
    assert after.pending is not None
    assert after.pending.clients.tolist() == [0]


def test_the_rewards_of_a_run_follow_from_its_metrics(tmp_path: Path) -> None:
    """reward = (server_val/loss before - after) / arrived / slowest finish, if trained, else none.

    Evaluated every second round alone, rewards are the same: the signal hangs on no metric.
    """
    overrides = ("selector=flash_progress", "rounds=5", "heterogeneity=noise_bimodal", "deadline=wait_for_all")
    run = run_training(tmp_path / "every", *overrides)
    loss = [report.metrics["server_val/loss"] for report in run.reports]
    for step in range(2, 6):
        previous, current = run.reports[step - 1], run.reports[step]
        seconds = previous.clients["finish_s"][previous.arrived].max()
        expected = np.full(12, NAN)
        expected[previous.arrived] = (loss[step - 2] - loss[step - 1]) / len(previous.arrived) / seconds
        np.testing.assert_allclose(current.clients["reward"], expected, rtol=1e-9)
    every_other_round = run_training(tmp_path / "seldom", *overrides, "eval.every=2")
    np.testing.assert_array_equal(every_other_round.last.clients["reward"], run.last.clients["reward"])
    assert np.isfinite(run.last.clients["reward"]).sum() == 4


def test_a_server_without_data_is_rejected_at_start_up(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"split\.server_val must be a number in \(0, 0\.5\], got 0"):
        run_training(tmp_path, "selector=flash_progress", "split.server_val=0")
