"""The settings nearest to a federation: distances in closed form, their order, and descriptors that are not known."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from excess_loss_example import LOSSES
from fedcohort.diagnosis.class_balance import effective_classes
from fedcohort.diagnosis.label_noise import estimate_noise
from fedcohort.diagnosis.speeds import SpeedEstimate
from fedcohort.results.diagnosis import ClassSkew, ProbeResult, RunDiagnosis
from fedcohort.results.near_settings import (
    DESCRIPTOR_NAMES,
    StudySetting,
    describe_federation,
    find_near_settings,
    load_settings,
    measure_distances,
)
from record.example_run import make_run_info

CORNERS = np.array([[0.0, 0], [2, 0], [0, 4], [2, 4]])  # standard deviations 1 and 2


def make_settings(*positions: float) -> list[StudySetting]:
    """Return settings of different studies that differ in the first descriptor only."""
    return [
        StudySetting({"study": str(position)}, np.array([position, *np.zeros(len(DESCRIPTOR_NAMES) - 1)]))
        for position in positions
    ]


def test_distances_are_euclidean_in_standard_deviations() -> None:
    """(1, 2) is at (+-1 / 1, +-2 / 2) from each corner; the origin is at 2 from (2, 0) and (0, 4)."""
    np.testing.assert_allclose(measure_distances(np.array([1.0, 2]), CORNERS), np.sqrt([2.0, 2, 2, 2]))
    np.testing.assert_allclose(measure_distances(np.array([0.0, 0]), CORNERS), [0, 2, 2, np.sqrt(8)])


def test_unknown_descriptors_do_not_count() -> None:
    """One of two terms is known: its square counts twice. Less than half of three terms is no comparison."""
    np.testing.assert_allclose(measure_distances(np.array([np.nan, 0]), CORNERS), np.sqrt(2) * np.array([0, 0, 2, 2]))
    descriptors = np.hstack([CORNERS, CORNERS[:, :1]])
    assert np.isinf(measure_distances(np.array([np.nan, np.nan, 1]), descriptors)).all()


def test_the_nearest_settings_come_first() -> None:
    """Nearest distances of 0, 1, 3, 7 and 100 are 1, 1, 2, 4 and 93 of the deviation; the fourth is the usual one."""
    settings = make_settings(0, 1, 3, 7, 100)
    near, usual_distance = find_near_settings(make_settings(2.6)[0].descriptors, settings)
    assert [setting.facts["study"] for _, setting in near] == ["3", "1", "0"]
    deviation = np.std([0, 1, 3, 7, 100])
    np.testing.assert_allclose([distance * deviation for distance, _ in near], [0.4, 1.6, 2.6])
    assert usual_distance * deviation == pytest.approx(4)
    assert find_near_settings(np.full(len(DESCRIPTOR_NAMES), np.nan), settings)[0] == []


def test_descriptors_of_a_diagnosis(tmp_path: Path) -> None:
    """A run without a clock has no persistent speed that counts; one without reports has availability alone."""
    counts, noise = LOSSES.class_counts, estimate_noise(LOSSES)
    info = make_run_info(tmp_path, clients=6, noise_rate=np.zeros(6))
    skew = ClassSkew(counts, effective_classes(counts), 1.5, 2.0)
    probe = ProbeResult(13, np.arange(6), LOSSES, replace(noise, gap=0.6))
    speeds = SpeedEstimate(0.8, 0.6, 0.9, np.zeros(6), 0.1)
    diagnosis = RunDiagnosis(info, 25, [probe], skew, speeds, 1.0, np.full(6, 0.5), 0.0, 6)
    expected = [
        0.6,
        noise.fit.noise_rate.mean(),
        skew.n_client_classes.mean() / 2,
        0.75,
        skew.size_variation,
        0,
        0,
        0.5,
    ]
    np.testing.assert_allclose(describe_federation(diagnosis), expected)
    clock = replace(info, config={**info.config, "until": {"virtual_s": 60.0}})
    np.testing.assert_allclose(describe_federation(replace(diagnosis, info=clock))[5:], [1, 0.8, 0.5])
    unknown = describe_federation(RunDiagnosis(clock, 25, [], None, None, 1.0, np.ones(6), 0.0, 0))
    np.testing.assert_array_equal(unknown, [*[np.nan] * 5, 1, np.nan, 1])


def test_the_packaged_settings_have_all_descriptors() -> None:
    table = np.stack([setting.descriptors for setting in load_settings()])
    assert table.shape[1] == len(DESCRIPTOR_NAMES)
    assert np.isfinite(table).all()
    assert (table.std(0) > 0).all()


def test_the_usual_distance_is_that_to_another_study() -> None:
    """0 and 1 are of one study, 4 of another: their distances are 4, 3 and 3, with the quantile 3.5."""
    settings = make_settings(0, 1, 4)
    settings[1] = replace(settings[1], facts={"study": "0"})
    usual_distance = find_near_settings(settings[0].descriptors, settings)[1]
    assert usual_distance * np.std([0, 1, 4]) == pytest.approx(3.5)
