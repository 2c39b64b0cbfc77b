"""Facts on the runs of a page: missing, changed and rejected runs, runs of other code, and the origin of the runs."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from fedcohort.study.behaviour import ROUNDS
from fedcohort.study.definition import BOUND, BOUND_PREFIX, Study, display_name
from fedcohort.study.formats import count_noun
from fedcohort.study.result_files import DONE, Row
from fedcohort.study.results import Results
from fedcohort.study.verdict import Verdict


def find_notes(study: Study, results: Results, verdict: Verdict) -> dict[str, object]:
    """Return the data of the template `study_notes.md.j2`.

    Returns:
        collapsing: worst difference of each method that collapses on some seeds, in the metric's own unit.
        partial: labels of the settings in which some methods are not run.
        ended_by_rounds: by label of a setting and method, (runs, all runs) whose rounds ended before their clock.
        other_code: number of runs of code that behaves differently.
        compared: commits with which the code was compared.
        rounds: number of first rounds that the comparison runs.
    """
    ended_by_rounds: dict[str, dict[str, tuple[int, int]]] = {}
    for method in sorted(verdict.methods, key=lambda method: (study.settings[method.setting].label, method.method)):
        if method.ended_by_rounds:
            of_setting = ended_by_rounds.setdefault(study.settings[method.setting].label, {})
            of_setting[display_name(method.method)] = method.ended_by_rounds, method.value.n
    rows_of_other_code = [row for _, row in results.done() if row["differs"]]
    worst: dict[str, list[float]] = {name: [] for name in sorted(verdict.collapsing)}
    for method in verdict.methods:
        if method.method in worst:
            worst[method.method].append(method.over.worst)
    return {
        "collapsing": {name: float(np.nanmin(values)) for name, values in worst.items()},
        "partial": [setting.label for setting in study.settings.values() if setting.methods is not None],
        "ended_by_rounds": ended_by_rounds,
        "other_code": len(rows_of_other_code),
        "compared": sorted({row["compared"][:10] for row in rows_of_other_code}),
        "rounds": ROUNDS,
    }


def describe_origin(runs: Sequence[Row]) -> dict[str, object]:
    """Return the number of runs, their wall time in hours, and the number of runs of each commit."""
    commits = Counter(row["commit"][:10] + (" with uncommitted changes" if row["dirty"] else "") for row in runs)
    return {"runs": len(runs), "hours": sum(row["wall_s"] for row in runs) / 3600, "commits": commits}


def list_missing(study: Study, verdict: Verdict) -> list[str]:
    """Return the runs that the study requests and does not have, in one line for methods that lack the same."""
    missing: dict[str, dict[int, list[str]]] = {}
    for (setting, method), n in verdict.missing.items():
        missing.setdefault(method, {}).setdefault(n, []).append(setting)
    texts = {}
    for method, settings in missing.items():
        n_seeds = len(study.seeds_of(method))
        parts = [
            f"{'all' if n == n_seeds else n} of {n_seeds} seeds in {_name_settings(study, method, settings[n])}"
            for n in sorted(settings, reverse=True)
        ]
        texts[display_name(method)] = "; ".join(parts)
    return [f"{text}: {', '.join(methods)}" for text, methods in _invert(texts).items()]


def list_changed(study: Study, results: Results) -> list[str]:
    """Return one line on the runs that are left out because their configuration changed; none without such runs."""
    if not results.changed:
        return []
    settings: dict[str, list[str]] = {}
    for setting, method in dict.fromkeys((setting, method) for setting, method, _ in sorted(results.changed)):
        settings.setdefault(method, []).append(setting)
    texts = {display_name(method): _name_settings(study, method, names) for method, names in settings.items()}
    what = "; ".join(f"{', '.join(methods)} in {text}" for text, methods in _invert(texts).items())
    own_methods = [method for method in settings if method not in study.overrides and study.role_of(method) != BOUND]
    hint = f" (own methods: add `selectors={','.join(own_methods)}`)" if own_methods else ""
    return [
        f"{count_noun(len(results.changed), 'run')} left out, since the configuration has changed or is rejected now: "
        f"{what}; `fedcohort study run {study.name}` runs them again{hint}"
    ]


def list_rejected(study: Study, results: Results) -> list[tuple[str, Iterable[str]]]:
    """Return the reasons why runs have no result, each with its conditions."""
    reasons: dict[str, dict[str, None]] = {}
    for (setting, method, _), row in results.rows.items():
        if row["status"] != DONE and setting in study.settings:
            name = f"{method.removeprefix(BOUND_PREFIX)} in {study.settings[setting].label}"
            reasons.setdefault(f"{row['status']}: {row['reason']}", {})[name] = None
    return list(reasons.items())


def _name_settings(study: Study, method: str, settings: Sequence[str]) -> str:
    """Return the names of settings, or `all requested settings` where the method is run in no others."""
    bound = method.removeprefix(BOUND_PREFIX) if study.role_of(method) == BOUND else None
    n_settings = sum(
        bound in setting.bounds if bound else study.requests(name, method) for name, setting in study.settings.items()
    )
    return "all requested settings" if len(settings) == n_settings else ", ".join(settings)


def _invert(texts: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the keys that have each text."""
    keys: dict[str, list[str]] = {}
    for key, text in texts.items():
        keys.setdefault(text, []).append(key)
    return keys
