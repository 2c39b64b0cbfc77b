"""Rank methods over settings: which methods are ranked together, on which seeds, and their overall differences.

    main      the methods of `study.yaml` in the largest table of methods by settings without a gap. In each setting
              of the table each of them, the baseline included, has half of the baseline's seeds or more. A method with
              few runs, or a setting with few methods, therefore removes no other from the ranks.
    own       a user's own method joins them if it has half of the baseline's seeds or more in each setting of the
              table, and shares seeds with all methods there.
    shared    the settings that all of these methods have, and the seeds that all of them have there.
    ranks     those of `results.overall`: families of settings have equal weight.
    overall   the two claims of `results.overall` on each method. Holm corrects the p of either over the methods.

Only the study's own seeds of the baseline count. A user's own method on more seeds leaves the other methods unchanged.
"""

import math
from collections.abc import Mapping, Sequence, Sized
from dataclasses import replace

import numpy as np

from fedcohort.results import overall
from fedcohort.results.verdict import adjust_p_by_holm
from fedcohort.study.definition import BASELINE, BOUND_PREFIX, METHOD, ConditionKey, Study
from fedcohort.study.result_files import Row
from fedcohort.study.results import Results
from fedcohort.study.verdict import OverallResult, Ranks

RANKED_ROLES = (METHOD, BASELINE)
RowsByMethod = Mapping[str, Mapping[int, Row]]  # of a setting, by method and seed
ResultsBySetting = Mapping[str, Mapping[str, Mapping[int, float]]]  # results by setting, method and seed
SharedSeeds = dict[str, list[int]]  # seeds by setting


def group_runs(study: Study, results: Results) -> dict[ConditionKey, dict[int, Row]]:
    """Return the rows of done runs by condition (setting and method), and by seed.

    The order is that of the study, with a user's own methods and bounds last in each setting. `results` are the stored
    results of `study`.
    """
    runs: dict[ConditionKey, dict[int, Row]] = {}
    for (setting, method, seed), run in results.done_runs():
        if setting in study.settings:
            runs.setdefault((setting, method), {})[seed] = run
    settings, methods = list(study.settings), list(study.overrides)

    def make_condition_sort_key(condition: ConditionKey) -> tuple[int, bool, int]:
        setting, method = condition
        method_position = methods.index(method) if method in study.overrides else len(methods)
        return settings.index(setting), method.startswith(BOUND_PREFIX), method_position

    return {condition: runs[condition] for condition in sorted(runs, key=make_condition_sort_key)}


def collect_ranked_results(study: Study, results: Results) -> ResultsBySetting:
    """Return the results of the methods and the baseline of `study` by setting, method and seed; larger is better.

    `results` are the study's stored results, which are negated here if smaller values of the metric are better.
    """
    result_values, sign = dict[str, dict[str, dict[int, float]]](), study.comparison_options.sign
    for (setting, method), runs in group_runs(study, results).items():
        if study.find_role(method) in RANKED_ROLES:
            result_values.setdefault(setting, {})[method] = {seed: sign * run["late"] for seed, run in runs.items()}
    return result_values


def split_ranked_methods(study: Study, result_values: ResultsBySetting) -> tuple[list[str], list[str]]:
    """Return the methods that are ranked together, and the methods that lack settings or seeds.

    Args:
        study: the study's definition.
        result_values: results by setting, method and seed.
    """
    methods = dict.fromkeys(method for results_by_method in result_values.values() for method in results_by_method)
    settings = {
        method: frozenset(
            setting_name
            for setting_name, results_by_method in result_values.items()
            if len(results_by_method.get(method, ())) >= max(1, halve_baseline_seed_count(study, results_by_method))
        )
        for method in study.overrides
        if method in methods
    }
    ranked_methods = _find_largest_method_group(settings, study.baseline)
    for method in methods:
        if method not in study.overrides and _can_rank_user_method(study, result_values, ranked_methods, method):
            ranked_methods.append(method)
    return ranked_methods, [method for method in dict.fromkeys((*settings, *methods)) if method not in ranked_methods]


def _find_largest_method_group(settings: Mapping[str, frozenset[str]], baseline: str) -> list[str]:
    """Return the methods of the largest table, methods by settings, in which each cell has results.

    The baseline is one of the methods. Size is the number of cells.

    Args:
        settings: names of the settings in which each method has results.
        baseline: name of the baseline.
    """
    setting_groups = {settings.get(baseline, frozenset[str]())}
    for method_settings in set(settings.values()):
        setting_groups |= {method_settings & group for group in setting_groups}
    n_methods_by_group = {
        group: sum(group <= method_settings for method_settings in settings.values()) for group in setting_groups
    }
    largest_group = max(
        n_methods_by_group,
        key=lambda group: (len(group) * n_methods_by_group[group], n_methods_by_group[group], sorted(group)),
    )
    return [method for method in settings if largest_group and largest_group <= settings[method]]


