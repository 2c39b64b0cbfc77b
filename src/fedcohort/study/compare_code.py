"""Compare the code that computed a study's rows with today's code (`fedcohort study check`).

A reference run repeats the first 8 rounds of a run: a budget only extends a run, so it has the same rounds. It is made
with today's code, once for each condition and each commit, and is compared with the stored run in two things.

    fingerprint   of the cohorts, arrivals and losses of these rounds (`measure.compute_run_fingerprint`)
    curve         the study's metric, virtual seconds and bytes of these rounds, from `curves.parquet`

Names, comments, the order or spelling of options, and measured time do not count. Digits are compared with a tolerance,
so that another processor does not count as other code: of 958 runs on two processors none differs. A run without a
fingerprint, from older code, is compared by its curve.

The comparison does not show three things. A change may act after round 8, such as the end of a longer warm-up. It may
change no cohort and no digit above the tolerance. And a difference need not be a fault: where rounding decides between
two clients, it may be a difference between processors.
"""

from collections.abc import Sequence
from contextlib import closing

import numpy as np

from fedcohort.record import provenance
from fedcohort.results.run import Evaluations
from fedcohort.study.definition import Condition, RunKey, merge_overrides
from fedcohort.study.measure import LOSS_METRIC, N_COMPARED_ROUNDS
from fedcohort.study.result_files import DONE
from fedcohort.study.runner import Run, StudyRunner
from fedcohort.study.tasks import RunOutcome, RunTask, run_tasks

RUNS_PER_SAVE = 50  # number of reference runs after which the results are saved
RUN_GROUP_COLUMNS = ("config_hash", "budget", "commit", "dirty")
LOSS_TOLERANCE = 5e-3  # relative
# relative and absolute; curves of older versions hold costs in single precision
CURVE_TOLERANCES = {"value": (0.0, 5e-3), "virtual_s": (1e-5, 0.0), "bytes": (1e-5, 0.0)}


def compare_with_current_code(runner: StudyRunner, conditions: Sequence[Condition], seeds: Sequence[int]) -> None:
    """Repeat the first rounds of done runs with the current code, and store the differences in the results.

    Runs with one configuration and commit are repeated once. Runs that were compared with the current commit are left
    out.

    Args:
        runner: the study with its results and launcher.
        conditions: conditions whose runs are compared.
        seeds: seeds of these runs.
    """
    commit, is_dirty = provenance.current_commit()
    equal_run_groups = group_runs_to_repeat(runner, conditions, seeds)
    runner.print_line(
        f"{len(equal_run_groups)} reference run{'s' * (len(equal_run_groups) != 1)} of {N_COMPARED_ROUNDS} rounds to do"
    )
    compared_run_keys = [condition.key(seed) for runs in equal_run_groups for condition, seed in runs]
    reference_tasks = [_make_reference_task(runner, *runs[0]) for runs in equal_run_groups]
    try:
        with closing(run_tasks(reference_tasks, runner.launch)) as run_outcomes:
            for run_number, (group_number, outcome) in enumerate(run_outcomes, 1):
                condition, seed = equal_run_groups[group_number][0]
                run_keys = [run_condition.key(run_seed) for run_condition, run_seed in equal_run_groups[group_number]]
                result_text = _store_difference(runner, run_keys, outcome, f"{commit}{' with changes' * is_dirty}")
                run_name = f"{condition.setting} {condition.method} seed {seed}"
                runner.print_line(f"[{run_number}/{len(equal_run_groups)}] {run_name}: {result_text}")
                if run_number % RUNS_PER_SAVE == 0:
                    runner.results.save_files(compared_run_keys)
    finally:
        runner.results.save_files(compared_run_keys)


def group_runs_to_repeat(runner: StudyRunner, conditions: Sequence[Condition], seeds: Sequence[int]) -> list[list[Run]]:
    """Return the done runs that were not compared with the current commit, grouped by configuration and commit.

    If the code has uncommitted changes, all done runs are returned.

    Args:
        runner: the study with its results.
        conditions: conditions of the runs.
        seeds: seeds of the runs.
    """
    rows, study_progress = runner.results.rows, runner.find_progress(conditions, seeds)
    commit, is_dirty = provenance.current_commit()
    runs_by_version: dict[tuple[object, ...], list[Run]] = {}
    for condition, seed in study_progress.runs:
        key = condition.key(seed)
        if study_progress.states[key] == DONE and (is_dirty or rows[key]["compared"] != commit):
            runs_by_version.setdefault(tuple(rows[key][field] for field in RUN_GROUP_COLUMNS), []).append(
                (condition, seed)
            )
    return list(runs_by_version.values())


