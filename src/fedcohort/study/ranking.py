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
from dataclasses import dataclass, replace

import numpy as np

from fedcohort.results.difference import Difference
from fedcohort.results.overall import MeanRank, SettingResults, over_families, over_seeds, rank_methods, worst_decile
from fedcohort.results.verdict import Rules, adjust, name_verdict, sign_of_verdict
from fedcohort.study.definition import BASELINE, BOUND_PREFIX, METHOD, ConditionKey, Study
from fedcohort.study.result_files import Row
from fedcohort.study.results import Results

RANKED_ROLES = (METHOD, BASELINE)
RowsByMethod = Mapping[str, Mapping[int, Row]]  # of a setting, by method and seed
ResultsBySetting = Mapping[str, Mapping[str, Mapping[int, float]]]  # results by setting, method and seed
SharedSeeds = dict[str, list[int]]  # seeds by setting


@dataclass(frozen=True)
class OverallResult:
    """A method compared with the baseline over all settings.

    Attributes:
        seeds: mean difference over these settings, with seeds as units.
        families: the same with families of settings as units; None for fewer than six of them.
        worst_decile: mean of the lowest tenth of the settings' mean differences.
        worst_setting: the setting with the lowest one.
    """

    seeds: Difference
    families: Difference | None
    worst_decile: float
    worst_setting: str

    def sign(self, rules: Rules) -> int:
        """Return 1 for a method that is significantly better over these settings, -1 for a worse one, else 0."""
        return sign_of_verdict(name_verdict(self.seeds.mean, self.seeds.p, math.nan, self.seeds.n, rules))

    def sign_elsewhere(self, rules: Rules) -> int:
        """Return 1 for a method that is significantly better over settings like these, -1 for a worse one, else 0."""
        general = self.families
        return sign_of_verdict(name_verdict(general.mean, general.p, math.nan, rules.seeds, rules)) if general else 0


@dataclass(frozen=True)
class Ranks:
    """The ranks of methods over settings.

    Attributes:
        rank_by_method: mean rank of each method, the best first.
        by_setting: rank of each method in each setting.
        seeds: seeds that are compared in each setting.
        overall: comparison of each method with the baseline, the largest mean difference first; empty if that is not
            ranked.
    """

    rank_by_method: Mapping[str, MeanRank]
    by_setting: Mapping[str, Mapping[str, float]]
    seeds: Mapping[str, Sequence[int]]
    overall: Mapping[str, OverallResult]

    @property
    def mean(self) -> dict[str, float]:
        """Mean rank of each method, the best (1) first."""
        return {method: rank.mean for method, rank in self.rank_by_method.items()}

    def rank_positions(self) -> dict[str, int]:
        """Return the position of each method by mean rank; methods with equal means share the smallest one."""
        mean_ranks = list(self.mean.values())
        return {method: 1 + sum(other_rank < mean for other_rank in mean_ranks) for method, mean in self.mean.items()}


def group_runs(study: Study, results: Results) -> dict[ConditionKey, dict[int, Row]]:
    """Return the done runs by setting and method, and by seed, in the study's order, own methods and bounds last."""
    runs: dict[ConditionKey, dict[int, Row]] = {}
    for (setting, method, seed), row in results.done_runs():
        if setting in study.settings:
            runs.setdefault((setting, method), {})[seed] = row
    settings, methods = list(study.settings), list(study.overrides)

    def sort_key(condition: ConditionKey) -> tuple[int, bool, int]:
        setting, method = condition
        method_position = methods.index(method) if method in study.overrides else len(methods)
        return settings.index(setting), method.startswith(BOUND_PREFIX), method_position

    return {condition: runs[condition] for condition in sorted(runs, key=sort_key)}


def results_by_seed(runs: Mapping[int, Row]) -> dict[int, float]:
    """Return the results of runs by seed."""
    return {seed: row["late"] for seed, row in runs.items()}


def collect_ranked_results(study: Study, results: Results) -> ResultsBySetting:
    """Return the results of the methods and the baseline by setting, method and seed."""
    result_values: dict[str, dict[str, dict[int, float]]] = {}
    for (setting, method), runs in group_runs(study, results).items():
        if study.role_of(method) in RANKED_ROLES:
            result_values.setdefault(setting, {})[method] = results_by_seed(runs)
    return result_values


def split_methods(study: Study, result_values: ResultsBySetting) -> tuple[list[str], list[str]]:
    """Return the methods that are ranked together, and the methods that lack settings or seeds."""
    methods = dict.fromkeys(method for results_by_method in result_values.values() for method in results_by_method)
    settings = {
        method: frozenset(
            name
            for name, results_by_method in result_values.items()
            if len(results_by_method.get(method, ())) >= max(1, half_seed_count(study, results_by_method))
        )
        for method in study.overrides
        if method in methods
    }
    ranked_methods = _find_largest_table(settings, study.baseline)
    for method in methods:
        if method not in study.overrides and _has_enough_seeds(study, result_values, ranked_methods, method):
            ranked_methods.append(method)
    return ranked_methods, [method for method in dict.fromkeys((*settings, *methods)) if method not in ranked_methods]


