"""The cost to a target: cases, and what noise does to it."""

import math
from dataclasses import replace

import numpy as np
import pytest

from fedcohort.errors import OptionError
from fedcohort.report.comparison.tables import format_median_cost
from fedcohort.results.compare_cost import CostResult
from fedcohort.results.run import Evaluations
from fedcohort.results.target import (
    Cost,
    Target,
    find_costs_to_target,
    find_crossing,
    find_median_cost,
    measure_speed_up,
    parse_target,
)
from results.statistics_cases import approx_nested, load_case


def test_costs_to_a_target_of_cases_by_hand() -> None:
    inputs, expected = load_case(3)
    steps, values, cost = (np.asarray(inputs[name], dtype=float) for name in ("steps", "values", "cost"))
    run = Evaluations(steps, values, {"bytes": cost})
    costs = find_costs_to_target(run, inputs["target"], inputs["window"])["bytes"]
    assert [costs.value, costs.is_met] == approx_nested(expected)
    assert find_costs_to_target(run, inputs["target"]) == {"bytes": Cost(80.0, is_met=True)}
    inputs, expected = load_case(4)
    median = find_median_cost([Cost(*arguments) for arguments in inputs["times"]])
    assert (median.value, median.n_met, median.n) == (approx_nested(expected), 4, 6)


def test_a_run_that_misses_the_target_under_a_clock_costs_what_it_spent_within_the_clock() -> None:
    """The limit is 10 s; the evaluation at 13 s does not count, although its round ended the run."""
    costs = {"virtual_s": np.array([0.0, 4, 8, 13]), "bytes": np.array([0.0, 100, 200, 300])}
    run = Evaluations(np.arange(4.0), np.array([0.1, 0.2, 0.3, 0.9]), costs, clock_s=10.0)
    assert find_costs_to_target(run, 0.8) == {"virtual_s": Cost(10.0, is_met=False), "bytes": Cost(200.0, is_met=False)}
    assert find_costs_to_target(run, 0.3) == {"virtual_s": Cost(8.0, is_met=True), "bytes": Cost(200.0, is_met=True)}
    ended_by_rounds = replace(run, clock_s=20.0)
    assert find_costs_to_target(ended_by_rounds, 0.95)["virtual_s"] == Cost(13.0, is_met=False)
    late_evaluations = Evaluations(
        run.steps[3:], run.values[3:], {name: cost[3:] for name, cost in costs.items()}, 10.0
    )
    assert find_costs_to_target(late_evaluations, 0.8) == {
        "virtual_s": Cost(10.0, is_met=False),
        "bytes": Cost(0.0, is_met=False),
    }


def test_a_pair_without_a_common_cost_has_the_ratio_one() -> None:
    """The baseline misses the target with nothing spent within the clock: the cost that both runs spent is 0."""
    baseline_costs = {0: Cost(0.0, is_met=False), 1: Cost(100.0, is_met=True), 2: Cost(400.0, is_met=True)}
    method_costs = {0: Cost(50.0, is_met=True), 1: Cost(50.0, is_met=True), 2: Cost(100.0, is_met=True)}
    speed_up = measure_speed_up(baseline_costs, method_costs)
    assert speed_up.ratio == pytest.approx(2.0)  # (1 x 2 x 4) ** (1 / 3)
    assert (speed_up.n, speed_up.n_unmet) == (3, 1)


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
    median = find_median_cost([Cost(10.0, is_met=True), Cost(60.0, is_met=False)])
    assert (median.value, median.lower, median.n_met) == (math.inf, 10.0, 1)
    assert math.isnan(find_median_cost([]).value)


def test_the_bound_of_a_median_is_the_middle_run_and_not_the_longest() -> None:
    """Ends at 100, 200 and 5,000 s without the target: the middle time is above 200 s, and may be 201 s."""
    missed = [Cost(value, is_met=False) for value in (5000.0, 100.0, 200.0)]
    for costs in (missed, [Cost(10.0, is_met=True), Cost(5000.0, is_met=False), Cost(200.0, is_met=False)]):
        median = find_median_cost(costs)
        assert (median.value, median.lower) == (math.inf, 200.0)
        assert format_median_cost(CostResult(dict(enumerate(costs)), median), "virtual_s") == "> 3 min 20 s"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.84", Target(0.84, level=0.95)),
        ("baseline", Target()),
        ("best_of:random,oort", Target(best_of=["random", "oort"])),
    ],
)
def test_target_options_are_parsed(text: str, expected: Target) -> None:
    assert parse_target(text, "test/acc") == expected


@pytest.mark.parametrize(
    ("text", "reason"), [("high", "a number, baseline, or best_of:"), ("84", r"in \[0, 1\]"), ("nan", "a number")]
)
def test_invalid_target_options_are_rejected(text: str, reason: str) -> None:
    with pytest.raises(OptionError, match=reason):
        parse_target(text, "test/acc")
    with pytest.raises(OptionError, match=r"level must be a number in \(0, 1\]"):
        Target(level=0.0)