def _can_rank_user_method(study: Study, result_values: ResultsBySetting, methods: Sequence[str], method: str) -> bool:
    """Return whether a user's method can be ranked without removing a setting from the ranks.

    Args:
        study: the study's definition.
        result_values: results by setting, method and seed.
        methods: the methods that are ranked already.
        method: name of the user's method.
    """
    shared_settings = find_shared_settings(result_values, methods)
    has_enough_seeds = all(
        len(result_values[setting_name].get(method, {}).keys() & result_values[setting_name][study.baseline].keys())
        >= halve_baseline_seed_count(study, result_values[setting_name])
        for setting_name in shared_settings
        if study.baseline in result_values[setting_name]
    )
    return has_enough_seeds and set(shared_settings) == set(find_shared_settings(result_values, [*methods, method]))


def halve_baseline_seed_count(study: Study, runs: Mapping[str, Sized]) -> float:
    """Return half of the number of seeds that the baseline has in a setting, at most half of the study's own.

    `runs` holds the runs of the setting, by method and seed.
    """
    return min(len(runs.get(study.baseline, ())), len(study.seeds)) / 2


def find_shared_settings(result_values: ResultsBySetting, methods: Sequence[str]) -> SharedSeeds:
    """Return the settings in which all `methods` have results, with the seeds that all of them share there.

    `result_values` are results by setting, method and seed.
    """
    shared_seeds = {
        setting_name: sorted(set.intersection(*(set(results_by_method[method]) for method in methods)))
        for setting_name, results_by_method in result_values.items()
        if methods and set(methods) <= set(results_by_method)
    }
    return {setting_name: seeds for setting_name, seeds in shared_seeds.items() if seeds}


def rank_and_compare(study: Study, result_values: ResultsBySetting, methods: Sequence[str]) -> Ranks | None:
    """Rank methods in the settings that they share, and compare them with the baseline.

    The settings of a study share their seeds. In joined studies, settings are named `<study>/<setting>`.

    Args:
        study: the study, which has the settings.
        result_values: results by setting, method and seed.
        methods: the methods that are ranked.

    Returns:
        The ranks; None for fewer than two methods, or without a shared setting.
    """
    shared_settings = find_shared_settings(result_values, methods)
    if len(methods) < 2 or not shared_settings:
        return None
    settings = {
        setting_name: overall.SettingResults(
            np.array([[result_values[setting_name][method][seed] for seed in seeds] for method in methods]),
            seeds,
            study.settings[setting_name].family,
            setting_name.rpartition("/")[0] or study.name,
        )
        for setting_name, seeds in shared_settings.items()
    }
    all_ranks, rank_table = overall.rank_methods(methods, settings, study.name)
    compared_methods = [method for method in all_ranks if method != study.baseline] if study.baseline in methods else []
    overall_results = _compare_with_baseline(study, result_values, compared_methods, shared_settings)
    return Ranks(all_ranks, rank_table, shared_settings, overall_results)


def _compare_with_baseline(
    study: Study, result_values: ResultsBySetting, methods: Sequence[str], shared_settings: SharedSeeds
) -> dict[str, OverallResult]:
    """Return the comparison of each method with the baseline, with p corrected by Holm over the methods.

    The method with the largest mean difference is first.

    Args:
        study: the study's definition.
        result_values: results by setting, method and seed.
        methods: the methods that are compared.
        shared_settings: the settings that are compared, each with its common seeds.
    """
    family_by_setting = {name: study.settings[name].family for name in shared_settings}
    overall_by_method = {}
    for method in methods:
        differences = {
            name: {
                seed: result_values[name][method][seed] - result_values[name][study.baseline][seed] for seed in seeds
            }
            for name, seeds in shared_settings.items()
        }
        mean_gains = {name: float(np.mean(list(gain_by_seed.values()))) for name, gain_by_seed in differences.items()}
        seed_mean = overall.average_over_seeds(differences, family_by_setting)
        family_mean = overall.average_over_families(differences, family_by_setting)
        overall_by_method[method] = OverallResult(seed_mean, family_mean, *overall.find_worst_decile(mean_gains))
    p_values = adjust_p_by_holm([result.seeds.p for result in overall_by_method.values()])
    family_means = [result.family_mean for result in overall_by_method.values()]
    family_p_values = adjust_p_by_holm([mean.p if mean else math.nan for mean in family_means])
    for (method, result), p, family_p_value in zip(overall_by_method.items(), p_values, family_p_values, strict=True):
        family_mean = result.family_mean and replace(result.family_mean, p=family_p_value)
        overall_by_method[method] = replace(result, seeds=replace(result.seeds, p=p), family_mean=family_mean)
    return dict(sorted(overall_by_method.items(), key=lambda item: np.nan_to_num(-item[1].seeds.mean, nan=math.inf)))
