"""Curves of several seeds as one: by round, by cost, and minus the baseline's."""

import numpy as np
import pytest

from fedcohort.report.comparison.mean_curves import ROUNDS_AXIS, average_curves, average_difference
from fedcohort.results.compare import Options
from fedcohort.results.run import Evaluations


def curve(values: list[float], rounds: list[int], seconds: float = 1.0) -> Evaluations:
    steps = np.array(rounds, dtype=float)
    return Evaluations(steps, np.array(values), {"virtual_s": seconds * steps})


def test_a_mean_at_common_rounds_with_its_interval() -> None:
    """1 and 3 in round 2: s = sqrt(2), half = 12.7062 * sqrt(2) / sqrt(2)."""
    mean = average_curves({0: curve([1.0, 5.0], [2, 3]), 1: curve([3.0, 5.0], [2, 4])}, ROUNDS_AXIS)
    assert (mean.x.tolist(), mean.mean.tolist()) == ([2.0], [2.0])
    assert mean.half_width[0] == pytest.approx(12.7062, rel=1e-5)
    assert np.isnan(average_curves({0: curve([1.0], [1])}, ROUNDS_AXIS).half_width).all()


def test_at_equal_cost_runs_end_where_the_first_does() -> None:
    mean = average_curves({0: curve([0.0, 10.0], [0, 10]), 1: curve([0.0, 10.0], [0, 10], seconds=2.0)}, "virtual_s")
    assert (mean.x[0], mean.x[-1]) == (0.0, 10.0)
    assert mean.mean[-1] == pytest.approx(7.5)


def test_differences_are_paired_and_positive_where_better() -> None:
    method, base = {0: curve([1.0], [1]), 1: curve([2.0], [1])}, {0: curve([3.0], [1]), 7: curve([0.0], [1])}
    assert average_difference(method, base, ROUNDS_AXIS, Options("value")).mean.tolist() == [-2.0]
    assert average_difference(method, base, ROUNDS_AXIS, Options("value", sign=-1)).mean.tolist() == [2.0]
    assert not len(average_difference(method, {}, ROUNDS_AXIS, Options("value")).x)
