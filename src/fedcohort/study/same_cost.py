"""Reference methods of equal cost, option `same_cost` of `study.yaml`: the baseline at the cost of another method.

    random_same_bytes: {of: powd, equal: bytes}

Its run with a seed ends after the first round in which it has spent what the run of `of` with the same seed and in the
same setting spent: bytes (`until.bytes`) or client FLOPs (`until.client_flops`). Its `overrides` are by default
those of the baseline and the cohort size of `of`. It has more rounds or fewer than other runs of the study, and no
limit of virtual time. Runs of `of` are therefore done first.

The baseline's own run with that seed is the reference if it has the same overrides, and the same cost up to the mean
cost of one of its rounds. No further run is done then. A run with a limit exceeds it by a part of a round, too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from fedcohort import ranges
from fedcohort.errors import OptionError
from fedcohort.results.difference import summarise_differences
from fedcohort.study import checks, definition
from fedcohort.study.definition import (
    CLOCK_LIMIT_OPTION,
    Condition,
    CostReference,
    Overrides,
    RunKey,
    Study,
    find_option,
)
from fedcohort.study.ranking import group_runs
from fedcohort.study.result_files import DONE, Row
from fedcohort.study.results import Results

COST_NAMES = {"bytes": "bytes", "client_flops": "client FLOPs"}
MAX_ROUNDS_RATIO = 100  # largest number of rounds of a reference, relative to the run whose cost it has


def read_cost_references(
    study_options: Mapping[str, Any], overrides: Mapping[str, Overrides], settings: Mapping[str, definition.Setting]
) -> dict[str, CostReference]:
    """Return the reference methods of the option `same_cost`, whose runs end at another method's cost, by name.

    Raises `OptionError` for a wrong option, and if the study has a `horizon` as well. It is also raised for a setting
    that has a reference but not the method whose cost the reference has.

    Args:
        study_options: the options of `study.yaml`.
        overrides: overrides of the other methods by name, the baseline first.
        settings: the settings by name.
    """
    cost_references, horizon = dict[str, CostReference](), study_options["horizon"]
    baseline, *methods = overrides
    for reference, reference_value in checks.read_named_mapping("same_cost", study_options["same_cost"]).items():
        option_path, options = f"same_cost.{reference}", checks.read_mapping(f"same_cost.{reference}", reference_value)
        checks.check_option_names(option_path, options, ("of", "equal", "overrides"), ("of", "equal"))
        if reference in overrides:
            raise OptionError(f"same_cost: {reference} is already the name of a method: choose another name")
        ranges.choice(f"{option_path}.of", options["of"], *methods)
        ranges.choice(f"{option_path}.equal", options["equal"], *COST_NAMES)
        cost_references[reference] = make_cost_reference(overrides, baseline, options["of"], options["equal"])
        if "overrides" in options:
            reference_overrides = checks.read_overrides(f"{option_path}.overrides", options["overrides"])
            if limits := [o for o in reference_overrides if find_option(o).partition(".")[0] in ("rounds", "until")]:
                reason_text = f"contradicts of: {options['of']}, whose cost ends the runs"
                raise OptionError(f"{option_path}.overrides: {limits[0]} {reason_text}. Leave it out")
            cost_references[reference] = replace(cost_references[reference], overrides=reference_overrides)
    if cost_references and horizon is not None:
        raise OptionError(
            f"horizon={horizon} contradicts same_cost, whose runs may have more rounds: leave out one of the two"
        )
    for (name, setting), reference in product(settings.items(), cost_references):
        method, setting_methods = cost_references[reference].method, setting.methods or ()
        if reference in setting_methods and method not in setting_methods:
            raise OptionError(f"settings.{name}.methods: {reference} needs the runs of {method}: add {method}")
    return cost_references


def make_cost_reference(overrides: Mapping[str, Overrides], baseline: str, method: str, cost: str) -> CostReference:
    """Return the reference of `method`: the baseline with its cohort size, whose runs end at the cost of its runs.

    `overrides` has the overrides of `method` and of `baseline`; `cost`, a key of `COST_NAMES`, is the equal cost.
    """
    cohort_overrides = [override for override in overrides[method] if find_option(override) == "cohort"]
    return CostReference(method, cost, (*overrides[baseline], *cohort_overrides))


def resolve_conditions(
    study: Study, conditions: Sequence[Condition], seeds: Sequence[int], rows: Mapping[RunKey, Row]
) -> list[Condition]:
    """Replace each condition of a reference in `same_cost` by one per seed, which ends at the cost of another method.

    The cost is that of the other method's run with the same seed. Where this run is not done, `awaited_method` of the
    condition has the method's name.

    Args:
        study: the study, which has the references.
        conditions: conditions of the study.
        seeds: seeds that are requested.
        rows: the stored rows by setting, method and seed.
    """
    resolved_conditions = []
    for condition in conditions:
        if condition.method not in study.same_cost:
            resolved_conditions.append(condition)
            continue
        for seed in condition.seeds or seeds:
            resolved_conditions.append(replace(_limit_reference_cost(study, condition, seed, rows), seeds=(seed,)))
    return resolved_conditions


def _limit_reference_cost(study: Study, condition: Condition, seed: int, rows: Mapping[RunKey, Row]) -> Condition:
    """Return the condition of a reference for one seed, whose run ends at the cost of the other method's run.

    Args:
        study: the study, which has the reference.
        condition: condition of the reference, without a limit.
        seed: seed of the run.
        rows: the stored rows by setting, method and seed.
    """
    setting, reference = condition.setting, study.same_cost[condition.method]
    run, baseline_row = (rows.get((setting, method, seed)) for method in (reference.method, study.baseline))
    if run is None or run["status"] != DONE:
        return replace(condition, awaited_method=reference.method)
    cost_limit = float(run[reference.cost_name])
    has_baseline_overrides = condition.overrides == study.list_overrides(setting, study.overrides[study.baseline])
    if has_baseline_overrides and baseline_row is not None and baseline_row["status"] == DONE:
        baseline_cost = baseline_row[reference.cost_name]
        if abs(baseline_cost - cost_limit) < baseline_cost / max(baseline_row["rounds"], 1):
            return condition
    limit_overrides = [f"until.{reference.cost_name}={cost_limit!r}", f"rounds={MAX_ROUNDS_RATIO * run['rounds']}"]
    limit_overrides += [
        f"{CLOCK_LIMIT_OPTION}=null" for override in condition.overrides if find_option(override) == CLOCK_LIMIT_OPTION
    ]
    return replace(condition, overrides=definition.merge_overrides(condition.overrides, limit_overrides))


def compare_with_references(study: Study, results: Results) -> list[dict[str, object]]:
    """Return the differences of methods to the reference methods that have their cost.

    There is one dictionary per setting and reference.

    Args:
        study: the study, which has the references.
        results: the study's stored results.

    Returns:
        Dictionaries with the keys below.
        setting, method, reference, cost: labels.
        difference: difference of the method to its reference, over their common seeds.
        rounds: rounds of the reference's runs with these seeds.
        same_run: number of these seeds where the baseline's own run is the reference.
        short: number of these seeds where the reference's rounds ended before its limit.
    """
    runs, sign, comparisons = group_runs(study, results), study.comparison_options.sign, []
    for setting, reference_name in product(study.settings, study.same_cost):
        reference = study.same_cost[reference_name]
        methods = (reference.method, reference_name, study.baseline)
        method_rows, reference_rows, baseline_rows = (runs.get((setting, method), {}) for method in methods)
        if seeds := sorted(method_rows.keys() & reference_rows.keys()):
            rounds = {seed: reference_rows[seed]["rounds"] for seed in seeds}
            difference_by_seed = {
                seed: sign * (method_rows[seed]["late"] - reference_rows[seed]["late"]) for seed in seeds
            }
            budget_pairs = [
                (baseline_rows.get(seed, {}).get("budget"), reference_rows[seed]["budget"]) for seed in seeds
            ]
            comparison: dict[str, object] = {"setting": study.settings[setting].label, "method": reference.method}
            comparison |= {"reference": reference_name, "cost": COST_NAMES[reference.cost_name]}
            comparison |= {"difference": summarise_differences(difference_by_seed)}
            comparison |= {"rounds": list(rounds.values()), "same_run": sum(a == b for a, b in budget_pairs)}
            comparison["short"] = sum(rounds[seed] >= MAX_ROUNDS_RATIO * method_rows[seed]["rounds"] for seed in seeds)
            comparisons.append(comparison)
    return comparisons
