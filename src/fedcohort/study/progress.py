"""The progress of a study: the runs that are done, refused, failed or missing, and the time that is left."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fedcohort import units
from fedcohort.jobs.time_left import WallTimeEstimate
from fedcohort.record import provenance
from fedcohort.report.render import render
from fedcohort.study.definition import Condition, ConditionKey, RunKey, Study
from fedcohort.study.ranking import collect_ranked_results, rank_and_compare
from fedcohort.study.result_files import DONE, FAILED, REFUSED, Row
from fedcohort.study.results import Results

MISSING, CHANGED = "missing", "changed"
UNFINISHED_STATES = (MISSING, CHANGED, FAILED)


@dataclass(frozen=True)
class StudyProgress:
    """The runs that a study requests, with their states.

    Attributes:
        runs: condition and seed of each run, in the order of execution.
        states: state by the run's key: done, refused, failed, missing or changed. The present configuration of a
            changed run differs from that of its stored row, or is rejected.
    """

    runs: Sequence[tuple[Condition, int]]
    states: Mapping[RunKey, str]

    def count_runs(self, state: str) -> int:
        """Return the number of runs with the state `state`, such as "done"."""
        return list(self.states.values()).count(state)


def find_run_state(row: Row | None, config_digest: str) -> str:
    """Return the state of a run: "done", "changed", "refused", "missing" or "failed".

    Args:
        row: stored row of the run; None if it has none.
        config_digest: digest of its present overrides and yaml files.
    """
    if row is None:
        return MISSING
    if row["status"] == DONE:
        return DONE if row["stamp"] == config_digest else CHANGED
    if row["status"] == REFUSED:  # the same code refuses the same overrides again
        is_same_run = row["stamp"] == config_digest and (row["commit"], row["dirty"]) == provenance.current_commit()
        return REFUSED if is_same_run else MISSING
    return FAILED


def describe_runs(study: Study, study_progress: StudyProgress, results: Results) -> str:
    """Return the progress of a study as text, one fact per line.

    Args:
        study: the study's definition.
        study_progress: states of the requested runs.
        results: the study's stored results.
    """
    run_keys_by_state: dict[str, list[RunKey]] = {state: [] for state in (DONE, MISSING, CHANGED, REFUSED, FAILED)}
    for run_key, state in study_progress.states.items():
        run_keys_by_state[state].append(run_key)
    rows_by_state = {
        state: [results.rows[key] for key in run_keys]
        for state, run_keys in run_keys_by_state.items()
        if state != MISSING
    }
    time_left = estimate_time_left(results)
    return render(
        "study_status.txt.j2",
        study=study,
        rows=rows_by_state,
        total=len(study_progress.runs),
        missing=run_keys_by_state[MISSING],
        seconds={
            state: time_left.estimate_seconds([key[:2] for key in run_keys])
            for state, run_keys in run_keys_by_state.items()
        },
        conditions=lambda rows_by_state: dict.fromkeys(f"{row['selector']} in {row['cell']}" for row in rows_by_state),
        commit=provenance.current_commit()[0],
    ).rstrip()


def estimate_time_left(results: Results) -> WallTimeEstimate[ConditionKey]:
    """Return an estimate of the wall time in seconds of runs by setting and method, from the done runs of `results`."""
    time_left = WallTimeEstimate[ConditionKey](lambda condition: (condition, condition[1], None))
    for (setting, method, _), row in results.done_runs():
        time_left.add_run((setting, method), row["wall_s"])
    return time_left


def describe_user_method_ranks(study: Study, results: Results) -> list[str]:
    """Return a line with the mean rank of each user's own method, which `study.yaml` does not name.

    A method is ranked among those that ran in its settings with its seeds; one that can't be ranked has no line.
    `results` are the stored results of `study`.
    """
    user_methods = sorted({method for _, method, _ in results.rows if study.is_user_method(method)})
    result_values = collect_ranked_results(study, results) if user_methods else {}
    rank_lines = []
    for user_method in user_methods:
        shared_results = {setting: values for setting, values in result_values.items() if user_method in values}
        methods = [
            method
            for method in dict.fromkeys(method for values in shared_results.values() for method in values)
            if all(set(values[user_method]) <= set(values.get(method, ())) for values in shared_results.values())
        ]
        if (ranks := rank_and_compare(study, shared_results, methods)) is not None:
            n_seeds = len({seed for seeds in ranks.seeds.values() for seed in seeds})
            rank_lines.append(
                f"{user_method}: mean rank {ranks.mean_ranks[user_method]:.1f} of {len(methods)} methods by "
                f"{study.metric}, {units.format_count(len(ranks.seeds), 'setting')}, "
                f"{units.format_count(n_seeds, 'seed')}"
            )
    return rank_lines
