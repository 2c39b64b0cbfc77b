"""The data of a study's templates: the outcome of its settings, notes on its runs, and missing runs."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from fedcohort import units
from fedcohort.results.target import judge_speed
from fedcohort.results.verdict import FASTER, adjust_families
from fedcohort.study.definition import BOUND_PREFIX, METHOD, Study, display_name, find_clock_limit
from fedcohort.study.formats import format_range
from fedcohort.study.measure import N_COMPARED_ROUNDS
from fedcohort.study.result_files import DONE, Row
from fedcohort.study.results import Results
from fedcohort.study.same_cost import compare_references
from fedcohort.study.speed import Speeds
from fedcohort.study.verdict import SettingVerdict, Verdict

# Kinds of settings. BETTER: a method is better. UNUSED_GAIN: an oracle is better, but no method.
# NO_GAIN: no interval of an oracle reaches above `win.worth`. UNCLEAR: none of these.
BETTER, UNUSED_GAIN, NO_GAIN, UNCLEAR = SETTING_KINDS = ("won", "unused", "nothing", "open")


def summarise_study(study: Study, results: Results, verdict: Verdict, speed_ups: Speeds) -> dict[str, Any]:
    """Return the data of the first paragraphs of a page.

    Returns:
        settings: the settings with results, each with its kind, by which they are sorted.
        counts: number of settings of each kind.
        tests: number of tests of methods in all settings.
        won_over_all: number of settings where a method is better after one correction over all tests.
        horizons: budgets of the baseline's runs, in words.
        has_clock: whether virtual time ends runs of a setting.
        seeds: numbers of paired seeds of the methods.
        faster: number of settings whose target was met, and of those where a method is faster, by axis; None without
            a target.
    """
    settings = [(classify_setting(study, setting), setting) for setting in verdict.settings.values()]
    kind_counts = Counter(setting_kind for setting_kind, _ in settings)
    budgets = dict.fromkeys(row["budget"] for (_, method, _), row in results.done_runs() if method == study.baseline)
    return {
        "settings": sorted(settings, key=lambda pair: (BETTER, UNUSED_GAIN, UNCLEAR, NO_GAIN).index(pair[0])),
        "counts": {setting_kind: kind_counts[setting_kind] for setting_kind in SETTING_KINDS},
        "tests": verdict.tests,
        "won_over_all": sum(setting.has_sure_winner(study.rules.alpha) for setting in verdict.settings.values()),
        "horizons": list(dict.fromkeys(_format_horizon(budget) for budget in budgets if budget)),
        "has_clock": any(find_clock_limit((*study.common, *setting.overrides)) for setting in study.settings.values()),
        "seeds": format_range(method.difference.n for method in verdict.methods if method.role == METHOD),
        "faster": _count_faster(study, speed_ups),
    }


def classify_setting(study: Study, setting: SettingVerdict) -> str:
    """Return whether a method is better in the setting, headroom is unused, or neither is shown."""
    if setting.better():
        return BETTER
    if setting.headroom.is_positive:
        return UNUSED_GAIN
    differences = [setting.methods[name].difference for name in setting.headroom.oracles]
    # an oracle that equals the baseline on every seed has no interval
    upper_bounds = [oracle.high if math.isfinite(oracle.half) else oracle.mean for oracle in differences]
    return NO_GAIN if upper_bounds and all(bound <= study.rules.worth for bound in upper_bounds) else UNCLEAR


def _format_horizon(budget: str) -> str:
    """Return `60 rounds`, or `5 h or 300 rounds`, of a budget."""
    limits = dict(re.findall(r"(\w+)=([\d.e+]+)", budget))
    limit_texts = [f"{units.seconds(float(limits['virtual_s']))} of virtual time"] if "virtual_s" in limits else []
    limit_texts += [units.bytes_(float(limits["bytes"]))] if "bytes" in limits else []
    limit_texts += [f"{units.flops(float(limits['client_flops']))} of the clients"] if "client_flops" in limits else []
    limit_texts += [f"{units.joules(float(limits['joules']))} of the clients"] if "joules" in limits else []
    limit_texts += [f"{limits['rounds']} rounds"] if "rounds" in limits else []
    return " or ".join(limit_texts) or budget


def _count_faster(study: Study, speed_ups_by_axis: Speeds) -> dict[str, int] | None:
    """Return the settings where a method is faster after one correction over all methods and settings of the axis."""
    if not any(speed_ups_by_axis.values()):
        return None
    faster_counts = {"settings": len({setting for speeds in speed_ups_by_axis.values() for setting, _ in speeds})}
    for axis, speeds in speed_ups_by_axis.items():
        speed_ups = {cell: speed.speed_up for cell, speed in speeds.items() if study.role_of(cell[1]) == METHOD}
        p_values = adjust_families({pair: gain.p for pair, gain in speed_ups.items()}, lambda _: "")
        faster = {pair for pair, gain in speed_ups.items() if judge_speed(gain, p_values[pair], study.rules) == FASTER}
        faster_counts[axis] = len({setting for setting, _ in faster})
    return faster_counts


def collect_notes(study: Study, results: Results, verdict: Verdict) -> dict[str, object]:
    """Return the data of the template `study_notes.md.j2`.

    Returns:
        collapsing: worst difference of each method that collapses on some seeds, in the metric's own unit.
        other_code: number of runs of code that behaves differently.
        compared: commits with which the code was compared.
        rounds: number of first rounds that the comparison runs.
        same_cost: differences of methods to their references of equal cost (`same_cost.compare_references`).
    """
    worst = {name: [m.difference.worst for m in verdict.methods if m.method == name] for name in verdict.collapsing}
    rows_of_other_code = [row for _, row in results.done_runs() if row["differs"]]
    return {
        "collapsing": {name: float(np.nanmin(values)) for name, values in sorted(worst.items())},
        "other_code": len(rows_of_other_code),
        "compared": sorted({row["compared"][:10] for row in rows_of_other_code}),
        "rounds": N_COMPARED_ROUNDS,
        "same_cost": compare_references(study, results),
    }


def describe_origin(runs: Sequence[Row]) -> dict[str, object]:
    """Return the number of runs, their wall time in hours, and the number of runs of each commit."""
    runs_by_commit = Counter(row["commit"][:10] + (" with uncommitted changes" if row["dirty"] else "") for row in runs)
    return {"runs": len(runs), "hours": sum(row["wall_s"] for row in runs) / 3600, "commits": runs_by_commit}


def find_missing_runs(study: Study, verdict: Verdict) -> dict[tuple[tuple[int, int, str], ...], list[str]]:
    """Return the methods that lack the same runs of the study, by these: (missing seeds, requested seeds, settings)."""
    methods_by_gaps: dict[tuple[tuple[int, int, str], ...], list[str]] = {}
    for method in dict.fromkeys(method for _, method in verdict.missing):
        n_missing = {setting: n for (setting, name), n in verdict.missing.items() if name == method}
        settings = {n: [setting for setting in n_missing if n_missing[setting] == n] for n in n_missing.values()}
        requested = len(study.seeds_of(method))
        gaps = tuple((n, requested, _name_settings(study, method, settings[n])) for n in sorted(settings, reverse=True))
        methods_by_gaps.setdefault(gaps, []).append(display_name(method))
    return methods_by_gaps


def find_changed_runs(study: Study, results: Results) -> dict[str, dict[str, Any]]:
    """Return the runs that are left out because their configuration changed, under the study's name; {} without any.

    Returns:
        runs: number of these runs.
        methods: methods of these runs, by setting.
        own: user's own methods among them, which have to be named to run again.
    """
    settings, methods = dict[str, dict[str, None]](), dict[str, list[str]]()
    for setting, method, _ in sorted(results.changed):
        settings.setdefault(method, {})[setting] = None
    for method, names in settings.items():
        methods.setdefault(_name_settings(study, method, list(names)), []).append(display_name(method))
    user_methods = [method for method in settings if study.is_user_method(method) and method not in study.overrides]
    return {study.name: {"runs": len(results.changed), "methods": methods, "own": user_methods}} if settings else {}


def list_rejected_runs(study: Study, results: Results) -> list[tuple[str, Iterable[str]]]:
    """Return the reasons why runs have no result, each with its conditions."""
    conditions_by_reason = dict[str, dict[str, None]]()
    for (setting, method, _), row in results.rows.items():
        if row["status"] != DONE and setting in study.settings:
            name = f"{method.removeprefix(BOUND_PREFIX)} in {study.settings[setting].label}"
            conditions_by_reason.setdefault(f"{row['status']}: {row['reason']}", {})[name] = None
    return list(conditions_by_reason.items())


def _name_settings(study: Study, method: str, setting_names: Sequence[str]) -> str:
    """Return the names of settings, or `all requested settings` where the method is run in no others."""
    bound = method.removeprefix(BOUND_PREFIX)
    n_settings = sum(
        bound in setting.bounds if bound != method else study.is_requested(name, method)
        for name, setting in study.settings.items()
    )
    return "all requested settings" if len(setting_names) == n_settings else ", ".join(setting_names)
