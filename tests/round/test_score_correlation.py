"""What scores follow, in runs whose scores are known."""

from pathlib import Path

import numpy as np
import pytest

from engine_harness import make_federation
from fedcohort.round.score_correlation import ScoreCorrelation
from fedcohort.types import Selection
from round_harness import run_without_files
from run_harness import FinishedRun, run_training

RANKED = ("heterogeneity=noniid30_noise15", "label_noise.concentration=2")


def last(run: FinishedRun) -> dict[str, float]:
    return {
        name: value for name, value in run.last.metrics.items() if name.split("_")[0] in ("select/score", "select/x")
    }


def test_an_oracles_scores_correlate_with_its_signal() -> None:
    """A score of oracle_clean is 1 - noise: its ranks are the opposite ones."""
    metrics = last(run_without_files("selector=oracle_clean", *RANKED))
    assert metrics["select/score_noise"] == pytest.approx(-1)
    assert set(metrics) <= {"select/score_noise", "select/score_skew", "select/score_seconds", "select/score_samples"}
    assert abs(metrics["select/score_skew"]) < 1


def test_scores_correlate_negatively_with_slowness() -> None:
    metrics = last(run_without_files("selector=oracle_fast", "device=phones"))
    assert metrics["select/score_seconds"] == pytest.approx(-1)


def test_constant_facts_and_missing_scores_have_no_correlation() -> None:
    assert not last(run_without_files("selector=random"))
    assert "select/score_noise" not in last(run_without_files("selector=oracle_fast", "heterogeneity=iid"))


def test_score_parts_are_correlated_when_clients_are_evaluated() -> None:
    run = run_without_files("selector=flash", "rounds=6", "eval.clients_every=2", *RANKED)
    logged_steps = [report.step for report in run.reports if "select/exploit_noise" in report.metrics]
    assert logged_steps[-2:] == [4, 6]
    assert not any(step % 2 for step in logged_steps)
    assert "select/explore_noise" in run.last.metrics


def test_without_client_evaluations_the_servers_model_is_used(tmp_path: Path) -> None:
    overrides = ("selector=flash", "rounds=4", *RANKED)
    run = run_training(tmp_path / "0", *overrides, "eval.clients_every=0", "eval.every=2")
    assert [report.step for report in run.reports if "select/score_noise" in report.metrics] == [2, 4]
    run_with_evaluations = run_training(tmp_path / "1", *overrides, "eval.clients_every=1")
    for name in ("score", "exploit", "reward"):
        assert run.last.metrics[f"select/{name}_noise"] == run_with_evaluations.last.metrics[f"select/{name}_noise"]


def test_rewards_are_correlated() -> None:
    """FLASH's in round t: |L(w_{t-1}) - L(w_{t-2})| of each client, which was not asked later, over one duration."""
    run = run_without_files("selector=flash", "rounds=5", *RANKED)
    assert "select/reward_noise" not in run.reports[2].metrics, "no loss has changed before the second answer"
    for step in (3, 4, 5):
        before_previous, previous, current = (run.reports[i].clients for i in (step - 2, step - 1, step))
        changes = np.abs(previous["signal_robust_loss"] - before_previous["signal_robust_loss"])
        np.testing.assert_allclose(current["reward"], changes / np.nanmax(before_previous["finish_s"]), rtol=1e-6)
        assert {"select/reward_noise", "select/reward_skew"} <= set(run.reports[step].metrics)


def test_reward_correlations_need_no_scores() -> None:
    """Of three clients two have one: the slower is worth more."""
    selection = Selection(np.arange(2), reward=np.array([3.0, 1.0, np.nan]))
    correlations = ScoreCorrelation(make_federation(), np.array([9.0, 5.0, 7.0])).measure_correlations(selection)
    assert correlations["select/reward_seconds"] == 1
    assert not ScoreCorrelation(make_federation(), np.array([9.0, 5.0, 7.0])).measure_correlations(
        Selection(np.arange(2))
    )
