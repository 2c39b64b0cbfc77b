"""The cost to a target: cases, and what noise does to it."""

import math

import numpy as np
import pytest

from fedcohort.results.run import Evaluations
from fedcohort.results.target import Cost, baseline_target, costs_to_target, find_crossing, median_cost
from results.known_cases import case, near


def test_costs_to_a_target_of_cases_by_hand() -> None:
    inputs, expected = case(3)
    steps, values, cost = (np.asarray(inputs[name], dtype=float) for name in ("steps", "values", "cost"))
    run = Evaluations(steps, values, {"bytes": cost})
    costs = costs_to_target(run, inputs["target"], inputs["window"])["bytes"]
    assert [costs.value, costs.met] == near(expected)
    assert costs_to_target(run, inputs["target"]) == {"bytes": Cost(80.0, met=True)}
    inputs, expected = case(4)
    median = median_cost([Cost(*arguments) for arguments in inputs["times"]])
    assert (median.value, median.met, median.n) == (near(expected), 4, 6)


def test_a_full_window_of_trained_models_is_needed() -> None:
    steps = np.arange(4.0)
    assert find_crossing(steps, np.array([9.0, 9, 9, 9]), 9.0, window=3) == 3
    assert find_crossing(steps, np.array([9.0, 9, 9, 9]), 9.0, window=4) is None
    assert find_crossing(steps, np.array([0.0, 0.9, math.nan, 0.9]), 0.9, window=2) is None
    assert find_crossing(steps, np.array([5.0, 3, 2, 1]), 2.0, sign=-1) == 2
    assert (
        find_crossing(steps, np.array([0, 0.7, 0.9, 1], dtype=np.float32).astype(float), 0.9) == 2
    )  # kept in single precision


def test_a_median_of_mostly_missed_targets_is_infinite() -> None:
    median = median_cost([Cost(10.0, met=True), Cost(60.0, met=False)])
    assert (median.value, median.lower, median.met) == (math.inf, 10.0, 1)
    assert math.isnan(median_cost([]).value)


def test_the_default_target_is_95_percent_of_the_way() -> None:
    assert baseline_target([0.8, 0.6]) == pytest.approx(0.665)
    assert baseline_target([1.0, 1.0], start=2.0) == pytest.approx(1.05)  # a loss
