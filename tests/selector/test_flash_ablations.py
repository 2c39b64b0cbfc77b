"""FLASH's ablations: contexts with features left out, and other estimators on the same contexts and rewards."""

import re
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hydra import compose, initialize_config_dir

from case_loop import for_all
from config_options import CONFIGS, load_options
from fedcohort.bandit import neural, ridge
from fedcohort.bandit.neural import NetworkBelief
from fedcohort.bandit.restless import HiddenMarkov
from fedcohort.errors import IncompatibleConfig, OptionError
from fedcohort.selector.contexts import FEATURE_NAMES
from fedcohort.startup import check, components
from fedcohort.startup.compose import Composition, compose_config
from flash_harness import LOSSES, RAW_FEATURES, SECONDS, make_flash, play_losses, theta
from optional_values import not_none
from selector_harness import World, list_cohorts, play_rounds
from state_saving import save_and_restore

BANDITS = ("thompson", "linucb", "neural", "restless")
bandits = pytest.mark.parametrize("bandit", BANDITS)


def small(bandit: str, **changes: Any) -> Any:
    """With a network that fits in no time."""
    return make_flash(bandit=bandit, pairs=4, fit_steps=5, **changes)


@for_all("kept_features", [k for n in (1, 2, 3) for k in combinations(FEATURE_NAMES, n)])
def test_excluded_features_are_excluded_columns(kept_features: tuple[str, ...]) -> None:
    """With fewer columns theta is the ridge regression on these columns, and rewards stay the same."""
    columns = [FEATURE_NAMES.index(name) for name in kept_features]
    all_features = play_losses(make_flash(context="fresh", **RAW_FEATURES), LOSSES, SECONDS)[-1]
    state = play_losses(make_flash(context="fresh", features=list(kept_features), **RAW_FEATURES), LOSSES, SECONDS)[-1]
    rows = np.array([[1, 1, 0, 0], [1, 1, 0, 0], [0.5, 0.6, 2.0, 0.25]])[:, columns]
    expected = np.linalg.solve(np.eye(len(kept_features)) + rows.T @ rows, rows.T @ [0.1, 0.25, 0.4])
    np.testing.assert_allclose(theta(state), expected, rtol=1e-10, atol=1e-14)
    np.testing.assert_array_equal(state.measurements.r, all_features.measurements.r)
    if "val_ratio" in kept_features:
        np.testing.assert_array_equal(state.X, all_features.X[:, columns])
    assert state.X.flags.c_contiguous  # as after a resume: products with another layout differ in the last bit
    assert tuple(make_flash(features=list(kept_features)).trace(state)) == kept_features


@pytest.mark.parametrize(("gamma_dim", "d"), [("kept", 3), ("fixed4", 4)])
def test_the_confidence_width_uses_the_number_of_features(gamma_dim: str, d: int) -> None:
    """Before the first reward score = x'z gamma_0, gamma_0 = 1 + sqrt(d ln 20) (the other rounds: test_ridge.py)."""
    world = World()
    selector = make_flash(features=["train_ratio", "val_ratio", "prev_reward"], gamma_dim=gamma_dim)
    step = play_rounds(selector, world, 2)[1]
    z = world.context(1, frozenset()).rng.standard_normal(3)
    expected = step.before.X @ z * (1 + np.sqrt(d * np.log(20)))
    np.testing.assert_allclose(not_none(step.selection.scores), expected, rtol=1e-12)


@bandits
def test_excluded_features_are_not_queried(bandit: str) -> None:
    world = World()
    selector = small(bandit, features=["train_ratio", "prev_reward"])
    play_rounds(selector, world, 4)
    assert world.read_signals == selector.needs == {"robust_loss", "duration"}  # the reward's


@pytest.mark.parametrize("features", [[], ["mood"], ["duration", "duration"], "duration", 3, [3]])
def test_unknown_features_are_rejected(features: Any) -> None:
    message = (
        "features must be a list of one or more of train_ratio, val_ratio, duration, prev_reward, none twice, got "
    )
    with pytest.raises(OptionError, match=re.escape(message)):
        components.make_component(
            Composition({"selector": {**load_options("selector", "flash"), "features": features}}, {}, ()), "selector"
        )


def test_linucb_scores_are_upper_bounds_without_random_draws() -> None:
    """x'theta_hat + gamma_{t-1} sqrt(x'V^-1 x) on the posterior that Thompson sampling would have."""
    for t, step in enumerate(play_rounds(make_flash(bandit="linucb"), World(), 6)[1:], 1):
        X, posterior = step.before.X, step.before.posterior
        width = np.sqrt(np.einsum("ij,jk,ik->i", X, np.linalg.inv(posterior.V), X))
        expected = X @ theta(step.before) + ridge.exploration_width(t - 1, 12, 4, 1.0, 0.05) * width
        np.testing.assert_allclose(not_none(step.selection.scores), expected, rtol=1e-9)
        assert step.selection.clients.tolist() == sorted(np.argsort(-expected)[:3].tolist())


