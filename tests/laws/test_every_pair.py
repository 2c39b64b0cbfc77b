"""Choices of selector, agg, objective, server and codec run two rounds together, or are rejected.

The runs are a covering array: every pair of choices that is not rejected occurs in one of them. An alias is a component
with other options, and meets three options of each other group. A rejection at start-up states its reason; any other
exception is an error.
"""

import itertools
import pickle
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from argument_guard import guard_arguments
from config_options import CONFIGS, list_options
from covering_array import Pair, all_pairs, covering_rows
from failure_hints import failure_hint
from fedcohort.component import Facts
from fedcohort.errors import IncompatibleConfig
from fedcohort.round.components import Components
from fedcohort.startup import check, components, load, requirements
from fedcohort.startup.compose import Composition
from fedcohort.types import RoundReport
from round_harness import run_rounds
from run_harness import compose_overrides

GROUPS = ("selector", "agg", "objective", "server", "codec")
DEFAULTS = ("selector=random", "agg=fedavg", "objective=ce", "server=sgd", "codec=none")  # as in train.yaml
OPTIONS = [[f"{group}={choice}" for choice in list_options(group)] for group in GROUPS]
SIZES = list(map(len, OPTIONS))
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
    "agg=fedbio": ("client.steps=1",),
    "agg=feddf": ("agg.steps=20",),
    "agg=rhfl": ("agg.batches=1",),
}
JOBS = 8  # number of test cases that share the runs


def aliases(group: str) -> list[str]:
    return sorted({path.stem for path in (CONFIGS / group).glob("*.yaml")} - set(list_options(group)))


@cache
def compose_choice(override: str) -> Composition:
    return compose_overrides(*TINY, override, *REDUCED_WORK.get(override, ()))


def compose_row(row: Iterable[str]) -> Composition:
    """Return the config of a row; an alias of `agg` sets the options of groups that the row does not name."""
    parts = {override.split("=")[0]: compose_choice(override) for override in (*DEFAULTS, *row)}
    config, choices = dict(parts["agg"].config), dict(parts["agg"].choices)
    for group, part in parts.items():
        config[group], choices[group] = part.config[group], part.choices[group]
        config["requires"] = {**config["requires"], **part.config["requires"]}
    return Composition(config, choices, tuple(row))


@cache
def make_default_components() -> Components:
    composition = compose_row(DEFAULTS)
    return check.make_components(composition, check.make_light_components(composition))


@cache
def make_choice(override: str) -> Any:
    return components.make_component(compose_choice(override), override.split("=")[0])


@cache
def find_rejection(row: tuple[str, ...]) -> str:
    """Return why the start-up checks reject choices with the default of all other groups; "" if they accept them."""
    composition = compose_row(row)
    parts = {override.split("=")[0]: make_choice(override) for override in row}
    try:
        requirements.check_requirements(
            composition.choices, Facts(replace(make_default_components(), **parts), composition.config)
        )
    except IncompatibleConfig as rejection:
        return str(rejection)
    return ""


def name_options(row: Mapping[int, int]) -> tuple[str, ...]:
    """Return the overrides of option numbers by group."""
    return tuple(OPTIONS[column][option] for column, option in sorted(row.items()))


def name_pair(pair: Pair) -> tuple[str, ...]:
    return name_options({pair[0]: pair[1], pair[2]: pair[3]})


@cache
def rows_of_pairs() -> list[tuple[str, ...]]:
    """Return rows in which the pairs occur, and which no start-up check rejects."""
    possible_rows = covering_rows(SIZES, lambda row: not find_rejection(name_options(row)))
    return [name_options(dict(enumerate(row))) for row in possible_rows]


def rows_of_aliases() -> Iterator[tuple[str, ...]]:
    """Yield three rows for each alias."""
    aliases_by_group = ((group, alias) for group in GROUPS for alias in aliases(group))
    for n, (group, alias) in enumerate(aliases_by_group):
        for i in range(3 * n, 3 * n + 3):
            partners = {
                other_group: list_options(other_group)[i % len(list_options(other_group))] for other_group in GROUPS
            }
            yield tuple(f"{other_group}={choice}" for other_group, choice in {**partners, group: alias}.items())


def test_the_defaults_are_those_of_a_run() -> None:
    choices = compose_overrides().choices
    assert [f"{group}={choices[group]}" for group in GROUPS] == list(DEFAULTS)


def test_every_pair_of_options_is_rejected_or_occurs_in_the_runs() -> None:
    met = {pair for row in rows_of_pairs() for pair in itertools.combinations(row, 2)}
    for pair in map(name_pair, all_pairs(SIZES)):
        assert pair in met or " " in find_rejection(pair)


@pytest.fixture(scope="module")
def _shared_components() -> Iterator[None]:
    """Guard the arguments of components, and make each component and the clients' data once for all rows."""
    values: dict[bytes, Any] = {}

    def make_once(function: Any, composition: Composition, groups: Iterable[str], *arguments: Any) -> Any:
        key = pickle.dumps([(composition.config[group], composition.choices[group]) for group in groups])
        if key not in values:
            values[key] = function(composition, *arguments)
        return values[key]

    make_component, load_federation = components.make_component, load.load_federation
    with pytest.MonkeyPatch.context() as patched:
        guard_arguments(patched)
        patched.setattr(
            components,
            "make_component",
            lambda composition, group: make_once(make_component, composition, [group], group),
        )
        patched.setattr(
            load,
            "load_federation",
            lambda composition, parts: make_once(load_federation, composition, load.DATA_GROUPS, parts),
        )
        yield


def outcome(composition: Composition) -> tuple[list[RoundReport], float] | str:
    """Return the reports and the loss of a run, or the reason of its rejection.

    Each choice of selector, aggregator and objective has runs with Lightning and files in test_every_other_pair.py.
    """
    try:
        return run_rounds(composition)
    except IncompatibleConfig as refusal:
        return str(refusal)


@pytest.mark.usefixtures("_shared_components")
@pytest.mark.parametrize("job", range(JOBS))
@failure_hint(
    "Reject a combination that cannot work in `requirements`, with the reason; copy tensors before you change them."
)
def test_every_pair_of_options_runs_two_rounds_or_is_rejected(job: int) -> None:
    """No component changes a tensor among its arguments."""
    for row in [*rows_of_pairs(), *rows_of_aliases()][job::JOBS]:
        result = outcome(compose_row(row))
        if isinstance(result, str):
            assert " " in result, row
        else:
            reports, test_loss = result
            assert [report.step for report in reports] == [0, 1, 2], row
            assert np.isfinite(test_loss), row
