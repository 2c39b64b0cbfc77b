"""Federations in which the laws play every selector with the defaults of its yaml file."""

from functools import cache
from typing import Any

import pytest
import torch

from fedcohort.state import pack_state
from selector_harness import Step, World, changing_clients, half_lost, play
from selector_toys import TOYS
from yaml_words import aliases, list_options
from yaml_words import make as make_component

CHOICES = [*list_options("selector"), *aliases("selector"), *TOYS]
ROUNDS = 8
every_choice = pytest.mark.parametrize("choice", CHOICES)
WORLDS = {
    "all clients available": World(),
    "half lost": World(lost=half_lost),
    "coming and going": World(available=changing_clients, lost=half_lost),
    "one available": World(available=lambda t: [t % 12]),
    "no client available at times": World(available=lambda t: [] if t % 3 == 0 else changing_clients(t)),
    "cohort of all clients": World(cohort=12),
    "cohort above the population": World(cohort=40, available=changing_clients),
    "one client": World(n_clients=1, cohort=1),
    "all clients fail": World(lost=lambda t, cohort: cohort),
}


def make(choice: str) -> Any:
    """Return a selector of the yaml files, or one of the toys: common bandits, which no law may reject."""
    return TOYS[choice] if choice in TOYS else make_component("selector", choice)


@cache
def cached_selector(choice: str) -> Any:
    """Return one selector for each choice: what a run changes must be in its state."""
    return make(choice)


@cache
def played_rounds(choice: str, world: str) -> list[Step]:
    """Return eight rounds in a world, which several laws read."""
    return play(cached_selector(choice), WORLDS[world], ROUNDS)


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
