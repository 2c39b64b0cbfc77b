"""Judge a study's results: differences to the baseline, the headroom, and the share of it that a method closes.

All statistics are those of `results/`. P-values are corrected by Holm over three families of tests: the methods of a
setting, the settings of a method, and all methods in all settings. Oracles, bounds and references are in no family,
and keep their own p. A method counts in the comparisons of a setting if it has half of the baseline's seeds or more:
fewer seeds say little about a spread.
"""

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from fedcohort.results.compare import CellResult, compare_results
from fedcohort.results.difference import EMPTY_DIFFERENCE, Difference, collapses_on_some_seeds, summarise_differences
from fedcohort.results.frame import read_clock_limit
from fedcohort.results.headroom import BestMethod, HeadroomShare, cross_fit_best_method, estimate_headroom_share
from fedcohort.results.overall import rank_values
from fedcohort.results.target import Cost, find_median_cost
from fedcohort.results.verdict import adjust_p_by_family, measure_power
from fedcohort.study import ranking
from fedcohort.study.definition import METHOD, ORACLE, ConditionKey, Study, list_conditions
from fedcohort.study.result_files import Row
from fedcohort.study.results import Results
from fedcohort.study.verdict import COST_NAMES, TARGET_COSTS, Headroom, MethodVerdict, PValues, SettingVerdict, Verdict

DifferencesByMethod = Mapping[str, Difference]  # of a setting, by method


def judge_study(study: Study, results: Results) -> Verdict:
    """Return the verdict on a study, with ranks of methods over settings.

    Ranks need two settings or more, and three ranked methods or more, the baseline included.

    Args:
        study: the study's definition.
        results: the study's stored results.
    """
    result_values = ranking.collect_ranked_results(study, results)
    ranks = ranking.rank_and_compare(study, result_values, ranking.split_ranked_methods(study, result_values)[0])
    has_ranks = ranks is not None and len(ranks.mean_ranks) > 2 and len(ranks.rank_table) > 1
    return replace(judge_settings(study, results), ranks=ranks if has_ranks else None)


def judge_settings(study: Study, results: Results) -> Verdict:
    """Return the verdict on each method in each setting, without ranks over settings.

    Args:
        study: the study's definition.
        results: the study's stored results.
    """
    runs = ranking.group_runs(study, results)
    result_values = {cell: {seed: run["late"] for seed, run in rows.items()} for cell, rows in runs.items()}
    untested_conditions = [condition for condition in result_values if study.find_role(condition[1]) != METHOD]
    cell_results = compare_results(result_values, untested_conditions, study.comparison_options)
    p_values = adjust_p_values(study, cell_results)
    settings, differences_by_method = {}, dict[str, list[Difference]]()
    for setting in dict.fromkeys(setting for setting, _ in runs):
        run_rows = {method: rows for (name, method), rows in runs.items() if name == setting}
        compared_methods = {method: (cell_results[setting, method], p_values[setting, method]) for method in run_rows}
        settings[setting] = _judge_setting(study, setting, run_rows, compared_methods)
        for method, verdict in settings[setting].methods.items():
            if verdict.role == METHOD and verdict.has_difference:
                differences_by_method.setdefault(method, []).append(verdict.difference)
    collapsing_methods = frozenset(
        name for name, gains in differences_by_method.items() if collapses_on_some_seeds(gains)
    )
    return Verdict(settings, None, _count_missing_seeds(study, runs), collapsing_methods)


def adjust_p_values(study: Study, cell_results: Mapping[ConditionKey, CellResult]) -> dict[ConditionKey, PValues]:
    """Return the p-values of each condition, corrected by Holm for each family of tests.

    Conditions that are not methods keep their p. Methods that are variants of one idea form one family over all
    settings, else each method does (`PValues.p_within_method`). A method with too few seeds for a verdict is in no
    family.

    Args:
        study: the study, which has the variants and the rules.
        cell_results: differences to the baseline, by condition (setting and method).
    """
    p_values = {cell: result.difference.p if result.difference else math.nan for cell, result in cell_results.items()}
    tested_p_values = {
        cell: result.difference.p
        for cell, result in cell_results.items()
        if not result.is_untested and result.difference and result.difference.n >= study.rules.min_seeds
    }
    variant_by_method = {method: group_name for group_name, methods in study.variants.items() for method in methods}
    p_within_method = p_values | adjust_p_by_family(tested_p_values, lambda c: variant_by_method.get(c[1], c[1]))
    p_in_study = adjust_p_by_family(tested_p_values, lambda _: "")
    return {
        cell: PValues(result.p, p_within_method[cell], p_in_study.get(cell, math.nan))
        for cell, result in cell_results.items()
    }


