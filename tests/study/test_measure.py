"""What a study keeps of a run's curve, in closed form."""

import math

import numpy as np
import pytest

from fedcohort.study.measure import Trajectory, summarise


def curve(*values: float) -> Trajectory:
    steps = np.arange(len(values), dtype=float)
    return Trajectory(steps, np.array(values), 10 * steps, 100 * steps)


def test_late_last_and_best() -> None:
    found = summarise(curve(0.9, 0.2, 0.6, 0.5, 0.4), 3, None)
    assert found["late"] == pytest.approx((0.6 + 0.5 + 0.4) / 3)
    assert found["last"] == 0.4
    assert found["best"] == 0.9
    assert math.isnan(found["target"])
    assert math.isnan(found["rounds_to_target"])


def test_a_run_shorter_than_late_leaves_out_the_first_model() -> None:
    assert summarise(curve(0.1, 0.5, 0.7), 10, None)["late"] == pytest.approx(0.6)
    assert summarise(curve(0.1), 10, None)["late"] == 0.1


def test_what_it_took_to_the_target() -> None:
    found = summarise(curve(0.1, 0.5, 0.7, 0.4, 0.8), 2, 0.7)
    assert (found["rounds_to_target"], found["virtual_s_to_target"], found["bytes_to_target"]) == (2.0, 20.0, 200.0)
    assert math.isnan(summarise(curve(0.1, 0.5), 2, 0.7)["bytes_to_target"])
