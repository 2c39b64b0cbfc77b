"""Runs to compare, made up."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from fedcohort.results.matching.match import Matched, match
from fedcohort.results.matching.question import Answer, Question, answer
from fedcohort.results.matching.run import Run

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
    """options: those with a dot in their name, beside `params`."""
    facts = {"selector": selector, "agg": agg, "seed": str(seed), "rounds": "5", **params, **(options or {})}
    number = f"{selector}-{agg}-s{seed}-{started}"
    return Run(number, number, "finished", started, facts, {"sweep_id": "one"}, {ACC: acc, "test/loss": 1.0})


def make_runs(first: Sequence[float], second: Sequence[float]) -> list[Run]:
    """Runs of random and of ucb, one a seed, with these accuracies."""
    return [make_run(word, s, v) for word, of in (("random", first), ("ucb", second)) for s, v in enumerate(of)]


def compare_runs(runs: Sequence[Run], *, steps: Sequence[int] = (1, 2, 3), **question: Any) -> Answer:
    """Compare runs whose metrics have one value in all rounds; against random, unless told otherwise."""
    asked = Question(**{"baseline": "random", **question})
    matched = match(runs, asked.rows, asked.cols, *asked.metrics)
    rows = [
        {"run": each.id, "round": step, "virtual_s": 7.0 * step, "bytes": 3e6 * step, "client_flops": 1e9 * step}
        | {name: each.metrics.get(name) for name in asked.metrics}
        for each in runs
        for step in steps
    ]
    return answer(asked, matched, pd.DataFrame(rows))


def notes_with(found: Matched, words: str) -> list[str]:
    """The notes that contain `words`."""
    return [line for line in found.notes if words in line]