def _find_largest_table(settings: Mapping[str, frozenset[str]], baseline: str) -> list[str]:
    """Return the methods of the largest complete table of methods by settings that includes the baseline.

    settings: settings of each method. The settings of a table are those that some methods have in common.
    """
    setting_sets = {settings.get(baseline, frozenset[str]())}
    for method_settings in set(settings.values()):
        setting_sets |= {method_settings & table for table in setting_sets}
    sizes = {table: sum(table <= method_settings for method_settings in settings.values()) for table in setting_sets}
    largest_set = max(sizes, key=lambda table: (len(table) * sizes[table], sizes[table], sorted(table)))
    return [method for method, method_settings in settings.items() if largest_set and largest_set <= method_settings]


def _has_enough_seeds(study: Study, result_values: ResultsBySetting, methods: Sequence[str], method: str) -> bool:
    """Return whether a user's method has enough seeds in all settings that `methods` share, and removes no setting."""
    shared_settings = find_shared_settings(result_values, methods)
    has_enough_seeds = all(
        len(result_values[name].get(method, {}).keys() & result_values[name][study.baseline].keys())
        >= half_seed_count(study, result_values[name])
        for name in shared_settings
        if study.baseline in result_values[name]
    )
    return has_enough_seeds and set(shared_settings) == set(find_shared_settings(result_values, [*methods, method]))


def half_seed_count(study: Study, runs: Mapping[str, Sized]) -> float:
    """Return half of the number of seeds that the baseline has in a setting, at most half of the study's own."""
    return min(len(runs.get(study.baseline, ())), len(study.seeds)) / 2


def find_shared_settings(result_values: ResultsBySetting, methods: Sequence[str]) -> SharedSeeds:
    """Return the settings that all methods have, with the seeds that all of them have there."""
    shared_seeds = {
        name: sorted(set.intersection(*(set(results_by_method[method]) for method in methods)))
        for name, results_by_method in result_values.items()
        if methods and set(methods) <= set(results_by_method)
    }
    return {name: seeds for name, seeds in shared_seeds.items() if seeds}


def rank_and_compare(
    study: Study, values: ResultsBySetting, methods: Sequence[str], study_by_setting: Mapping[str, str] | None = None
) -> Ranks | None:
    """Rank methods in the settings that they share, and compare them with the baseline.

    Args:
        study: the study, which has the settings.
        values: results by setting, method and seed.
        methods: the methods that are ranked.
        study_by_setting: study of each setting, with which it shares its seeds; None for one study.

    Returns:
        The ranks; None for fewer than two methods, or without a shared setting.
    """
    shared_settings = find_shared_settings(values, methods)
    if len(methods) < 2 or not shared_settings:
        return None
    settings = {
        name: SettingResults(
            np.array([[values[name][method][seed] for seed in seeds] for method in methods]),
            seeds,
            study.settings[name].family,
            study_by_setting[name] if study_by_setting else study.name,
        )
        for name, seeds in shared_settings.items()
    }
    by_method, by_setting = rank_methods(methods, settings, study.name)
    compared_methods = [method for method in by_method if method != study.baseline] if study.baseline in methods else []
    return Ranks(by_method, by_setting, shared_settings, _compare_all(study, values, compared_methods, shared_settings))


def _compare_all(
    study: Study, values: ResultsBySetting, methods: Sequence[str], shared_settings: SharedSeeds
) -> dict[str, OverallResult]:
    """Compare each method with the baseline over the shared settings; each p is corrected over the methods."""
    family_of = {name: study.settings[name].family for name in shared_settings}
    results_by_method = {}
    for method in methods:
        differences = {
            name: {seed: values[name][method][seed] - values[name][study.baseline][seed] for seed in seeds}
            for name, seeds in shared_settings.items()
        }
        means = {name: float(np.mean(list(by_seed.values()))) for name, by_seed in differences.items()}
        by_families = over_families(differences, family_of)
        results_by_method[method] = OverallResult(over_seeds(differences, family_of), by_families, *worst_decile(means))
    p_values = adjust([result.seeds.p for result in results_by_method.values()])
    ps_families = adjust([result.families.p if result.families else math.nan for result in results_by_method.values()])
    for (method, result), p, family_p in zip(results_by_method.items(), p_values, ps_families, strict=True):
        families = result.families and replace(result.families, p=family_p)
        results_by_method[method] = replace(result, seeds=replace(result.seeds, p=p), families=families)
    return dict(sorted(results_by_method.items(), key=lambda item: np.nan_to_num(-item[1].seeds.mean, nan=math.inf)))
