"""All pairs of choices of selector, agg, objective, server and codec: two rounds, or a rejection.

The runs are a covering array: every pair of choices that are separate components occurs in one of them. An alias is
a component with other options, and meets three options of each other group. A rejection at start-up states its
reason; any other exception is an error.
"""

import copy
import itertools
from collections.abc import Iterator
from functools import cache

import numpy as np
import pytest

from argument_guard import guard_arguments
from config_options import CONFIGS, list_options
from covering_array import covering_rows
from failure_hints import failure_hint
from fedcohort.errors import IncompatibleConfig
from fedcohort.startup.compose import Composition
from fedcohort.types import RoundReport
from round_harness import run_rounds
from run_harness import compose_overrides

GROUPS = ("selector", "agg", "objective", "server", "codec")
TINY = (
    *(
        "clients=6",
        "cohort=3",
        "rounds=2",
        "client.epochs=1",
        "model=logreg",
        "eval.clients_every=0",
        "split.limit=120",
    ),
    *("heterogeneity=noise15", "proxy=noise", "proxy.n=20"),
)
REDUCED_WORK = {  # reduced work for two rounds
    "selector=feddiverse": ("selector.epochs=1", "selector.batch=100"),
    "agg=feddf": ("agg.steps=20",),
    "agg=rhfl": ("agg.batches=1",),
}
JOBS = 16  # number of test cases that share the runs


def aliases(group: str) -> list[str]:
    return sorted({path.stem for path in (CONFIGS / group).glob("*.yaml")} - set(list_options(group)))


@cache
def compose_choice(override: str) -> Composition:
    return compose_overrides(*TINY, override, *REDUCED_WORK.get(override, ()))


def compose_row(row: list[str]) -> Composition:
    """Return the config of a row; an alias of `agg` sets the options of groups that the row does not name."""
    parts = {override.split("=")[0]: compose_choice(override) for override in row}
    config, choices = copy.deepcopy(dict(parts["agg"].config)), dict(parts["agg"].choices)
    for group, part in parts.items():
        config[group], choices[group] = part.config[group], part.choices[group]
        config["requires"] = {**config["requires"], **part.config["requires"]}
    return Composition(config, choices, tuple(row))


def other_settings() -> Iterator[list[str]]:
    """Yield three rows for each alias."""
    aliases_by_group = ((group, alias) for group in GROUPS for alias in aliases(group))
    for n, (group, alias) in enumerate(aliases_by_group):
        for i in range(3 * n, 3 * n + 3):
            partners = {
                other_group: list_options(other_group)[i % len(list_options(other_group))] for other_group in GROUPS
            }
            yield [f"{other_group}={choice}" for other_group, choice in {**partners, group: alias}.items()]


PARTS = [
    [f"{group}={list_options(group)[i]}" for group, i in zip(GROUPS, row, strict=True)]
    for row in covering_rows([len(list_options(group)) for group in GROUPS])
]
ROWS = [*PARTS, *other_settings()]


def test_every_pair_of_options_occurs_in_the_runs() -> None:
    pairs = {pair for row in PARTS for pair in itertools.combinations(row, 2)}
    n_pairs = sum(len(list_options(a)) * len(list_options(b)) for a, b in itertools.combinations(GROUPS, 2))
    assert len(pairs) == n_pairs


def outcome(composition: Composition) -> tuple[list[RoundReport], float] | str:
    """Return the reports and the loss of a run, or the reason of its rejection.

    Each choice of selector, aggregator and objective has runs with Lightning and files in test_every_other_pair.py.
    """
    try:
        return run_rounds(composition)
    except IncompatibleConfig as refusal:
        return str(refusal)


@pytest.mark.parametrize("job", range(JOBS))
@failure_hint(
    "Reject a combination that cannot work in `requirements`, with the reason; copy tensors before you change them."
)
def test_every_pair_of_options_runs_two_rounds_or_is_rejected(job: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """No component changes a tensor among its arguments."""
    guard_arguments(monkeypatch)
    for row in ROWS[job::JOBS]:
        result = outcome(compose_row(row))
        if isinstance(result, str):
            assert " " in result, row
        else:
            reports, test_loss = result
            assert [report.step for report in reports] == [0, 1, 2], row
            assert np.isfinite(test_loss), row
