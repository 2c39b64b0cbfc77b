"""Diagnoses of runs: what their logs show, compared with what the simulation knows."""

from pathlib import Path

import numpy as np
import pytest

from config_options import load_options
from fedcohort.errors import CheckpointError
from fedcohort.results.diagnosis import (
    EVEN_CLASS_SHARE,
    MIN_CLASS_COVER,
    MIN_NOISE_PERSISTENCE,
    MIN_NOISE_RATE_GAP,
    MIN_PERSISTENT_SPEED,
    MIN_SPEED_GAIN,
    diagnose_run,
)
from run_harness import run_training

OVERRIDES = (
    "clients=20",
    "cohort=5",
    "model=mlp",
    "client.epochs=2",
    "eval.clients_every=0",
    "heterogeneity=iid",
    "callback=default",
    "callback.figures=null",
)
PROBES = ("selector=auto", "selector.act=false", "selector.first=6", "rounds=13")


def test_wrong_labels_that_persist(tmp_path: Path) -> None:
    """Eight of 20 clients have 90 % wrong labels; the last probe finds these eight, and their rates."""
    run = run_training(tmp_path, *OVERRIDES, *PROBES, "label_noise=bimodal", "device=instant")
    diagnosis = diagnose_run(run.folder)
    assert [look.round for look in diagnosis.probe_results] == [7, 13]
    assert (diagnosis.noise_case, diagnosis.advice) == ("persists", "noise")
    last = diagnosis.valid_probes[-1]
    assert last.noise.is_noisier.tolist() == (run.info.noise_rate > 0.5).tolist()
    np.testing.assert_allclose(last.noise.fit.noise_rate, run.info.noise_rate, atol=0.3)
    assert diagnosis.speeds is None
    assert diagnosis.n_forward_passes == 40
    assert diagnosis.probe_bytes == run.last.metrics["comm/probe_bytes"]


def test_clients_of_one_class(tmp_path: Path) -> None:
    """Five random clients of one class each hold at most five effective classes; the counts are those of the data."""
    run = run_training(tmp_path, *OVERRIDES, *PROBES, "partition=label_shards", "partition.shards=1", "client.lr=0.3")
    diagnosis = diagnose_run(run.folder)
    assert diagnosis.noise_case == "none"
    assert diagnosis.advice == "classes"
    assert diagnosis.skew is not None
    assert diagnosis.skew.n_cohort_classes < 5 < 8 < diagnosis.skew.n_all_classes
    np.testing.assert_array_equal(diagnosis.skew.counts.sum(1), run.info.n_train)
    assert diagnosis.speeds is not None


def test_equal_clients_need_no_selection(tmp_path: Path) -> None:
    diagnosis = diagnose_run(run_training(tmp_path, *OVERRIDES, *PROBES).folder)
    assert (diagnosis.noise_case, diagnosis.advice) == ("none", "random")
    assert diagnosis.availability is not None
    assert diagnosis.availability.tolist() == [1.0] * 20


def test_a_run_of_another_selector_shows_speeds_and_label_counts(tmp_path: Path) -> None:
    """Fed-CBS reads label counts and asks for no losses; persistent speeds make nearly all of the variance."""
    speed = ("device.persistent=true", "device.lam=10", "device.alpha=1", "rounds=12")
    diagnosis = diagnose_run(run_training(tmp_path, *OVERRIDES, "selector=fedcbs", *speed).folder)
    assert (diagnosis.noise_case, diagnosis.advice) == ("not_measured", "unknown")
    assert diagnosis.skew is not None
    assert diagnosis.speeds is not None
    assert diagnosis.speeds.low > 0.4
    assert diagnosis.speed_gain > 1.25


def test_availability_is_the_share_of_rounds(tmp_path: Path) -> None:
    diagnosis = diagnose_run(
        run_training(tmp_path, *OVERRIDES, "selector=random", "availability=bernoulli", "rounds=20").folder
    )
    assert diagnosis.availability is not None
    assert 0.3 < diagnosis.availability.mean() < 1.0


def test_another_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="not the folder of a run"):
        diagnose_run(tmp_path)


def test_the_thresholds_are_those_of_the_selector() -> None:
    options = load_options("selector", "auto")
    assert (options["gap"], options["persistence"]) == (MIN_NOISE_RATE_GAP, MIN_NOISE_PERSISTENCE)
    assert (options["even"], options["cover"]) == (EVEN_CLASS_SHARE, MIN_CLASS_COVER)
    assert (options["speed_bound"], options["speed_gain"]) == (MIN_PERSISTENT_SPEED, MIN_SPEED_GAIN)