def _make_reference_task(runner: StudyRunner, condition: Condition, seed: int) -> RunTask:
    n_rounds = min(N_COMPARED_ROUNDS, runner.results.rows[condition.key(seed)]["rounds"])
    overrides = merge_overrides(condition.overrides, (f"rounds={n_rounds}",))
    return RunTask(overrides, seed, runner.configs, runner.logs, runner.study.metric, keeps_run=False, resume=False)


def _store_difference(runner: StudyRunner, run_keys: Sequence[RunKey], outcome: RunOutcome, commit_text: str) -> str:
    """Store how equal runs differ from the repetition of their first rounds with today's code; return a description.

    Args:
        runner: the study with its results.
        run_keys: keys of the group's runs; the first one is compared.
        outcome: outcome of the repetition.
        commit_text: the current commit, which is stored as the commit that the runs were compared with.
    """
    if outcome.curve is None:
        return f"not compared, {outcome.status}: {outcome.reason}"
    earlier_result = runner.results.rows[run_keys[0]]["behaviour"], runner.results.curves[run_keys[0]]
    difference_text = describe_run_differences(earlier_result, (outcome.result_columns["behaviour"], outcome.curve))
    for run_key in run_keys:
        runner.results.rows[run_key] |= {"compared": commit_text, "differs": difference_text}
    return f"differs in {difference_text}" if difference_text else "the same"


def describe_run_differences(earlier_result: tuple[str, Evaluations], rerun_result: tuple[str, Evaluations]) -> str:
    """Name the differences between two runs in their first rounds, as "cohorts, bytes from round 3"; "" for none.

    Args:
        earlier_result: fingerprint of the stored run, "" if it has none, and its evaluations.
        rerun_result: fingerprint of its repetition, "" if it has none, and its evaluations.
    """
    differing_columns = _compare_curves(earlier_result[1], rerun_result[1])
    if earlier_result[0] and rerun_result[0]:
        cohort_digest, losses = earlier_result[0].split(":")
        rerun_digest, rerun_losses = rerun_result[0].split(":")
        differing_columns = ["cohorts"] * (cohort_digest != rerun_digest) + differing_columns
        a, b = (np.array([float(loss) for loss in text.split(",") if loss]) for text in (losses, rerun_losses))
        if a.shape != b.shape or not np.isclose(a, b, rtol=LOSS_TOLERANCE, equal_nan=True).all():
            differing_columns.append(LOSS_METRIC)
    return ", ".join(differing_columns)


def _compare_curves(earlier_curve: Evaluations, rerun_curve: Evaluations) -> list[str]:
    """Return the differing columns with their first differing round, as "bytes from round 3", in rounds 1 to 8.

    The result is ["evaluated rounds"] if the runs evaluated different rounds.

    Args:
        earlier_curve: evaluations of the stored run.
        rerun_curve: evaluations of its repetition with the current code.
    """
    metric_curves = (earlier_curve, rerun_curve)
    round_masks = [(curve.steps > 0) & (curve.steps <= N_COMPARED_ROUNDS) for curve in metric_curves]
    earlier_rounds, rerun_rounds = (
        curve.steps[round_mask] for curve, round_mask in zip(metric_curves, round_masks, strict=True)
    )
    if not np.array_equal(earlier_rounds, rerun_rounds):
        return ["evaluated rounds"]
    columns_by_run = [{"value": curve.values, **curve.costs} for curve in metric_curves]
    differing_columns = []
    for column, (relative_tolerance, absolute_tolerance) in CURVE_TOLERANCES.items():
        earlier_values, rerun_values = (
            columns[column][round_mask] for columns, round_mask in zip(columns_by_run, round_masks, strict=True)
        )
        is_equal_column = np.isclose(
            earlier_values, rerun_values, rtol=relative_tolerance, atol=absolute_tolerance, equal_nan=True
        )
        if not is_equal_column.all():
            differing_columns.append(f"{column} from round {earlier_rounds[~is_equal_column][0]:.0f}")
    return differing_columns
