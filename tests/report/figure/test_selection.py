"""The map of who did what when, where there is no room for each client and round."""

import numpy as np

from fedcohort.report.choice import ARRIVED, AWAY, IDLE, TOO_LATE
from fedcohort.report.figure import selection


def test_a_coarse_map_keeps_the_rare() -> None:
    """Groups of two clients and two rounds: an arrival wins over lateness, that over absence of at least half."""
    idle, away, too_late, arrived = IDLE, AWAY, TOO_LATE, ARRIVED
    fate = np.array(
        [[idle, idle, too_late, idle], [idle, arrived, idle, too_late], [away, idle, away, idle], [away] + 3 * [idle]]
    )
    halves = np.array([0, 2])
    assert selection.coarse(fate, halves, halves).tolist() == [[arrived, too_late], [away, idle]]
    assert selection.coarse(fate, np.arange(4), np.arange(4)).tolist() == fate.tolist()
