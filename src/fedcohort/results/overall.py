"""Methods over many settings: their mean difference, two claims with two units, and their ranks with an interval.

    over these settings          g(s) = mean over families of the mean over a family's settings of d; t over seeds.
    over settings like these     mean d of each family; t over the families, six or more.
    rank        rank of a method in a setting by its mean result over common seeds; 1 is best. Ties share the mean rank,
                and methods that diverged are last.
    mean rank   mean over families, with equal weights, of the mean rank over a family's settings.
    interval    percentile bootstrap over seeds and families at once (pigeonhole bootstrap, Owen 2007). Seeds are drawn
                once for all settings of a study, families with replacement.

Settings of a study share seeds and partitions. A test with settings as units (Demsar 2006) therefore rejects a true
null in 14 to 31 % of cases (Dror et al. 2017, TACL). A family is a group of settings that differ only in cohort size
or level, and families have equal weight. In simulations the interval covers the mean rank over settings like these in
92 to 95 % of cases. A bootstrap over seeds only covers it in 47 to 62 %.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from fedcohort.results.difference import EMPTY_DIFFERENCE, Difference, summarise_differences
from fedcohort.rng import new_generator

MIN_FAMILIES = 6  # least number for a claim over settings like these
WORST_SETTINGS_SHARE = 0.1
DifferencesBySetting = Mapping[str, Mapping[int, float]]  # differences by setting and seed
N_BOOTSTRAP_DRAWS = 2000
INTERVAL_PERCENTILES = (2.5, 97.5)  # percent


def group_families(settings: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the settings of each family; `settings` has the family of each setting."""
    families: dict[str, list[str]] = {}
    for setting, family in settings.items():
        families.setdefault(family, []).append(setting)
    return families


def average_over_seeds(differences: DifferencesBySetting, family_by_setting: Mapping[str, str]) -> Difference:
    """Return the mean difference to the baseline over settings; its interval has seeds, the common ones, as units.

    Args:
        differences: differences to the baseline by setting and seed.
        family_by_setting: family of each setting; families have equal weight.
    """
    if not differences:
        return EMPTY_DIFFERENCE
    families = group_families({setting: family_by_setting[setting] for setting in differences})
    common_seeds = sorted(set.intersection(*(set(difference_by_seed) for difference_by_seed in differences.values())))
    seed_means = {}
    for seed in common_seeds:
        family_means = [
            np.mean([differences[setting][seed] for setting in family_settings])
            for family_settings in families.values()
        ]
        seed_means[seed] = float(np.mean(family_means))
    return summarise_differences(seed_means)


def average_over_families(differences: DifferencesBySetting, family_by_setting: Mapping[str, str]) -> Difference | None:
    """Return the mean difference to the baseline; its interval has families of settings as units.

    It therefore generalises to similar settings. The result is None for fewer than `MIN_FAMILIES` families.

    Args:
        differences: differences to the baseline by setting and seed.
        family_by_setting: family of each setting.
    """
    families = group_families(
        {
            setting: family_by_setting[setting]
            for setting, difference_by_seed in differences.items()
            if difference_by_seed
        }
    )
    if len(families) < MIN_FAMILIES:
        return None
    means = [
        np.mean([np.mean(list(differences[name].values())) for name in family_settings])
        for family_settings in families.values()
    ]
    return summarise_differences(dict(enumerate(map(float, means))))


def find_worst_decile(mean_by_setting: Mapping[str, float]) -> tuple[float, str]:
    """Return the mean of the lowest tenth (at least one) of the settings' mean differences, and the worst setting.

    `mean_by_setting` holds the mean differences to the baseline. NaN and "" if none is finite.
    """
    finite_means = sorted((mean, setting) for setting, mean in mean_by_setting.items() if math.isfinite(mean))
    if not finite_means:
        return math.nan, ""
    lowest_means = finite_means[: max(1, math.ceil(WORST_SETTINGS_SHARE * len(finite_means)))]
    return float(np.mean([mean for mean, _ in lowest_means])), finite_means[0][1]


@dataclass(frozen=True)
class SettingResults:
    """The results of methods that are ranked together, in one setting.

    Attributes:
        values: the metric, larger is better, by method and seed.
        seeds: seed of each column of `values`.
        family: family of the setting: settings that differ only in cohort size or in the level of heterogeneity.
        study: study of the setting; the settings of a study share their seeds.
    """

    values: Float64[np.ndarray, "methods seeds"]
    seeds: Sequence[int]
    family: str
    study: str = ""


@dataclass(frozen=True)
class MeanRank:
    """The mean rank of a method over families of settings.

    Attributes:
        mean: the mean rank, 1 is best.
        low: lower end of the 95 % interval; NaN for fewer than six families.
        high: upper end of the 95 % interval; NaN for fewer than six families.
        first_share: probability that the method has the best mean rank; NaN for fewer than six families.
    """

    mean: float
    low: float
    high: float
    first_share: float


