"""The mean difference of a method over many settings: two claims with two units.

    over these settings          g(s) = mean over families of the mean over a family's settings of d; t over seeds.
    over settings like these     mean d of each family; t over the families, six or more.

Settings of a study share seeds and partitions. A test with settings as units (Demsar 2006) therefore rejects a true
null in 14 to 31 % of cases (Dror et al. 2017, TACL). A family is a group of settings that differ only in cohort size
or level, and families have equal weight.
"""

import math
from collections.abc import Mapping

import numpy as np

from fedcohort.results.difference import NO_DIFFERENCE, Difference, summarise_differences

FAMILIES = 6  # least number for a claim over settings like these
DECILE = 0.1
BySetting = Mapping[str, Mapping[int, float]]  # differences by setting and seed


def group_families(settings: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the settings of each family; settings: family of each setting."""
    families: dict[str, list[str]] = {}
    for setting, family in settings.items():
        families.setdefault(family, []).append(setting)
    return families


def over_seeds(differences: BySetting, family_of: Mapping[str, str]) -> Difference:
    """Return the mean difference over these settings, with seeds as units, over the seeds that all settings have."""
    if not differences:
        return NO_DIFFERENCE
    families = group_families({setting: family_of[setting] for setting in differences})
    common = sorted(set.intersection(*(set(by_seed) for by_seed in differences.values())))
    means = {
        seed: float(
            np.mean([np.mean([differences[setting][seed] for setting in group]) for group in families.values()])
        )
        for seed in common
    }
    return summarise_differences(means)


def over_families(differences: BySetting, family_of: Mapping[str, str], least: int = FAMILIES) -> Difference | None:
    """Return the mean difference over settings like these, with families as units; None for fewer than `least`."""
    families = group_families({setting: family_of[setting] for setting, by_seed in differences.items() if by_seed})
    if len(families) < least:
        return None
    means = [np.mean([np.mean(list(differences[name].values())) for name in group]) for group in families.values()]
    return summarise_differences(dict(enumerate(map(float, means))))


def worst_decile(means: Mapping[str, float]) -> tuple[float, str]:
    """Return the mean of the lowest tenth (at least one) of the settings' mean differences, and the worst setting."""
    finite = sorted((mean, setting) for setting, mean in means.items() if math.isfinite(mean))
    if not finite:
        return math.nan, ""
    lowest = finite[: max(1, math.ceil(DECILE * len(finite)))]
    return float(np.mean([mean for mean, _ in lowest])), finite[0][1]
