"""The progress of a study: the runs that are done, refused, failed or missing, and the time that is left."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fedcohort.jobs.time_left import TimeLeft
from fedcohort.record import provenance
from fedcohort.study.conditions import Condition, Key, Pair, list_conditions, with_own_methods
from fedcohort.study.config_digests import ConfigDigests
from fedcohort.study.definition import Study, display_name
from fedcohort.study.result_files import DONE, FAILED, REFUSED, Row
from fedcohort.study.results import Results

MISSING, CHANGED = "missing", "changed"
TO_DO = (MISSING, CHANGED, FAILED)
NAMED = 8  # methods that are named as missing
COMPOSING = "yaml files changed: composing the affected runs to see whether their configuration changed (10 a second)"
Identify = Callable[[Condition], Mapping[str, str] | None]


@dataclass(frozen=True)
class Progress:
    """The runs that a study requests, with their states.

    Attributes:
        runs: in the order in which they are done. It is seed by seed, so that a stopped study has fewer seeds.
        states: done, refused, failed, missing, or changed. A run is changed if its overrides or yaml files
            differ from those of its stored row; composing shows whether its configuration differs, too.
    """

    runs: Sequence[tuple[Condition, int]]
    states: Mapping[Key, str]

    def count(self, *states: str) -> int:
        """Return the number of runs in these states."""
        return sum(state in states for state in self.states.values())


def progress_of(conditions: Sequence[Condition], seeds: Sequence[int], results: Results, configs: Path) -> Progress:
    """Compare the requested runs with the stored results."""
    digest_of = ConfigDigests(configs).digest_of
    commit = provenance.current_commit()
    runs, states = [], {}
    digests = {condition.key(0): digest_of(condition.overrides) for condition in conditions}
    for seed in seeds:
        for condition in conditions:
            if condition.seeds is None or seed in condition.seeds:
                key = condition.key(seed)
                runs.append((condition, seed))
                states[key] = _state(results.rows.get(key), digests[condition.key(0)], commit)
    return Progress(runs, states)


def _state(row: Row | None, digest: str, commit: tuple[str, bool]) -> str:
    if row is None:
        return MISSING
    if row["status"] == DONE:
        return DONE if row["stamp"] == digest else CHANGED
    if row["status"] == REFUSED:  # the same code refuses the same overrides again
        return REFUSED if row["stamp"] == digest and (row["commit"], row["dirty"]) == commit else MISSING
    return FAILED


def resolve_changes(progress: Progress, results: Results, identify: Identify) -> Progress:
    """Return the progress in which changed runs are done if their configuration is still the same.

    Args:
        progress: whose changed runs are looked at.
        results: with their rows.
        identify: returns what distinguishes the runs of a condition (`tasks.identity_of`), or None for a condition
            that is refused. It is called once for each condition.
    """
    states, identities = dict(progress.states), dict[Pair, Mapping[str, str] | None]()
    for condition, seed in progress.runs:
        pair, key = (condition.setting, condition.method), condition.key(seed)
        if states[key] == CHANGED:
            if pair not in identities:
                identities[pair] = identify(condition)
            identity, row = identities[pair], results.rows[key]
            if identity is not None and all(row[name] == value for name, value in identity.items()):
                states[key] = DONE
    return Progress(progress.runs, states)


def mark_changed(
    study: Study, results: Results, configs: Path, identify: Identify, say: Callable[[str], None]
) -> Results:
    """Return the results with those done runs marked as changed whose configuration is another one now, or refused.

    A method that neither `study.yaml` nor `configs` contains any more can't be composed, and its runs stay.
    """
    methods = {method for (_, method, _), _ in results.done()}
    own_methods = [method for method in sorted(methods) if (configs / "selector" / f"{method}.yaml").is_file()]
    seeds = sorted({seed for (_, _, seed), _ in results.done()})
    complete = with_own_methods(study, own_methods, configs)
    conditions = list_conditions(complete, methods=list(complete.overrides))  # with any seed, in all settings
    progress = progress_of(conditions, seeds, results, configs)
    if progress.count(CHANGED):
        say(COMPOSING)
        progress = resolve_changes(progress, results, identify)
    marked = replace(results, changed=frozenset(key for key, state in progress.states.items() if state == CHANGED))
    for setting in {setting for setting, _, _ in marked.changed}:
        marked.measure(study, setting)  # the target may be a level of the baseline's other runs
    return marked


def describe(study: Study, progress: Progress, results: Results) -> str:
    """Return the progress of a study, one line a fact."""
    keys: dict[str, list[Key]] = {state: [] for state in (DONE, MISSING, CHANGED, REFUSED, FAILED)}
    for key, state in progress.states.items():
        keys[state].append(key)
    times = {state: _describe_time(keys[state], results) if state in TO_DO else "" for state in keys}
    lines = [f"{study.name}: {study.title}", f"done     {len(keys[DONE])} of {len(progress.runs)} runs"]
    lines.append(f"missing  {len(keys[MISSING])}{times[MISSING]}")
    if methods := list(dict.fromkeys(display_name(method) for _, method, _ in keys[MISSING])):
        hint = f" and {len(methods) - NAMED} more methods" if len(methods) > NAMED else ""
        lines.append(f"  {', '.join(methods[:NAMED])}{hint}")
    if keys[CHANGED]:
        lines.append(
            f"changed  {len(keys[CHANGED])}{times[CHANGED]}: overrides or yaml files changed; `run` repeats the runs "
            "whose configuration did"
        )
    lines += describe_code(study.name, [results.rows[key] for key in keys[DONE]])
    for state in (REFUSED, FAILED):
        lines.append(f"{state:8} {len(keys[state])}{times[state]}")
        conditions: dict[str, dict[str, None]] = {}
        for key in keys[state]:
            conditions.setdefault(str(results.rows[key]["reason"]), {})[f"{key[1]} in {key[0]}"] = None
        lines += [f"  {', '.join(names)}: {reason}" for reason, names in conditions.items()]
    return "\n".join(lines)


def describe_code(study: str, rows: Sequence[Row]) -> list[str]:
    """Describe which done runs were computed by code that behaves differently, or not compared with today's code."""
    lines, commit = [], provenance.current_commit()[0]
    if different := [row for row in rows if row["differs"]]:
        lines.append(
            f"differs  {len(different)}: computed by code that behaves differently; "
            f"`fedcohort study run {study} again=changed` runs them again"
        )
        lines += [f"  {where}" for where in dict.fromkeys(f"{row['selector']} in {row['cell']}" for row in different)]
    if n_old := sum(row["compared"] != commit for row in rows):
        lines.append(f"code     {n_old} not compared with commit {commit[:10]}: fedcohort study check {study}")
    return lines


def estimate_time(results: Results) -> TimeLeft[Pair]:
    """Return an estimate of the wall time of runs by setting and method, from the runs that are done."""
    time_left = TimeLeft[Pair](lambda pair: (pair, pair[1], None))
    for (setting, method, _), row in results.done():
        time_left.add((setting, method), row["wall_s"])
    return time_left


def _describe_time(keys: Iterable[Key], results: Results) -> str:
    """Return the time that the runs may take; "" if it is not known."""
    seconds = estimate_time(results).seconds([key[:2] for key in keys])
    return f", about {format_seconds(seconds)} in one process" if seconds else ""


def format_seconds(seconds: float) -> str:
    """Return `40 s`, `12 min` or `3.5 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