def _judge_setting(
    study: Study, setting: str, runs: ranking.RowsByMethod, compared_methods: Mapping[str, tuple[CellResult, PValues]]
) -> SettingVerdict:
    differences = {method: d for method, (result, _) in compared_methods.items() if (d := result.difference) and d.n}
    min_seeds = max(study.rules.min_seeds, ranking.halve_baseline_seed_count(study, runs))
    headroom = _find_headroom(study, setting, differences, min_seeds)
    ranks = _rank_methods_in_setting(study, runs)
    methods = {}
    for method, rows_by_seed in runs.items():
        rows, (result, p_values) = list(rows_by_seed.values()), compared_methods[method]
        difference = differences.get(method, EMPTY_DIFFERENCE)
        methods[method] = MethodVerdict(
            setting=setting,
            method=method,
            role=study.find_role(method),
            value=result.mean,
            mean_last_value=float(np.mean([run["last"] for run in rows])),
            n_diverged=sum(not math.isfinite(run["late"]) for run in rows),
            difference=difference,
            p_values=p_values,
            verdict=result.verdict if difference.n else "",
            headroom_share=_estimate_closed_headroom(study, difference, headroom),
            rank=ranks.get(method, math.nan),
            costs={name: float(np.nan_to_num([run.get(name) or 0.0 for run in rows]).mean()) for name in COST_NAMES},
            target={
                cost: find_median_cost([read_target_cost(run, cost) for run in rows]).value for cost in TARGET_COSTS
            },
            n_reached_seeds=sum(math.isfinite(run["rounds_to_target"]) for run in rows),
            n_early_ends=sum(run["virtual_s"] < read_clock_limit(run["budget"]) for run in rows),
            n_other_code_seeds=sum(bool(run["differs"]) for run in rows),
        )
    tested_gains = [d for method, d in differences.items() if study.find_role(method) == METHOD and d.n >= min_seeds]
    power = measure_power(tested_gains, study.rules)
    return SettingVerdict(setting, methods, headroom, power, _find_best_method(methods, min_seeds))


def read_target_cost(run: Row, cost_name: str) -> Cost:
    """Return what a run spent until it met its target, or until the horizon if it never did.

    `run` is its row of results; `cost_name` is `rounds`, `virtual_s` (seconds) or `bytes`.
    """
    cost = run[f"{cost_name}_to_target"]
    return Cost(run[f"{cost_name}_spent"] if math.isnan(cost) else cost, is_met=not math.isnan(cost))


def _find_headroom(study: Study, setting: str, differences: DifferencesByMethod, min_seeds: float) -> Headroom:
    """Return the headroom of a setting, the difference of its oracle to the baseline.

    With several oracles, each seed takes the one that is best on the other seeds. Below five common seeds it is that of
    the oracle with the largest mean difference.

    Args:
        study: the study's definition.
        setting: name of the setting.
        differences: differences to the baseline by method.
        min_seeds: number of seeds that an oracle needs, unless no oracle has as many.
    """
    named_oracle = study.settings[setting].oracle
    oracles = {
        method: difference
        for method, difference in differences.items()
        if study.find_role(method) == ORACLE and named_oracle in (None, method) and not difference.n_diverged
    }
    oracles_with_seeds = {method: difference for method, difference in oracles.items() if difference.n >= min_seeds}
    candidate_differences = oracles_with_seeds or oracles
    if not candidate_differences:
        return Headroom()
    best_oracle = max(candidate_differences, key=lambda method: candidate_differences[method].mean)
    difference = candidate_differences[best_oracle]
    if len(candidate_differences) > 1:
        common_seeds, difference_values = _stack_differences(candidate_differences)
        cross_fitted_mean = cross_fit_best_method(difference_values).cross_fitted_difference
        if cross_fitted_mean is not None:
            difference = summarise_differences(dict(zip(common_seeds, cross_fitted_mean.values.tolist(), strict=True)))
    is_above_zero = difference.low > 0 or (not math.isfinite(difference.half_width) and difference.mean > 0)
    is_relevant_difference = difference.mean >= study.rules.min_difference and difference.n >= study.rules.min_seeds
    return Headroom(best_oracle, difference, is_above_zero and is_relevant_difference, tuple(oracles_with_seeds))


