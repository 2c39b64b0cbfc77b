"""FLASH: contexts, rewards and their credit by hand; the bandit itself is in tests/bandit/test_ridge.py."""

import itertools
from typing import Any

import numpy as np
import pytest
import torch

from config_options import CONFIGS, load_options, load_yaml, to_dict
from fedcohort.selector.contexts import FEATURE_NAMES
from fedcohort.signal.robust_loss import robust_loss
from flash_harness import LOSSES, RAW_FEATURES, SECONDS, get_ridge, make_flash, play_losses, theta
from optional_values import not_none
from selector_harness import World, list_cohorts, play_rounds


def test_causal_credit_by_hand() -> None:
    """Rewards are |1 - .8| / 2 = .1 and |1 - .5| / 2 = .25 on two contexts (1, 1, 0, 0). The next is |.5 - .1| = .4.

    The last reward is credited to the context that chose client 1: ratios .5 and .6, duration 2 s, reward .25.
    """
    state = play_losses(make_flash(context="fresh", **RAW_FEATURES), LOSSES, SECONDS)[-1]
    x = np.array([0.5, 0.6, 2.0, 0.25])
    V = np.eye(4) + 2 * np.outer([1, 1, 0, 0], [1, 1, 0, 0]) + np.outer(x, x)
    b = np.array([0.35, 0.35, 0.0, 0.0]) + 0.4 * x
    np.testing.assert_allclose(get_ridge(state).V, V, rtol=1e-14)
    np.testing.assert_allclose(get_ridge(state).b, b, rtol=1e-14)
    np.testing.assert_allclose(theta(state), [0.07373518, 0.07996049, 0.12450612, 0.01556326], atol=1e-8)


@pytest.mark.parametrize("context_kind", ["lagged", "fresh"])
def test_literal_credit_by_hand(context_kind: str) -> None:
    """Two contexts (1, 1, 0, 0) with r_0 = 0, then (.5, .6, 2, r_0 = 0) with r_1 = .25: its own target isn't in it."""
    state = play_losses(make_flash(context=context_kind, credit="literal", **RAW_FEATURES), LOSSES[:2], SECONDS[:2])[1]
    np.testing.assert_allclose(theta(state), [0.00292626, 0.00780336, 0.09754194, 0.0], atol=1e-8)


def test_a_lagged_context_is_a_round_older() -> None:
    """What chose client 1 in round 1 was measured at w_0: ratios 1, its 2 s, no reward yet. Its reward is the same."""
    state = play_losses(make_flash(**RAW_FEATURES), LOSSES, SECONDS)[-1]
    x = np.array([1.0, 1.0, 2.0, 0.0])
    V = np.eye(4) + 2 * np.outer([1, 1, 0, 0], [1, 1, 0, 0]) + np.outer(x, x)
    np.testing.assert_allclose(get_ridge(state).V, V, rtol=1e-14)
    np.testing.assert_allclose(get_ridge(state).b, np.array([0.35, 0.35, 0.0, 0.0]) + 0.4 * x, rtol=1e-14)


def test_contexts_of_the_next_selection_by_hand() -> None:
    """After w_1 was measured: ratios to w_0, each client's last seconds, its last reward (client 0's is of round 0)."""
    state = play_losses(make_flash(**RAW_FEATURES), LOSSES[:2], SECONDS[:2])[1]
    np.testing.assert_allclose(state.X, [[0.8, 0.9, 1.0, 0.1], [0.5, 0.6, 1.0, 0.25]], rtol=1e-14)
    literal = play_losses(make_flash(credit="literal", **RAW_FEATURES), LOSSES[:2], SECONDS[:2])[1]
    np.testing.assert_allclose(literal.X, [[0.8, 0.9, 1.0, 0.0], [0.5, 0.6, 2.0, 0.0]], rtol=1e-14)  # tau_0, r_0


@pytest.mark.parametrize("context_kind", ["lagged", "fresh"])
@pytest.mark.parametrize(("change", "rewards"), [("abs", [0.25, 0.125, 0.1]), ("signed", [0.25, -0.125, 0.1])])
def test_rewards_are_changes_per_second(context_kind: str, change: str, rewards: list[float]) -> None:
    """Losses 2, 1.5, 2, 1.9 around rounds of 2, 4 and 1 s: .5/2, -.5/4, .1/1."""
    losses = [([loss], [1.0]) for loss in (2.0, 1.5, 2.0, 1.9)]
    states = play_losses(
        make_flash(context=context_kind, change=change, **RAW_FEATURES), losses, [{0: 2.0}, {0: 4.0}, {0: 1.0}, {}], [1]
    )
    np.testing.assert_allclose([state.measurements.r[0] for state in states[1:]], rewards, rtol=1e-12)


def test_rewards_are_divided_by_the_slowest_or_the_own_time() -> None:
    for kind, rewards in (("round", [0.1, 0.25]), ("client", [0.2, 0.25])):
        states = play_losses(make_flash(reward_tau=kind, **RAW_FEATURES), LOSSES[:2], SECONDS[:2])
        np.testing.assert_allclose(states[1].measurements.r, rewards, rtol=1e-12)


