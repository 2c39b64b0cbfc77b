"""Full participation: everybody who is there, cohort or not."""

from selector_harness import World, cohorts, play
from yaml_words import make


def test_all_available_clients_are_selected() -> None:
    here = [[0, 3, 4], [], [7]]
    steps = play(make("selector", "full"), World(cohort=2, available=lambda t: here[t]), 3)
    assert cohorts(steps) == here
    assert all(step.selection.uncapped for step in steps)
