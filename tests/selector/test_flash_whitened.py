"""Whitened contexts by hand, and their effect on FLASH's choices."""

from pathlib import Path

import numpy as np

from fedcohort.selector.contexts import whiten_contexts
from run_harness import run_training


def test_whitened_contexts_by_hand() -> None:
    """Deviations (-3, -1, 1, 3) / 1 and (-1, 1, ...): each is divided by its deviation, since they don't correlate."""
    X = np.array([[1.0, 0.0], [3.0, 0.0], [1.0, 10.0], [3.0, 10.0]])  # means 2 and 5, deviations 1 and 5
    np.testing.assert_allclose(whiten_contexts(X), [[-1, -1, 1], [1, -1, 1], [-1, 1, 1], [1, 1, 1]], atol=1e-12)


def test_mean_zero_covariance_one_and_an_intercept() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 4)) @ rng.standard_normal((4, 4)) + 7.0
    Z = whiten_contexts(X)
    np.testing.assert_allclose(Z[:, :4].mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(Z[:, :4].T @ Z[:, :4] / 200, np.eye(4), atol=1e-9)
    assert (Z[:, 4] == 1).all()


def test_units_do_not_matter_where_features_are_independent() -> None:
    """Of two features that don't correlate, seconds or hours are the same."""
    X = np.array([[1.0, 0.0], [3.0, 0.0], [1.0, 10.0], [3.0, 10.0]])
    np.testing.assert_allclose(whiten_contexts(X * [1.0, 3600.0]), whiten_contexts(X), atol=1e-9)


def test_constant_features_become_zero() -> None:
    X = np.array([[1.0, 5.0], [3.0, 5.0]])
    np.testing.assert_allclose(whiten_contexts(X), [[-1, 0, 1], [1, 0, 1]], atol=1e-12)
    np.testing.assert_allclose(whiten_contexts(np.ones((3, 2))), [[0, 0, 1]] * 3)


def test_duplicate_features_are_one_direction() -> None:
    """With a duplicate column one direction varies, and each copy has half of it; Z Z' is as with a single column."""
    column = np.array([[-1.0], [1.0], [-1.0], [1.0]])
    whitened = whiten_contexts(np.hstack([column, column]))[:, :2]
    np.testing.assert_allclose(whitened @ whitened.T, column @ column.T, atol=1e-9)


def test_a_missing_context_stays_missing_and_affects_no_other() -> None:
    X = np.array([[1.0, 0.0], [np.nan, 1.0], [3.0, 0.0], [1.0, 10.0], [3.0, 10.0]])
    Z = whiten_contexts(X)
    assert np.isnan(Z[1]).all()
    np.testing.assert_allclose(Z[[0, 2, 3, 4]], whiten_contexts(X[[0, 2, 3, 4]]))
    assert np.isnan(whiten_contexts(np.full((2, 3), np.nan))).all()


def test_a_non_finite_feature_affects_no_other_context() -> None:
    """Its square would overflow: from 1e12 on it counts as none."""
    X = np.array([[1.0, 0.0], [1e300, 1.0], [3.0, 0.0], [1.0, 10.0], [3.0, 10.0]])
    Z = whiten_contexts(X)
    assert np.isnan(Z[1]).all()
    np.testing.assert_allclose(Z[[0, 2, 3, 4]], whiten_contexts(X[[0, 2, 3, 4]]))


def test_whitened_flash_avoids_label_noise_and_flash_does_not(tmp_path: Path) -> None:
    """40 % of the clients have 90 % of wrong labels: .36 of a random cohort's labels are wrong."""
    overrides = (
        *("clients=30", "cohort=6", "rounds=18", "model=mlp", "heterogeneity=noise_bimodal"),
        *("eval.every=18", "eval.clients_every=0", "checkpoint.every=1000"),
    )

    def noise(selector: str, seed: int) -> float:
        run = run_training(tmp_path / f"{selector}{seed}", f"selector={selector}", *overrides, f"seed={seed}")
        return float(np.mean([run.info.noise_rate[cohort].mean() for cohort in run.cohorts[5:]]))

    flash, whitened = (np.mean([noise(choice, seed) for seed in range(2)]) for choice in ("flash", "flash_whitened"))
    assert float(whitened) < min(0.9 * float(flash), 0.28)