def test_a_global_reward_is_the_weighted_mean_change() -> None:
    """p = (3/4, 1/4): (3/4 .2 + 1/4 .5) / 2 s for both."""
    state = play_losses(make_flash(reward="global", **RAW_FEATURES), LOSSES[:2], SECONDS[:2], n_train=[3, 1])[1]
    np.testing.assert_allclose(state.measurements.r, [0.1375, 0.1375], rtol=1e-12)
    probes = [([1.0, 1.0], [1.0, 1.0]), ([0.8, 1.6], [1.0, 1.0])]  # 3/4 .2 - 1/4 .6 = 0: changes may cancel
    np.testing.assert_allclose(
        play_losses(make_flash(reward="global"), probes, SECONDS[:2], n_train=[3, 1])[1].measurements.r, 0, atol=1e-15
    )


def test_the_running_scale_by_hand() -> None:
    """tau in units of mean(1, 2, 1) s; r and the target in units of mean(.1, .25), then of mean(.1, .25, .4)."""
    state = play_losses(make_flash(context="fresh"), LOSSES, SECONDS)[-1]
    x = np.array([0.5, 0.6, 2.0 / 1.5, 0.25 / 0.175])
    b = np.array([2.0, 2.0, 0.0, 0.0]) + 0.4 / 0.25 * x  # (.1 + .25) / .175 = 2
    np.testing.assert_allclose(get_ridge(state).b, b, rtol=1e-12)
    assert state.measurements.tau_unit.feature_scale() == pytest.approx(4 / 3)
    np.testing.assert_allclose(state.X[1], [0.1, 0.6, 1.0 * 3 / 4, 0.4 / 0.25], rtol=1e-12)


def test_the_scale_of_signed_rewards_is_their_mean_size() -> None:
    """.2/2 and -.6/2: mean size .2, where the mean of the values would be negative and of the positive ones .1."""
    losses = [([1.0, 1.0], [1.0, 1.0]), ([0.8, 1.6], [1.0, 1.0])]
    state = play_losses(make_flash(change="signed"), losses, SECONDS[:2])[1]
    np.testing.assert_allclose(state.X[:, 3], [0.5, -1.5], rtol=1e-12)


def test_the_first_round_scale_by_hand() -> None:
    """As above, with the units of round 0 kept: 1.5 s and .175."""
    state = play_losses(make_flash(context="fresh", scale="first_round"), LOSSES, SECONDS)[-1]
    x = np.array([0.5, 0.6, 2.0 / 1.5, 0.25 / 0.175])
    np.testing.assert_allclose(get_ridge(state).b, [2, 2, 0, 0] + 0.4 / 0.175 * x, rtol=1e-12)
    assert state.measurements.tau_unit.feature_scale() == 1.5


def test_scaled_choices_do_not_depend_on_the_unit_of_time() -> None:
    """Seconds or hours, a million in the losses: ratios and scaled features are the same; raw ones are not."""

    def units(signal: str, values: np.ndarray) -> np.ndarray:
        return values * {"duration": 3600.0, "robust_loss": 1e6}.get(signal, 1.0)

    for scale, is_equal in (("running", True), ("first_round", True), ("none", False)):
        plain, rescaled = (play_rounds(make_flash(scale=scale), world, 12) for world in (World(), World(corrupt=units)))
        assert (list_cohorts(plain) == list_cohorts(rescaled)) is is_equal


def test_the_first_contexts_can_be_left_out() -> None:
    """Their rewards stay known: as a feature, and as a scale."""
    for credit in ("causal", "literal"):
        states = play_losses(
            make_flash(context="fresh", credit=credit, skip_first_update=True, **RAW_FEATURES),
            LOSSES[:2],
            [SECONDS[0], {}],
        )
        np.testing.assert_array_equal(get_ridge(states[1]).V, np.eye(4))
        np.testing.assert_allclose(
            states[1].measurements.r, [0.1, 0.25] if credit == "causal" else [0.0, 0.0], rtol=1e-12
        )


@pytest.mark.parametrize("context_kind", ["lagged", "fresh"])
def test_all_clients_are_queried_first_then_the_cohort(context_kind: str) -> None:
    steps = play_rounds(make_flash(context=context_kind), World(), 4)
    assert [len(step.selection.clients) for step in steps] == [12, 3, 3, 3]
    assert [step.selection.uncapped for step in steps] == [True, False, False, False]
    for step in steps:
        assert {(p.signal, p.concurrent) for p in step.probes} == {
            ("robust_loss", context_kind == "lagged"),
            ("val_loss", context_kind == "lagged"),
        }
        assert all(len(p.clients) == 12 for p in step.probes)
    assert dict(steps[0].probes[0].options) == {"alpha": 0.1, "beta": 4.0, "A": -4.0}


