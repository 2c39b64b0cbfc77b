"""The data of a study's templates: the outcome of its settings, notes on its runs, and missing runs."""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from fedcohort import units
from fedcohort.results.target import judge_speed_up
from fedcohort.results.verdict import FASTER, adjust_p_by_family
from fedcohort.study.definition import BOUND_PREFIX, METHOD, Study, find_clock_limit, format_method
from fedcohort.study.measure import N_COMPARED_ROUNDS
from fedcohort.study.number_formats import format_integer_range
from fedcohort.study.result_files import DONE, Row
from fedcohort.study.results import Results
from fedcohort.study.same_cost import compare_with_references
from fedcohort.study.speed import Speeds
from fedcohort.study.verdict import SettingVerdict, Verdict

# Kinds of settings. BETTER: a method is better. UNUSED_HEADROOM_KIND: an oracle is better, but no method.
# NO_HEADROOM_KIND: no interval of an oracle reaches above `verdict.detectable_difference`. UNCLEAR: none of these.
BETTER_KIND, UNUSED_HEADROOM_KIND, NO_HEADROOM_KIND, UNCLEAR_SETTING_KIND = SETTING_KINDS = (
    "won",
    "unused",
    "nothing",
    "open",
)
SETTING_KINDS_ON_PAGE = (
    BETTER_KIND,
    UNUSED_HEADROOM_KIND,
    UNCLEAR_SETTING_KIND,
    NO_HEADROOM_KIND,
)  # in the order of pages


def summarise_study(study: Study, results: Results, verdict: Verdict, speeds_by_cost: Speeds) -> dict[str, Any]:
    """Return the data of the first paragraphs of a study's page.

    Args:
        study: the study's definition.
        results: the study's stored results.
        verdict: the study's verdict.
        speeds_by_cost: speed-ups by cost, and by setting and method.

    Returns:
        A dictionary with the keys below.
        settings: pairs of outcome and verdict of the settings with results, sorted by outcome.
        counts: number of settings by outcome.
        tests: number of tests of methods in all settings.
        won_over_all: number of settings where a method is better after one correction over all tests.
        horizons: budgets of the baseline's runs, in words.
        has_clock: whether virtual time ends runs of a setting.
        seeds: numbers of paired seeds of the methods, as "3 to 5".
        faster: number of settings whose target was met, and of those where a method is faster, by cost; None without a
            target.
    """
    settings = [(classify_setting(study, setting), setting) for setting in verdict.settings.values()]
    kind_counts = Counter(setting_kind for setting_kind, _ in settings)
    budgets = dict.fromkeys(run["budget"] for (_, method, _), run in results.done_runs() if method == study.baseline)
    return {
        "settings": sorted(settings, key=lambda kind_and_setting: SETTING_KINDS_ON_PAGE.index(kind_and_setting[0])),
        "counts": {setting_kind: kind_counts[setting_kind] for setting_kind in SETTING_KINDS},
        "tests": verdict.n_tests,
        "won_over_all": sum(setting.has_sure_winner(study.rules.alpha) for setting in verdict.settings.values()),
        "horizons": list(dict.fromkeys(_format_horizon(run_budget) for run_budget in budgets if run_budget)),
        "has_clock": any(
            find_clock_limit((*study.common_overrides, *setting.overrides)) for setting in study.settings.values()
        ),
        "seeds": format_integer_range(method.difference.n for method in verdict.methods if method.role == METHOD),
        "faster": _count_settings_with_faster_method(study, speeds_by_cost),
    }


def classify_setting(study: Study, setting: SettingVerdict) -> str:
    """Return the outcome of a setting, one of `SETTING_KINDS`: a method is better, headroom is unused, or neither.

    `study` has the rules, and `setting` is the verdict on the setting.
    """
    if setting.find_better_methods():
        return BETTER_KIND
    if setting.headroom.has_headroom:
        return UNUSED_HEADROOM_KIND
    oracle_differences = [setting.methods[oracle_name].difference for oracle_name in setting.headroom.oracles]
    # an oracle that equals the baseline on every seed has no interval
    upper_bounds = [oracle.high if math.isfinite(oracle.half_width) else oracle.mean for oracle in oracle_differences]
    detectable_difference = study.rules.detectable_difference
    return (
        NO_HEADROOM_KIND
        if upper_bounds and all(upper_bound <= detectable_difference for upper_bound in upper_bounds)
        else UNCLEAR_SETTING_KIND
    )


def _format_horizon(run_budget: str) -> str:
    """Return a budget in words, as `60 rounds` or `5 h of virtual time or 300 rounds`.

    `run_budget` is the column of the results, as "rounds=300 virtual_s=18000".
    """
    limit_by_option = dict(re.findall(r"(\w+)=([\d.e+]+)", run_budget))
    limit_formats: dict[str, tuple[Callable[[float], str], str]] = {
        "virtual_s": (units.format_seconds, " of virtual time"),
        "bytes": (units.format_bytes, ""),
        "client_flops": (units.format_flops, " of the clients"),
        "joules": (units.format_joules, " of the clients"),
        "rounds": ("{:.0f}".format, " rounds"),
    }
    limit_texts = [
        limit_format(float(limit_by_option[option])) + unit_text
        for option, (limit_format, unit_text) in limit_formats.items()
        if option in limit_by_option
    ]
    return " or ".join(limit_texts) or run_budget