@bandits
def test_contexts_rewards_and_credit_are_the_same(bandit: str) -> None:
    """Given the same cohorts, the rewards do not depend on the estimator; here all clients are always selected."""
    plain, variant = (play_rounds(small(choice), World(cohort=12), 5) for choice in ("thompson", bandit))
    for a, b in zip(plain, variant, strict=True):
        np.testing.assert_array_equal(a.after.X, b.after.X)
        np.testing.assert_array_equal(a.after.measurements.r, b.after.measurements.r)
    if bandit == "neural":  # the fifth round's rewards are still to be measured
        assert isinstance(variant[-1].after.posterior, NetworkBelief)
        assert len(variant[-1].after.posterior.r) == 4 * 12
    if bandit == "restless":
        assert isinstance(variant[-1].after.posterior, HiddenMarkov)
        assert variant[-1].after.posterior.n_rewards == 4 * 12


def test_the_neural_bandit_starts_from_the_runs_own_draws() -> None:
    a, b, c = (
        play_rounds(small("neural"), World(seed=seed), 2)[-1].after.posterior.initial_theta for seed in (0, 0, 1)
    )
    assert np.array_equal(a, b)
    assert a.any()
    assert not np.array_equal(a, c)


def test_the_neural_bandit_is_less_certain_about_unselected_clients() -> None:
    """Z has the gradients of the cohort at its own selection, before any reward of it is known."""
    step = play_rounds(small("neural"), World(), 3)[2]
    before, after = step.before.posterior, step.chosen.posterior
    rows = neural.standardise_contexts(after, step.before.X[step.selection.clients])
    G = neural.output_gradients(before.theta, rows)
    assert G.any()
    np.testing.assert_allclose(after.Z, before.Z + G.T @ G / 8, rtol=1e-12)


def test_gamma_scale_is_the_neural_bandits_nu() -> None:
    nu_1, nu_2, nu_0 = (
        play_rounds(small("neural", gamma_scale=g), World(), 2)[1].selection.score_terms for g in (1.0, 2.0, 0.0)
    )
    np.testing.assert_allclose(nu_2["explore"], 2 * nu_1["explore"], rtol=1e-12)
    assert nu_1["explore"].any()
    assert not nu_0["explore"].any()


def test_the_restless_bandit_explores_in_its_rounds() -> None:
    """c = 2: rounds 1, 2, 3, 4 and 7 have equal scores, so that the cohort is a draw."""
    steps = play_rounds(make_flash(bandit="restless"), World(), 9)[1:]
    assert [t for t, step in enumerate(steps, 1) if not not_none(step.selection.scores).any()] == [1, 2, 3, 4, 7]
    assert steps[-1].after.posterior.n_explored_rounds == 5
    assert (
        play_rounds(make_flash(bandit="restless", explore=0.0), World(), 4)[-1].after.posterior.n_explored_rounds == 0
    )


@bandits
def test_a_resumed_selector_continues_identically(bandit: str) -> None:
    world, selector = World(), small(bandit)
    uninterrupted = play_rounds(selector, world, 7)
    resumed = play_rounds(selector, world, 4, save_and_restore(uninterrupted[2].after), start=3)
    assert list_cohorts(resumed) == list_cohorts(uninterrupted)[3:]
    np.testing.assert_array_equal(resumed[-1].selection.scores, uninterrupted[-1].selection.scores)


@bandits
@pytest.mark.parametrize("value", [float("nan"), float("inf"), 0.0, 1.0, 1e300, -1.0])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_no_signal_makes_it_raise_or_warn(bandit: str, value: float, stride: int) -> None:
    def corrupt(signal: str, values: np.ndarray) -> np.ndarray:
        return np.where(np.arange(len(values)) % stride == 0, value, values)

    world = World(corrupt=corrupt, available=lambda t: [] if t == 3 else [k for k in range(12) if (k + t) % 4])
    for step in play_rounds(small(bandit), world, 7):
        chosen = step.selection.clients
        assert np.isin(chosen, step.ctx.available).all()
        assert len(chosen) == (len(step.ctx.available) if step.selection.uncapped else min(3, len(step.ctx.available)))
        assert len(np.unique(chosen)) == len(chosen)
        for mean, sd in small(bandit).trace(step.after).values():
            assert np.isfinite(mean)
            assert np.isfinite(sd)


@bandits
def test_a_simulated_reward_is_learned(bandit: str) -> None:
    """Losses fall by a constant of the client's own, .1 or .01 a second, which its last reward tells."""
    rate = np.where(np.arange(12) < 6, 0.10, 0.01)

    class FallingLosses(World):
        def values(self, signal: str, round: int = -1) -> np.ndarray:
            return 10 - rate * round if signal == "robust_loss" else np.ones(12)

    selector = make_flash(bandit=bandit, gamma_scale=0.01, explore=0.5)
    assert np.mean(np.concatenate(list_cohorts(play_rounds(selector, FallingLosses(), 25)[10:])) < 6) > 0.9


@pytest.mark.parametrize("choice", ["neural", "restless"])
def test_aliases_are_flash_with_another_bandit(choice: str) -> None:
    def composed(*overrides: str) -> Composition:
        all_overrides = (f"selector={choice}_bandit", *overrides)
        with initialize_config_dir(str(CONFIGS), version_base="1.3"):
            cfg = compose("train", overrides=list(all_overrides), return_hydra_config=True)
        return compose_config(cfg, cfg.hydra.runtime.choices, all_overrides)

    plain = composed("selector.scale=none")
    check.check_aliases(plain)
    assert components.make_component(plain, "selector") == make_flash(bandit=choice, scale="none")
    message = f"selector={choice}_bandit stands for selector.bandit={choice}, but selector.bandit=linucb was requested"
    with pytest.raises(IncompatibleConfig, match=re.escape(message)):
        check.check_aliases(composed("selector.bandit=linucb"))