def test_the_draw_for_the_first_choice_has_gamma_0() -> None:
    """Nothing is learnt before S_1 when contexts lag: V = I and x = (1, 1, tau, 0).

    So score = x'z gamma_0 with the very normals of the round's generator, and gamma_0 = 1 + sqrt(4 ln 20) for 12
    clients; gamma_scale multiplies it.
    """
    for gamma_scale in (1.0, 0.01):
        world = World()
        step = play_rounds(make_flash(gamma_scale=gamma_scale), world, 2)[1]
        z = world.context(1, frozenset()).rng.standard_normal(4)
        gamma = gamma_scale * (1 + np.sqrt(4 * np.log(20)))
        np.testing.assert_allclose(not_none(step.selection.scores), step.before.X @ z * gamma, rtol=1e-12)


def test_without_exploration_it_is_greedy_ridge_regression() -> None:
    """gamma_scale = 0: scores are x'theta_hat, and the best of them train."""
    for step in play_rounds(make_flash(gamma_scale=0.0), World(), 8)[1:]:
        scores = step.before.X @ theta(step.before)
        np.testing.assert_allclose(not_none(step.selection.scores), scores, rtol=1e-9, atol=1e-12)
        np.testing.assert_array_equal(step.selection.score_terms["explore"], np.zeros(12))
        if scores.any():  # all zero before the first reward
            assert step.selection.clients.tolist() == sorted(np.argsort(-scores)[:3].tolist())


def test_a_simulated_reward_is_learned() -> None:
    """Losses fall by a constant of the client's own, .1 or .01 a second, which its last reward tells.

    With little exploration (rewards have size 1 when scaled) the fast six of twelve are chosen far more often than by
    chance.
    """
    rate = np.where(np.arange(12) < 6, 0.10, 0.01)

    class FallingLosses(World):
        def values(self, signal: str, round: int = -1) -> np.ndarray:
            return 10 - rate * round if signal == "robust_loss" else np.ones(12)

    steps = play_rounds(make_flash(gamma_scale=0.01), FallingLosses(), 30)[10:]
    assert np.mean(np.concatenate(list_cohorts(steps)) < 6) > 0.9


def test_trace_is_theta_with_its_deviation() -> None:
    selector = make_flash(context="fresh", **RAW_FEATURES)
    state = play_losses(selector, LOSSES, SECONDS)[-1]
    trace = selector.trace(state)
    assert tuple(trace) == FEATURE_NAMES == ("train_ratio", "val_ratio", "duration", "prev_reward")
    np.testing.assert_allclose([mean for mean, _ in trace.values()], theta(state), rtol=1e-10)
    sd = np.sqrt(np.diag(np.linalg.inv(get_ridge(state).V)))
    np.testing.assert_allclose([sd for _, sd in trace.values()], sd, rtol=1e-10)


OPTIONS: dict[str, list[Any]] = {
    "context": ["lagged", "fresh"],
    "credit": ["causal", "literal", "answered"],
    "reward": ["client", "global", "progress"],
    "change": ["abs", "signed"],
    "reward_tau": ["round", "client"],
    "scale": ["running", "first_round", "none"],
    "skip_first_update": [False, True],
}
REFUSED = {("literal", "progress"), ("answered", "progress"), ("answered", "global")}


def choose_combinations() -> list[tuple[Any, ...]]:
    """Those in which any three choices meet for the first time, but for credit that a reward can't have.

    That is refused: test_flash_progress.py and test_flash_answered.py.
    """
    all_values = [values for values in itertools.product(*OPTIONS.values()) if (values[1], values[2]) not in REFUSED]
    chosen: list[tuple[Any, ...]] = []
    seen_triples: set[Any] = set()
    for values in all_values[::5] + all_values:
        triples = set(itertools.combinations(zip(OPTIONS, values, strict=True), 3))
        if triples - seen_triples:
            chosen.append(values)
            seen_triples |= triples
    return chosen


def test_any_three_options_learn_and_read_the_declared_signals() -> None:
    for values in choose_combinations():
        options = dict(zip(OPTIONS, values, strict=True))
        selector, world = make_flash(**options), World()
        last = play_rounds(selector, world, 4)[-1]
        assert last.after.posterior.b.any(), values
        assert np.isfinite(not_none(last.selection.scores)).all(), values
        assert world.read_signals == selector.needs, values


def test_the_robust_loss_by_hand() -> None:
    """p = (.7, .2, .1), y = 0: CE = -ln .7, entropy .8018186, RCE = 4 (1 - .7)."""
    logp, y = torch.tensor([[0.7, 0.2, 0.1]], dtype=torch.float64).log(), torch.tensor([0])
    for (alpha, beta), value in (((0.1, 4.0), 5.2368568), ((1.0, 1.0), 2.3584935), ((0.0, 0.0), 0.3566749)):
        loss = robust_loss(logp, y, {"alpha": alpha, "beta": beta, "A": -4.0})
        assert loss.item() == pytest.approx(value, abs=5e-8)


def test_the_literal_variant_overrides_existing_options() -> None:
    literal = to_dict(load_yaml(CONFIGS / "selector" / "flash_literal.yaml"))["selector"]
    assert set(literal) < set(load_options("selector", "flash"))
    literal_flash = make_flash(**literal)
    assert (
        literal_flash.context,
        literal_flash.credit,
        literal_flash.change,
        literal_flash.scale,
        literal_flash.gamma_scale,
    ) == ("lagged", "literal", "abs", "none", 1)
