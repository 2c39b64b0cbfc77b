"""The progress of a study: the runs that are done, refused, failed or missing, and the time that is left."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fedcohort import units
from fedcohort.jobs.time_left import TimeLeft
from fedcohort.record import provenance
from fedcohort.study.definition import Condition, Key, Pair, Study, display_name
from fedcohort.study.formats import count_noun, join_first
from fedcohort.study.ranking import Values, rank_and_compare, ranked_results
from fedcohort.study.result_files import DONE, FAILED, REFUSED, Row
from fedcohort.study.results import Results

MISSING, CHANGED = "missing", "changed"
TO_DO = (MISSING, CHANGED, FAILED)
MAX_NAMED = 8  # methods that are named as missing


@dataclass(frozen=True)
class Progress:
    """The runs that a study requests, with their states.

    Attributes:
        runs: in the order in which they are done.
        states: done, refused, failed, missing, or changed. The configuration of a changed run differs from that of its
            stored row, or is rejected.
    """

    runs: Sequence[tuple[Condition, int]]
    states: Mapping[Key, str]

    def count(self, state: str) -> int:
        """Return the number of runs in this state."""
        return list(self.states.values()).count(state)


def state_of(row: Row | None, digest: str) -> str:
    """Return the state of a run from its stored row and the present digest of its overrides and yaml files."""
    if row is None:
        return MISSING
    if row["status"] == DONE:
        return DONE if row["stamp"] == digest else CHANGED
    if row["status"] == REFUSED:  # the same code refuses the same overrides again
        is_same = row["stamp"] == digest and (row["commit"], row["dirty"]) == provenance.current_commit()
        return REFUSED if is_same else MISSING
    return FAILED


def describe(study: Study, progress: Progress, results: Results) -> str:
    """Return the progress of a study as text, one fact per line."""
    keys: dict[str, list[Key]] = {state: [] for state in (DONE, MISSING, CHANGED, REFUSED, FAILED)}
    for key, state in progress.states.items():
        keys[state].append(key)
    time_left, times = estimate_time(results), dict.fromkeys(keys, "")
    for state in TO_DO:
        if seconds := time_left.seconds([key[:2] for key in keys[state]]):
            times[state] = f", about {units.rough_seconds(seconds)} in one process"
    lines = [f"{study.name}: {study.title}", f"done     {len(keys[DONE])} of {len(progress.runs)} runs"]
    lines.append(f"missing  {len(keys[MISSING])}{times[MISSING]}")
    if methods := list(dict.fromkeys(display_name(method) for _, method, _ in keys[MISSING])):
        lines.append(f"  {join_first(methods, MAX_NAMED)}{' methods' * (len(methods) > MAX_NAMED)}")
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
    for (setting, method, _), row in results.done_runs():
        time_left.add((setting, method), row["wall_s"])
    return time_left


def describe_ranks(study: Study, results: Results) -> list[str]:
    """Return a line for each of the user's own methods, which `study.yaml` does not name, if it can be ranked.

    It has the mean rank among the methods that ran in its settings with its seeds.
    """
    own_methods = sorted({method for _, method, _ in results.rows if study.is_user_method(method)})
    values = ranked_results(study, results) if own_methods else {}
    return [line for method in own_methods if (line := _describe_rank(study, values, method))]


def _describe_rank(study: Study, values: Values, own_method: str) -> str:
    in_settings = {name: by_method for name, by_method in values.items() if own_method in by_method}
    methods = [
        method
        for method in dict.fromkeys(method for by_method in in_settings.values() for method in by_method)
        if all(set(by_method[own_method]) <= set(by_method.get(method, ())) for by_method in in_settings.values())
    ]
    ranks = rank_and_compare(study, in_settings, methods)
    if ranks is None:
        return ""
    n_seeds = len({seed for seeds in ranks.seeds.values() for seed in seeds})
    return (
        f"{own_method}: mean rank {ranks.mean[own_method]:.1f} of {len(methods)} methods by {study.metric}, "
        f"{count_noun(len(ranks.seeds), 'setting')}, {count_noun(n_seeds, 'seed')}"
    )