def rank_values(values: Float64[np.ndarray, "*rows methods"]) -> Float64[np.ndarray, "*rows methods"]:
    """Return the rank of each of `values` in its row, 1 for the largest; ties share their mean rank, NaN is last."""
    from scipy.stats import rankdata

    return np.asarray(rankdata(-np.where(np.isfinite(values), values, -np.inf), axis=-1))


def rank_methods(
    methods: Sequence[str], settings: Mapping[str, SettingResults], study: str
) -> tuple[dict[str, MeanRank], dict[str, dict[str, float]]]:
    """Return the mean ranks of the methods, the best first, and their ranks in each setting, by setting and method.

    Args:
        methods: name of the method in each row of the results.
        settings: results of these methods by setting.
        study: name of the study, which seeds the bootstrap.
    """
    families = group_families({setting: results.family for setting, results in settings.items()})
    ranks_by_setting = {setting: rank_values(results.values.mean(axis=1)) for setting, results in settings.items()}
    ranks_by_family = np.array(
        [np.mean([ranks_by_setting[setting] for setting in group], axis=0) for group in families.values()]
    )
    method_means = ranks_by_family.mean(axis=0)
    lower_bounds = upper_bounds = first_shares = np.full(len(method_means), np.nan)
    if len(families) >= MIN_FAMILIES:
        bootstrap_ranks = _bootstrap_ranks(settings, families, study)
        lower_bounds, upper_bounds = np.percentile(bootstrap_ranks, INTERVAL_PERCENTILES, axis=0)
        is_best_rank = bootstrap_ranks == bootstrap_ranks.min(axis=1, keepdims=True)
        first_shares = (is_best_rank / is_best_rank.sum(axis=1, keepdims=True)).mean(axis=0)
    rank_statistics = np.column_stack([method_means, lower_bounds, upper_bounds, first_shares]).tolist()
    mean_ranks = {methods[i]: MeanRank(*rank_statistics[i]) for i in np.argsort(method_means, kind="stable")}
    return mean_ranks, {
        setting: dict(zip(methods, rank_row.tolist(), strict=True)) for setting, rank_row in ranks_by_setting.items()
    }


def _bootstrap_ranks(
    settings: Mapping[str, SettingResults], families: Mapping[str, Sequence[str]], study_name: str
) -> Float64[np.ndarray, "draws methods"]:
    """Return the mean ranks in each bootstrap draw of seeds and families.

    Args:
        settings: results of the methods by setting.
        families: settings of each family.
        study_name: name of the study, which seeds the bootstrap.
    """
    seed_counts: dict[str, dict[int, np.ndarray]] = {}  # how often a draw has a seed, by study and seed
    for study in dict.fromkeys(results.study for results in settings.values()):
        seeds = sorted({seed for results in settings.values() if results.study == study for seed in results.seeds})
        generator, n = new_generator(0, f"ranks/{study_name}/{study}"), len(seeds)
        seed_counts[study] = dict(zip(seeds, generator.multinomial(n, [1 / n] * n, N_BOOTSTRAP_DRAWS).T, strict=True))
    rank_draws_by_setting = {}
    for setting, results in settings.items():
        counts = np.array([seed_counts[results.study][seed] for seed in results.seeds], dtype=float)  # [seeds, draws]
        counts[:, counts.sum(axis=0) == 0] = 1.0  # a draw without a seed of this setting takes all of them
        rank_draws_by_setting[setting] = rank_values(_average_draws(results.values, counts))
    rank_draws_by_family = np.stack(
        [np.mean([rank_draws_by_setting[setting] for setting in group], axis=0) for group in families.values()]
    )
    generator, n = new_generator(0, f"ranks/{study_name}/families"), len(families)
    family_weights = generator.multinomial(n, [1 / n] * n, N_BOOTSTRAP_DRAWS) / n
    mean_ranks: Float64[np.ndarray, "draws methods"] = np.einsum("df,fdm->dm", family_weights, rank_draws_by_family)
    return np.round(mean_ranks, 9)  # equal means stay equal


def _average_draws(
    values: Float64[np.ndarray, "methods seeds"], seed_counts: Float64[np.ndarray, "seeds draws"]
) -> Float64[np.ndarray, "draws methods"]:
    """Return each method's mean over the seeds of each draw; NaN if the draw has a seed on which the method diverged.

    Args:
        values: results of the methods by seed.
        seed_counts: how often each draw has each seed.
    """
    is_diverged = ~np.isfinite(values)
    weighted_means = np.where(is_diverged, 0.0, values) @ seed_counts / seed_counts.sum(axis=0)
    weighted_means[(is_diverged.astype(float) @ seed_counts) > 0] = np.nan
    return np.asarray(np.round(weighted_means, 12).T)
