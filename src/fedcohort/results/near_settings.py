"""The settings of our studies that are nearest to a measured federation, and what happened there.

    distance of federations x and y:  sqrt(J / n sum_j ((x_j - y_j) / s_j)^2)

The sum is over those n of the J `DESCRIPTOR_NAMES` that are known of the federation x. s_j is the standard deviation of
descriptor j over the settings. The factor J / n makes distances with a different number of descriptors comparable.

`near_settings.csv` has one row per setting. Its descriptors were measured as `fedcohort diagnose` measures them, and
its outcomes follow from the results of the studies (`tests/whole/test_near_settings_claims.py` writes the file). The
settings are evidence for a reader. No advice depends on them, because small errors of the descriptors change the order.
"""

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from jaxtyping import Float64

from fedcohort.results.diagnosis import RunDiagnosis
from fedcohort.types import Values

# Gap between the groups of clients and mean excess rate of wrong labels; effective classes of clients and of random
# cohorts as shares of the federation's; coefficient of variation of sizes; whether the virtual clock ends the run, and
# which share of the variance of speeds persists if it does, otherwise 0; mean share of rounds with an available client.
DESCRIPTOR_NAMES = (
    *("noise_gap", "mean_noise_rate", "client_classes", "cohort_classes"),
    *("size_variation", "clock", "persistent_speed", "availability"),
)
SETTINGS_TABLE_FILE = Path(__file__).with_suffix(".csv")
N_NEAREST_SETTINGS = 3
MIN_KNOWN_SHARE = 0.5  # of the descriptors, below which a distance says nothing
USUAL_DISTANCE_QUANTILE = 0.75  # of the distances from each setting to the nearest one of another study


def describe_federation(diagnosis: RunDiagnosis) -> Values:
    """Return the `DESCRIPTOR_NAMES` of a diagnosed federation, [J]; NaN for those that its log does not show."""
    noise = diagnosis.valid_probes[-1].noise if diagnosis.valid_probes else None
    skew, speeds = diagnosis.skew, diagnosis.speeds
    has_clock = diagnosis.info.config.get("until", {}).get("virtual_s") is not None
    unknown_speed = math.nan if has_clock else 0.0
    return np.array(
        [
            *((noise.gap, noise.fit.noise_rate.mean()) if noise else (math.nan, math.nan)),
            skew.n_client_classes.mean() / skew.n_all_classes if skew else math.nan,
            skew.n_cohort_classes / skew.n_all_classes if skew else math.nan,
            skew.size_variation if skew else math.nan,
            float(has_clock),
            speeds.rho if speeds and has_clock else unknown_speed,
            math.nan if diagnosis.availability is None else diagnosis.availability.mean(),
        ]
    )


@dataclass(frozen=True)
class StudySetting:
    """A setting of a study, and what happened there.

    Differences are to random selection at the horizon, in points of test accuracy with 95 % intervals over the seeds.

    Attributes:
        facts: texts by name. `study`, `setting`, `label`, `dataset`, `kinds` of heterogeneity, `horizon`, `seeds` and
            `random` (accuracy in per cent). `selectors` is the number of published selectors that ran with every seed.
            The difference of the best one is `best_points`, and `best` its option. `worst` and `worst_points` are those
            of the selector that lost most. `auto_points` is the difference of `selector=auto`, "" if it did not run.
        descriptors: its `DESCRIPTOR_NAMES`, [J]; all are known.
    """

    facts: Mapping[str, str]
    descriptors: Values


@cache
def load_settings() -> Sequence[StudySetting]:
    """Return the settings of `near_settings.csv`, in its order."""
    with SETTINGS_TABLE_FILE.open(newline="") as table_file:
        rows = list(csv.DictReader(table_file))
    return [
        StudySetting(
            {name: descriptor_text for name, descriptor_text in row.items() if name not in DESCRIPTOR_NAMES},
            np.array([float(row[name]) for name in DESCRIPTOR_NAMES]),
        )
        for row in rows
    ]


def measure_distances(descriptors: Values, setting_descriptors: Float64[np.ndarray, "_s _j"]) -> Values:
    """Return the distance of a federation to each setting, [S]; infinity if fewer than half of its values are known.

    Args:
        descriptors: descriptors of the federation, [J]; NaN where unknown.
        setting_descriptors: descriptors of the settings, [S, J].
    """
    is_known = np.isfinite(descriptors)
    if is_known.mean() < MIN_KNOWN_SHARE:
        return np.full(len(setting_descriptors), np.inf)
    descriptor_scales = setting_descriptors.std(axis=0)
    scaled_differences = (setting_descriptors - descriptors) / np.where(descriptor_scales > 0, descriptor_scales, 1.0)
    return np.asarray(np.sqrt(len(descriptors) * (scaled_differences[:, is_known] ** 2).mean(1)), np.float64)


def find_near_settings(
    descriptors: Values, settings: Sequence[StudySetting]
) -> tuple[Sequence[tuple[float, StudySetting]], float]:
    """Return the `N_NEAREST_SETTINGS` settings with their distances, the nearest first, and the usual nearest distance.

    The usual distance is that within which `USUAL_DISTANCE_QUANTILE` of the settings have a setting of another study.
    If its nearest setting is farther, a federation is like none of them. Settings at an infinite distance are left out.

    Args:
        descriptors: `DESCRIPTOR_NAMES` of the federation, [J]; NaN where unknown.
        settings: settings of two studies or more.
    """
    descriptor_table = np.stack([setting.descriptors for setting in settings])
    distances = measure_distances(descriptors, descriptor_table)
    nearest_indices = [
        int(i) for i in np.argsort(distances, kind="stable")[:N_NEAREST_SETTINGS] if np.isfinite(distances[i])
    ]
    studies = np.array([setting.facts["study"] for setting in settings])
    other_study_distances = [
        measure_distances(row, descriptor_table)[studies != study].min()
        for row, study in zip(descriptor_table, studies, strict=True)
    ]
    usual_distance = float(np.quantile(other_study_distances, USUAL_DISTANCE_QUANTILE))
    return [(float(distances[i]), settings[i]) for i in nearest_indices], usual_distance
