"""The map of who did what when, where there is no room for each client and round."""

import numpy as np

from fedcohort.report.figure import selection
from fedcohort.report.scored_round import ARRIVED, AWAY, IDLE, TOO_LATE


def test_a_coarse_map_keeps_the_rare() -> None:
    """Groups of two clients and two rounds: an arrival wins over lateness, that over absence of at least half."""
    idle, away, too_late, arrived = IDLE, AWAY, TOO_LATE, ARRIVED
    outcome = np.array(
        [[idle, idle, too_late, idle], [idle, arrived, idle, too_late], [away, idle, away, idle], [away] + 3 * [idle]]
    )
    halves = np.array([0, 2])
    assert selection.coarse(outcome, halves, halves).tolist() == [[arrived, too_late], [away, idle]]
    assert selection.coarse(outcome, np.arange(4), np.arange(4)).tolist() == outcome.tolist()
