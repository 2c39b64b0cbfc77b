"""Estimate what another selector's cohorts would have gained: fedcohort evaluate-policy RUNS selector=...

    fedcohort evaluate-policy <run folder> [<run folder> ...] selector=random selector.weights=proportional

selector=<option>        the other selector; selector.<option>=<value> sets its options. Without selector=, that
                         of the runs with other options.
metric=test/loss         the gain of a round is the change of this metric in its step. The runs need a value after every
                         round (eval.every=1).

Each estimate is the mean gain of a single step, over the rounds of the runs, with the other selector's cohort in place
of the run's. It is not the result of a run with the other selector. The estimates need runs whose selector draws with
known weights, and another selector that does so, too. Runs with different seeds make the doubly robust estimate
possible: its reward model is fitted on the other runs. docs/policy_evaluation.md says how far to trust the numbers.
Exit code 0 with estimates, 1 where they are refused.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from fedcohort.command.arguments import read_folders_and_options
from fedcohort.command.replay import check_logged_cohort, make_selectors
from fedcohort.console.terminal import print_markdown
from fedcohort.errors import CheckpointError, OptionError
from fedcohort.maths.successive_draws import CohortDistribution
from fedcohort.record import history
from fedcohort.record.run_log import LoggedRound, RunLog, read_run_log
from fedcohort.report.render import render
from fedcohort.results import policy_evaluation
from fedcohort.results.metric import find_metric_sign
from fedcohort.results.policy_evaluation import (
    ESTIMATORS_WITH_INTERVAL,
    CohortDistributions,
    ComparedRound,
    PolicyEvaluation,
    RunHistory,
)
from fedcohort.rng import new_generator

DEFAULT_OPTIONS = {"metric": "test/loss"}


def evaluate_policy(folders: Sequence[Path], selector: Sequence[str], configs: Path, metric: str) -> PolicyEvaluation:
    """Return the evaluation of another selector in logged runs.

    Args:
        folders: the run folders.
        selector: the other selector and its options, as typed.
        configs: folder of the config groups.
        metric: metric whose change is the gain.

    Raises:
        CheckpointError: a run lacks the metric, or its own selector does not select the cohorts of its log.
        IncompatibleConfig: the other selector reads what a log does not hold.
        OptionError: two runs have equal weights, so that their rounds would count twice.
    """
    compared_rounds, exclusion_counts = list[ComparedRound](), Counter[str]()
    folder_by_weights_digest = dict[str, Path]()
    for run_number, folder in enumerate(folders):
        run_log, logged_history = read_run_log(folder.absolute()), history.read_history(folder.absolute())
        metrics, weights_digest = logged_history.metrics, logged_history.fingerprints[-1]
        if (equal_folder := folder_by_weights_digest.setdefault(weights_digest, folder)) is not folder:
            raise OptionError(f"{folder} is the same run as {equal_folder}, with equal weights: name one of the two")
        if metric not in metrics:
            raise CheckpointError(f"{folder} has no metric {metric}: choose {', '.join(sorted(map(str, metrics)))}")
        run_history = RunHistory(run_number, run_log, metrics[metric].to_numpy(), find_metric_sign(metric))
        for round, cohort_distributions in replay_cohorts(run_log, selector, configs):
            if exclusion_reason := find_exclusion_reason(round, cohort_distributions, run_history):
                exclusion_counts[exclusion_reason] += 1
            else:
                rng = new_generator(run_log.info.seed, "evaluate_policy", round.t)
                compared_rounds.append(
                    policy_evaluation.compare_round(run_log, round, cohort_distributions, run_history, rng)
                )
            run_history.add_round(round)
    return policy_evaluation.estimate_gain(compared_rounds, exclusion_counts)


def replay_cohorts(
    run_log: RunLog, selector: Sequence[str], configs: Path
) -> Iterator[tuple[LoggedRound, CohortDistributions]]:
    """Yield each round that has a cohort, with the distributions of cohorts under the run's and the other selector.

    The other selector observes the run's rounds as if it had selected the run's cohorts.

    Args:
        run_log: log of the run.
        selector: the other selector and its options, as typed.
        configs: folder of the config groups.

    Raises:
        CheckpointError: the log has no draws, or the run's own selector does not select the cohorts of the log.
    """
    logged_selector, other_selector = make_selectors(run_log, selector, configs)
    for logged_or_other in (logged_selector, other_selector):
        logged_or_other.init_state(logged_selector.selector.needs)
    for round in run_log.rounds:
        if not len(round.cohort):
            continue
        if round.draw_log is None:
            raise CheckpointError(f"{run_log.info.folder} has no log of its draws: run it again with this version")
        probes, selection, _ = logged_selector.replay_round(round)
        check_logged_cohort(run_log, round, selection)
        other_probes, other_selection, draw_log = other_selector.select(round, probes)
        yield (
            round,
            (
                CohortDistribution.from_draws(round.draw_log, round.cohort),
                CohortDistribution.from_draws(draw_log, other_selection.clients),
            ),
        )
        other_selector.observe(round, selection, other_probes)


def find_exclusion_reason(
    round: LoggedRound, cohort_distributions: CohortDistributions, run_history: RunHistory
) -> str:
    """Return why a round has no ratio of its cohort's probabilities under both selectors, or no gain; "" if it has.

    Args:
        round: the round in the log.
        cohort_distributions: distributions of cohorts under both selectors.
        run_history: values of the metric by round.
    """
    for selector_text, cohort_distribution in zip(
        ("the run's selector", "the other selector"), cohort_distributions, strict=True
    ):
        if cohort_distribution.is_deterministic:
            return f"{selector_text} is deterministic"
        if cohort_distribution.unknown_reason:
            return f"the probability of {selector_text} is unknown, as {cohort_distribution.unknown_reason}"
    if not np.isfinite(run_history.gains[round.t]):
        return "the metric was not measured before and after the round"
    return ""


def main(arguments: Sequence[str], configs: Path | None = None) -> int:
    """Evaluate a selector in logged runs, and print the estimates; return 1 if there are none.

    Args:
        arguments: the run folders, the selector and its options.
        configs: folder of the config groups; None for ./configs.

    Raises:
        OptionError: an argument is invalid.
    """
    selector = [a for a in arguments if a.startswith(("selector=", "selector."))]
    if not selector:
        raise OptionError("type run folders and a selector: fedcohort evaluate-policy logs/runs/NAME selector=random")
    folders, options = read_folders_and_options([a for a in arguments if a not in selector], DEFAULT_OPTIONS)
    options = {**DEFAULT_OPTIONS, **options}
    evaluation = evaluate_policy(folders, selector, configs or Path.cwd() / "configs", **options)
    estimator_constants = {
        "difference": policy_evaluation.DOUBLY_ROBUST_DIFFERENCE,
        "with_interval": ESTIMATORS_WITH_INTERVAL,
    }
    page_values = {"selector": " ".join(selector), "runs": len(folders), **estimator_constants, **options}
    print_markdown(render("policy_evaluation.md.j2", result=evaluation, **page_values))
    return int(bool(evaluation.reason))
