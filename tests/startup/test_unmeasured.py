"""A run that measures nothing of its training says so before it trains."""

import pytest

from fedcohort.startup.unmeasured import remarks
from run_harness import compose_words


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        ((), []),
        (("rounds=5", "eval.every=5", "eval.clients_every=0"), []),
        (
            ("rounds=2", "eval.every=5"),
            ["eval.every=5 exceeds rounds=2: only the first model is evaluated, before any training"],
        ),
        (
            ("rounds=2", "eval.clients_every=3"),
            [
                "eval.clients_every=3 exceeds rounds=2: only the first model is evaluated on the clients, "
                "before any training"
            ],
        ),
        (
            ("rounds=2", "eval.every=5", "eval.clients_every=3"),
            [
                "eval.every=5 and eval.clients_every=3 exceed rounds=2: only the first model is evaluated, "
                "before any training"
            ],
        ),
    ],
)
def test_evaluations_that_never_come(words: tuple[str, ...], lines: list[str]) -> None:
    assert remarks(compose_words(*words).config) == lines