def _stack_differences(differences: DifferencesByMethod) -> tuple[list[int], np.ndarray]:
    """Return the seeds that all methods in `differences` share, and the differences there, [methods, seeds]."""
    common_seeds = sorted(set.intersection(*(set(difference.by_seed) for difference in differences.values())))
    return common_seeds, np.array([[method.by_seed[seed] for seed in common_seeds] for method in differences.values()])


def _estimate_closed_headroom(study: Study, difference: Difference, headroom: Headroom) -> HeadroomShare | None:
    """Return the share of the headroom that a method closes; None without headroom, or with too few common seeds.

    Args:
        study: the study, which has the rules.
        difference: difference of the method to the baseline.
        headroom: headroom of the setting.
    """
    if headroom.difference is None or not headroom.has_headroom:
        return None
    seeds, (method_values, oracle_values) = _stack_differences({"method": difference, "oracle": headroom.difference})
    if len(seeds) < study.rules.min_seeds:
        return None
    return estimate_headroom_share(method_values, oracle_values, study.rules.min_difference)


def _find_best_method(methods: Mapping[str, MethodVerdict], min_seeds: float) -> tuple[str, BestMethod] | None:
    """Return the best method of a setting, and its difference to the baseline; None if no method is better than that.

    The difference is cross-fitted: the method is chosen on the other seeds.

    Args:
        methods: verdicts on the methods of the setting, by name.
        min_seeds: number of seeds that a method needs to take part.
    """
    candidate_differences = {
        method_name: method.difference
        for method_name, method in methods.items()
        if method.role == METHOD and method.difference.n >= min_seeds and not method.difference.n_diverged
    }
    if not any(methods[method_name].sign > 0 for method_name in candidate_differences):
        return None
    common_seeds, difference_values = _stack_differences(candidate_differences)
    if not common_seeds:
        return None
    best_method = cross_fit_best_method(difference_values)
    method_name = list(candidate_differences)[best_method.best_row]
    return (method_name, best_method) if methods[method_name].sign > 0 else None


def _rank_methods_in_setting(study: Study, runs: ranking.RowsByMethod) -> dict[str, float]:
    """Return the ranks of a setting's methods by mean result, 1 for the best, over their common seeds.

    Methods with less than half of the baseline's seeds are left out.

    Args:
        study: the study's definition.
        runs: rows of the setting by method and seed.
    """
    min_seeds = ranking.halve_baseline_seed_count(study, runs)
    methods = [name for name in runs if study.find_role(name) in ranking.RANKED_ROLES and len(runs[name]) >= min_seeds]
    common_seeds = sorted(set.intersection(*(set(runs[name]) for name in methods))) if methods else []
    if not common_seeds:
        return {}
    mean_results = np.array([np.mean([runs[name][seed]["late"] for seed in common_seeds]) for name in methods])
    return dict(zip(methods, rank_values(study.comparison_options.sign * mean_results).tolist(), strict=True))


def _count_missing_seeds(study: Study, runs: Mapping[ConditionKey, Mapping[int, Row]]) -> dict[ConditionKey, int]:
    """Return the number of requested seeds without a done run, by condition; complete conditions are left out.

    Args:
        study: the study, which requests the seeds.
        runs: rows of done runs by condition (setting and method) and seed.
    """
    condition_keys = sorted((condition.setting, condition.method) for condition in list_conditions(study))
    n_missing_seeds = {cell: len(set(study.list_seeds(cell[1])) - set(runs.get(cell, {}))) for cell in condition_keys}
    return {cell: n for cell, n in n_missing_seeds.items() if n}
