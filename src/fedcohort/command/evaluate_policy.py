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

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from fedcohort.command.arguments import folders_and_options
from fedcohort.command.replay import check_repeated, make_selectors
from fedcohort.errors import CheckpointError, OptionError
from fedcohort.maths.successive import CohortLaw
from fedcohort.record import history
from fedcohort.record.replayable import LoggedRound, RunLog, read_log
from fedcohort.report.render import render
from fedcohort.results import policy_evaluation
from fedcohort.results.metric import sign_of
from fedcohort.results.policy_evaluation import ComparedRound, PolicyEvaluation, RunHistory
from fedcohort.rng import new_generator

OPTIONS = {"metric": "test/loss"}
Laws = tuple[CohortLaw, CohortLaw]  # of the run's selector and of the other one


def evaluate_policy(folders: Sequence[Path], selector: Sequence[str], configs: Path, metric: str) -> PolicyEvaluation:
    """Return the evaluation of another selector in logged runs.

    Args:
        folders: the run folders.
        selector: the other selector and its options, as typed.
        configs: the folder of the config groups.
        metric: metric whose change is the gain.

    Raises:
        CheckpointError: a run lacks the metric, or its own selector departs from the log.
        IncompatibleConfig: the other selector reads what a log does not hold.
    """
    rounds, excluded = list[ComparedRound](), Counter[str]()
    for run, folder in enumerate(folders):
        log, metrics = read_log(folder.absolute()), history.read(folder.absolute()).metrics
        if metric not in metrics:
            raise CheckpointError(f"{folder} has no metric {metric}: it has {', '.join(sorted(map(str, metrics)))}")
        past = RunHistory(run, log, metrics[metric].to_numpy(), sign_of(metric))
        for round, laws in replay_laws(log, selector, configs):
            if reason := find_exclusion(round, laws, past):
                excluded[reason] += 1
            else:
                rng = new_generator(log.info.seed, "evaluate_policy", round.t)
                rounds.append(policy_evaluation.compare_round(log, round, laws, past, rng))
            past.add(round)
    return policy_evaluation.estimate_gain(rounds, excluded)


def replay_laws(log: RunLog, selector: Sequence[str], configs: Path) -> Iterator[tuple[LoggedRound, Laws]]:
    """Yield each round with a cohort, and its distribution by the run's selector and by the other one.

    The other selector observes the run's rounds as if it had selected the run's cohorts.
    """
    logged_selector, candidate = make_selectors(log, selector, configs)
    for selector_of_log in (logged_selector, candidate):
        selector_of_log.start(logged_selector.selector.needs)
    for round in log.rounds:
        if not len(round.chosen):
            continue
        if round.draw_log is None:
            raise CheckpointError(f"{log.info.folder} has no log of its draws: run it again with this version")
        probes, selection, _ = logged_selector.play(round)
        check_repeated(log, round, selection)
        candidate_probes, choice, draw_log = candidate.choose(round, probes)
        yield round, (CohortLaw.from_log(round.draw_log, round.chosen), CohortLaw.from_log(draw_log, choice.clients))
        candidate.learn(round, selection, candidate_probes)


def find_exclusion(round: LoggedRound, laws: Laws, past: RunHistory) -> str:
    """Return why a round has no ratio of probabilities or no gain; "" if it has both."""
    for owner, law in zip(("the run's selector", "the other selector"), laws, strict=True):
        if law.is_deterministic:
            return f"{owner} is deterministic"
        if law.reason:
            return f"the probability of {owner} is unknown, as {law.reason}"
    if not np.isfinite(past.gains[round.t]):
        return "the metric was not measured before and after the round"
    return ""


def main(arguments: Sequence[str], configs: Path | None = None) -> int:
    """Evaluate a selector in logged runs, and print the estimates; return 1 if there are none.

    configs: the groups' folder, None for ./configs.
    """
    selector = [word for word in arguments if word.startswith(("selector=", "selector."))]
    if not selector:
        raise OptionError("type run folders and a selector: fedcohort evaluate-policy logs/runs/NAME selector=random")
    folders, options = folders_and_options([word for word in arguments if word not in selector], OPTIONS)
    options = {**OPTIONS, **options}
    result = evaluate_policy(folders, selector, configs or Path.cwd() / "configs", **options)
    constants = {"difference": policy_evaluation.DIFFERENCE, "with_interval": policy_evaluation.WITH_INTERVAL}
    facts = {"selector": " ".join(selector), "runs": len(folders), **constants, **options}
    sys.stdout.write(render("policy_evaluation.md.j2", result=result, **facts))
    return int(bool(result.reason))
