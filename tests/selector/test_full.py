"""Full participation selects all available clients, whatever the cohort."""

from config_options import make_component
from selector_harness import World, list_cohorts, play_rounds


def test_all_available_clients_are_selected() -> None:
    available_by_round = [[0, 3, 4], [], [7]]
    steps = play_rounds(
        make_component("selector", "full"), World(cohort=2, available=lambda t: available_by_round[t]), 3
    )
    assert list_cohorts(steps) == available_by_round
    assert all(step.selection.uncapped for step in steps)
