"""Full participation selects all available clients, whatever the cohort."""

from selector_harness import World, cohorts, play
from yaml_words import make


def test_all_available_clients_are_selected() -> None:
    available_by_round = [[0, 3, 4], [], [7]]
    steps = play(make("selector", "full"), World(cohort=2, available=lambda t: available_by_round[t]), 3)
    assert cohorts(steps) == available_by_round
    assert all(step.selection.uncapped for step in steps)