def _count_settings_with_faster_method(study: Study, speeds_by_cost: Speeds) -> dict[str, int] | None:
    """Return the number of settings in which a method is significantly faster, by cost; None without a target.

    One Holm correction covers all methods and settings of a cost. The key `settings` counts the settings whose target
    was met.

    Args:
        study: the study, which has the rules.
        speeds_by_cost: speed-ups by cost, and by setting and method.
    """
    if not any(speeds_by_cost.values()):
        return None
    setting_counts = {"settings": len({setting for speeds in speeds_by_cost.values() for setting, _ in speeds})}
    for cost_name, speeds in speeds_by_cost.items():
        speed_ups = {cell: speed.speed_up for cell, speed in speeds.items() if study.find_role(cell[1]) == METHOD}
        p_values = adjust_p_by_family({cell: gain.p for cell, gain in speed_ups.items()}, lambda _: "")
        faster_conditions = {c for c in speed_ups if judge_speed_up(speed_ups[c], p_values[c], study.rules) == FASTER}
        setting_counts[cost_name] = len({setting for setting, _ in faster_conditions})
    return setting_counts


def collect_page_notes(study: Study, results: Results, verdict: Verdict) -> dict[str, object]:
    """Return the data of the template `study_notes.md.j2`.

    Args:
        study: the study's definition.
        results: the study's stored results.
        verdict: the study's verdict.

    Returns:
        A dictionary with the keys below.
        collapsing: worst difference of each method that collapses on some seeds, in the metric's own unit.
        other_code: number of runs whose code behaves differently from the current code.
        compared: commits with which the code was compared, 10 digits each.
        rounds: number of rounds, from the first one, that this comparison of the code repeats.
        same_cost: differences of methods to the references that have their cost (`same_cost.compare_with_references`).
    """
    worst_differences_by_method = {
        name: [m.difference.worst for m in verdict.methods if m.method == name] for name in verdict.collapsing
    }
    rows_of_other_code = [run for _, run in results.done_runs() if run["differs"]]
    return {
        "collapsing": {
            name: float(np.nanmin(worst_differences))
            for name, worst_differences in sorted(worst_differences_by_method.items())
        },
        "other_code": len(rows_of_other_code),
        "compared": sorted({run["compared"][:10] for run in rows_of_other_code}),
        "rounds": N_COMPARED_ROUNDS,
        "same_cost": compare_with_references(study, results),
    }


def summarise_runs_by_commit(runs: Sequence[Row]) -> dict[str, object]:
    """Return number and wall time of runs by name: `runs`, `hours`, and `commits`, the number of runs by commit."""
    runs_by_commit = Counter(run["commit"][:10] + (" with uncommitted changes" if run["dirty"] else "") for run in runs)
    return {"runs": len(runs), "hours": sum(run["wall_s"] for run in runs) / 3600, "commits": runs_by_commit}


def find_missing_runs(study: Study, verdict: Verdict) -> dict[tuple[tuple[int, int, str], ...], list[str]]:
    """Return the methods that lack runs, by their gaps: (missing seeds, requested seeds, names of the settings).

    `verdict` has the number of missing seeds of each condition of `study`.
    """
    methods_by_seed_gaps: dict[tuple[tuple[int, int, str], ...], list[str]] = {}
    for method in dict.fromkeys(method for _, method in verdict.missing_seed_counts):
        n_missing = {setting: n for (setting, name), n in verdict.missing_seed_counts.items() if name == method}
        settings = {n: [setting for setting in n_missing if n_missing[setting] == n] for n in n_missing.values()}
        n_seeds = len(study.list_seeds(method))
        seed_gaps = tuple(
            (n, n_seeds, _join_setting_names(study, method, settings[n])) for n in sorted(settings, reverse=True)
        )
        methods_by_seed_gaps.setdefault(seed_gaps, []).append(format_method(method))
    return methods_by_seed_gaps


def find_changed_runs(study: Study, results: Results) -> dict[str, dict[str, Any]]:
    """Return the runs that are left out because their configuration changed, under the study's name; {} without any.

    Args:
        study: the study's definition.
        results: the study's stored results.

    Returns:
        A dictionary with the keys below, by the study's name.
        runs: number of these runs.
        methods: methods of these runs, by setting.
        own: user's own methods among them; the command runs them again only if it names them.
    """
    settings, methods = dict[str, dict[str, None]](), dict[str, list[str]]()
    for setting, method, _ in sorted(results.changed):
        settings.setdefault(method, {})[setting] = None
    for method, setting_names in settings.items():
        methods.setdefault(_join_setting_names(study, method, list(setting_names)), []).append(format_method(method))
    user_methods = [method for method in settings if study.is_user_method(method) and method not in study.overrides]
    return {study.name: {"runs": len(results.changed), "methods": methods, "own": user_methods}} if settings else {}


def list_rejected_runs(study: Study, results: Results) -> list[tuple[str, Iterable[str]]]:
    """Return the reasons why runs have no result, each with its conditions, as "oort in label noise".

    `results` holds the rows of refused and failed runs in the settings of `study`.
    """
    conditions_by_reason = dict[str, dict[str, None]]()
    for (setting, method, _), run in results.rows.items():
        if run["status"] != DONE and setting in study.settings:
            condition_name = f"{method.removeprefix(BOUND_PREFIX)} in {study.settings[setting].label}"
            conditions_by_reason.setdefault(f"{run['status']}: {run['reason']}", {})[condition_name] = None
    return list(conditions_by_reason.items())


def _join_setting_names(study: Study, method: str, setting_names: Sequence[str]) -> str:
    """Return `setting_names` as one text, or `all requested settings` where `method` is run in no others of `study`."""
    bound_name = method.removeprefix(BOUND_PREFIX)
    n_settings = sum(
        bound_name in setting.bounds if bound_name != method else study.requests_method(setting_name, method)
        for setting_name, setting in study.settings.items()
    )
    return "all requested settings" if len(setting_names) == n_settings else ", ".join(setting_names)
