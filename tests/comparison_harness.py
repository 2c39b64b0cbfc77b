"""Helpers for tests of comparisons: runs with given accuracies, and their comparison."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from fedcohort.results.matching.match import Matching, match
from fedcohort.results.matching.question import ComparisonAnswer, ComparisonQuestion, answer_comparison_question
from fedcohort.results.matching.tracked_run import Run

ACC = "test/acc"


def make_run(
    selector: str,
    seed: int,
    acc: float,
    agg: str = "fedavg",
    started: int = 0,
    options: Mapping[str, str] | None = None,
    **params: str,
) -> Run:
    """Return a finished run; `options` are parameters whose names contain a dot."""
    facts = {"selector": selector, "agg": agg, "seed": str(seed), "rounds": "5", **params, **(options or {})}
    number = f"{selector}-{agg}-s{seed}-{started}"
    return Run(number, number, "finished", started, facts, {"sweep_id": "one"}, {ACC: acc, "test/loss": 1.0})


def make_runs(random_accuracies: Sequence[float], ucb_accuracies: Sequence[float]) -> list[Run]:
    """Return one run of random and one of ucb per seed, with these accuracies."""
    return [
        make_run(selector, s, v)
        for selector, accuracies in (("random", random_accuracies), ("ucb", ucb_accuracies))
        for s, v in enumerate(accuracies)
    ]


def compare_runs(runs: Sequence[Run], *, steps: Sequence[int] = (1, 2, 3), **question: Any) -> ComparisonAnswer:
    """Compare runs whose metrics are constant over the rounds; the default baseline is random."""
    comparison = ComparisonQuestion(**{"baseline": "random", **question})
    matching = match(runs, comparison.rows, comparison.cols, *comparison.metrics, baseline=comparison.baseline)
    rows = [
        {"run": run.id, "round": step, "virtual_s": 7.0 * step, "bytes": 3e6 * step, "client_flops": 1e9 * step}
        | {name: run.metrics.get(name) for name in comparison.metrics}
        for run in runs
        for step in steps
    ]
    return answer_comparison_question(comparison, matching, pd.DataFrame(rows))


def find_notes(matching: Matching, text: str) -> list[str]:
    """Return the notes that contain `text`."""
    return [line for line in matching.notes if text in line]
