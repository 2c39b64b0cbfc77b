"""Every selector selects valid cohorts with each alternative value of an option: choice, flag or null."""

import re
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from config_options import CONFIGS, list_options, load_options, make_component
from failure_hints import failure_hint
from fedcohort.maths import simplex
from selector_harness import World, changing_clients, check_selection, lose_half, play_rounds

OPTION = re.compile(r"^ *(?P<name>\w+): *.*? +# (?P<range>[^;\n]+)", re.MULTILINE)
WORLDS = (
    World(available=changing_clients, find_failing=lose_half),
    World(available=lambda t: [] if t % 3 != 1 else changing_clients(t)),
    World(available=lambda t: [] if t < 2 else [t % 12]),
    World(cohort=40, available=changing_clients),
    World(n_clients=1, cohort=1),
    World(find_failing=lambda t, cohort: cohort),
)
ROUNDS = 8


@pytest.fixture(autouse=True)
def _few_descent_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """End the descents of FedDiverse early: their points are valid weights after each step."""
    monkeypatch.setattr(simplex, "minimise_by_descent", partial(simplex.minimise_by_descent, max_steps=100))


def alternatives(text: str) -> list[Any]:
    """Return the values that a range comment lists, and None where null is allowed."""
    options: list[Any] = []
    if text.startswith("one of "):
        options = re.split(", | or ", text.removeprefix("one of ").strip())
    elif text.startswith("true or false"):
        options = [True, False]
    options = [None if value == "null" else value for value in options]
    return [*options, None] if text.strip().endswith(" or null") and None not in options else options


def forms(choice: str) -> Iterator[dict[str, Any]]:
    """Return changes of one option each to the defaults of the yaml file."""
    default = load_options("selector", choice)
    for option in OPTION.finditer((CONFIGS / "selector" / f"{choice}.yaml").read_text()):
        alternatives_of = [value for value in alternatives(option["range"]) if value != default[option["name"]]]
        yield from ({option["name"]: value} for value in alternatives_of)


FORMS = [(choice, change) for choice in list_options("selector") for change in forms(choice)]


def test_there_are_selector_variants_to_test() -> None:
    assert ("hcsfed", {"variant": "feddiverse_paper"}) in FORMS
    assert ("flash", {"bandit": "restless"}) in FORMS
    assert ("pyramidfl", {"pacer": "none"}) in FORMS


@pytest.mark.parametrize(("choice", "change"), FORMS, ids=str)
@failure_hint("Choose with `top` or `draw` in every branch of the options, and fill the cohort from `ctx.available`.")
def test_a_cohort_is_available_distinct_and_complete(choice: str, change: dict[str, Any]) -> None:
    selector = make_component("selector", choice, **change)
    for world in WORLDS:
        for step in play_rounds(selector, world, ROUNDS):
            check_selection(selector, step.selection, step.ctx.available, world.cohort)
