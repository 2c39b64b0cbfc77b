"""Federations in which the laws play every selector with the defaults of its yaml file."""

from functools import cache
from typing import Any

import pytest
import torch

from config_options import list_aliases, list_options
from config_options import make_component as make_component
from fedcohort.state import pack_state
from selector_harness import Step, World, changing_clients, lose_half, play_rounds
from toy_selectors import TOY_SELECTORS

SELECTORS = [*list_options("selector"), *list_aliases("selector"), *TOY_SELECTORS]
ROUNDS = 8
FEW_STEPS = {  # of fits, after each of which the laws hold, and few rounds before the first one
    "fedcor": {"warmup": 3, "first_steps": 50, "steps": 10},
    "neural_bandit": {"fit_steps": 20},
}
every_selector = pytest.mark.parametrize("choice", SELECTORS)
WORLDS = {
    "all clients available": World(),
    "half lost": World(find_failing=lose_half),
    "coming and going": World(available=changing_clients, find_failing=lose_half),
    "one available": World(available=lambda t: [t % 12]),
    "no client available at times": World(available=lambda t: [] if t % 3 == 0 else changing_clients(t)),
    "cohort of all clients": World(cohort=12),
    "cohort above the population": World(cohort=40, available=changing_clients),
    "one client": World(n_clients=1, cohort=1),
    "all clients fail": World(find_failing=lambda t, cohort: cohort),
}


def make_selector(choice: str) -> Any:
    """Return a selector of the yaml files, or one of the toys: common bandits, which no law may reject."""
    return TOY_SELECTORS.get(choice) or make_component("selector", choice, **FEW_STEPS.get(choice, {}))


@cache
def cached_selector(choice: str) -> Any:
    """Return one selector for each choice: what a run changes must be in its state."""
    return make_selector(choice)


@cache
def played_rounds(choice: str, world: str) -> list[Step]:
    """Return eight rounds in a world, which several laws read."""
    return play_rounds(cached_selector(choice), WORLDS[world], ROUNDS)


def equal_states(a: Any, b: Any) -> bool:
    """Return whether two states are equal to the last bit."""
    return bool(bits(pack_state(a)) == bits(pack_state(b)))


def bits(payload: Any) -> Any:
    """Return plain data that are equal where the bits of every array and the text of every number are."""
    if isinstance(payload, dict):
        return [(key, bits(value)) for key, value in payload.items()]
    if isinstance(payload, list):
        return [bits(item) for item in payload]
    if isinstance(payload, torch.Tensor):
        return payload.dtype, payload.shape, payload.numpy().tobytes()
    return repr(payload)
