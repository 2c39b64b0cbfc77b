"""Runs to compare, made up."""

from collections.abc import Mapping, Sequence

from fedcohort.observe.comparison.runs import Sorted, sort
from fedcohort.observe.comparison.table import Table, tabulate
from fedcohort.observe.comparison.tracked import Run

ACC = "test/acc"


def run(
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


def both(first: Sequence[float], second: Sequence[float]) -> list[Run]:
    return [run(word, s, v) for word, of in (("random", first), ("ucb", second)) for s, v in enumerate(of)]


def table(found: Sequence[Run], cols: str | None = None, metric: str = ACC, better: str = "auto") -> Table:
    return tabulate(sort(found, "selector", cols, metric), "selector", cols, metric, "random", better)


def notes_with(found: Sorted, words: str) -> list[str]:
    return [line for line in found.notes if words in line]
