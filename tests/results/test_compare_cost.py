"""Costs to a target, compared with a baseline's: targets, windows, axes."""

import math

import numpy as np
import pandas as pd
import pytest

from fedcohort.errors import OptionError
from fedcohort.results.compare import Options
from fedcohort.results.compare_cost import compare_cost, find_target_value, sum_costs
from fedcohort.results.frame import RunFrames
from fedcohort.results.run import Evaluations
from fedcohort.results.target import Target
from results.constant_runs import make_frames as constant_frames

ACC = "test/acc"
FACTS = {"oracle": False, "folder": ""}
FIRST = Target(0.3, crossing="first")


def make_rising_runs(slopes: dict[str, list[float]], rounds: int = 6) -> RunFrames:
    """Runs that gain a share of .1 a round; a round takes 7 s and 3 MB."""
    runs, curves = [], []
    for condition, values in slopes.items():
        for seed, slope in enumerate(values):
            run = f"{condition}/{seed}"
            costs = {"virtual_s": 7.0 * rounds, "bytes": 3e6 * rounds, "client_flops": 0.0}
            runs.append({"run": run, "setting": "", "condition": condition, "seed": seed, **FACTS, **costs})
            curves += [
                {"run": run, "round": step, "virtual_s": 7.0 * step, "bytes": 3e6 * step, ACC: 0.1 * slope * step}
                for step in range(rounds + 1)
            ]
    return RunFrames(pd.DataFrame(runs), pd.DataFrame(curves))


def test_the_cost_is_computed_along_every_known_axis() -> None:
    """.3 is met in round 3 with .1 a round, in round 2 with .15: 1.5 times as fast, on every seed."""
    comparison = compare_cost(make_rising_runs({"a": [1.0] * 3, "b": [1.5] * 3}), Options(ACC, "a"), FIRST)
    assert set(comparison.results) == {"virtual_s", "bytes", "rounds"}
    entry = comparison.results["virtual_s"]["", "b"]
    assert (entry.median.value, entry.median.n_met) == (14.0, 3)
    assert comparison.results["bytes"]["", "a"].median.value == 9e6
    assert entry.speed_up is not None
    assert entry.speed_up.ratio == pytest.approx(1.5)


def test_energy_is_an_axis_where_all_runs_measure_it() -> None:
    """2 J a round: .3 is met at 6 J with .1 a round; whole runs of six rounds spend 12 J."""
    frames = make_rising_runs({"a": [1.0] * 3, "b": [1.5] * 3})
    frames.runs["joules"], frames.curves["joules"] = 12.0, 2.0 * frames.curves["round"]
    comparison = compare_cost(frames, Options(ACC, "a"), FIRST, "joules")
    assert comparison.results["joules"]["", "a"].median.value == 6.0
    assert sum_costs(frames, Options(ACC, "a"))["joules"]["", "b"].mean == 12.0


def test_a_window_averages_as_many_evaluations_as_the_result() -> None:
    """The mean of three evaluations is at least .3 in round 4: (.2 + .3 + .4) / 3."""
    comparison = compare_cost(make_rising_runs({"a": [1.0]}), Options(ACC, "a"), Target(0.3), "rounds")
    assert comparison.results["rounds"]["", "a"].median.value == 4


def test_the_default_target_is_a_share_of_the_baselines_result() -> None:
    """Results .5 and 1, the mean of rounds 4 to 6: .95 times .75."""
    comparison = compare_cost(
        make_rising_runs({"a": [1.0, 2.0], "b": [1.0, 1.0]}), Options(ACC, "a"), Target(), "rounds"
    )
    assert comparison.targets == {"": {0: pytest.approx(0.7125), 1: pytest.approx(0.7125)}}
    assert comparison.results["rounds"]["", "b"].median.n_met == 0


def test_the_default_target_of_a_loss_starts_at_the_untrained_model() -> None:
    """From 2 to the mean result 1, of which the second run has none: 2 - .95."""
    steps, losses = np.arange(4.0), np.array([2.0, 1.0, 1.0, 1.0])
    runs = [Evaluations(steps, losses, {}), Evaluations(steps, np.where(steps > 0, math.nan, losses), {})]
    assert find_target_value(runs, Options("test/loss", "a", sign=-1), Target()) == pytest.approx(1.05)


def test_the_best_of_conditions_is_a_target_for_each_seed() -> None:
    """Seed 1 has no run of b, and so no target."""
    frames = make_rising_runs({"a": [1.0, 1.0], "b": [1.2], "c": [2.0, 2.0]})
    comparison = compare_cost(frames, Options(ACC, "a"), Target(best_of=["a", "b"]), "rounds")
    assert comparison.targets == {"": {0: pytest.approx(0.6)}}
    with pytest.raises(OptionError, match="target must be best_of: and one or more of a, b, c, got 'best_of:d'"):
        compare_cost(frames, Options(ACC, "a"), Target(best_of=["d"]), "rounds")


def test_a_run_that_never_meets_the_target_is_a_bound() -> None:
    comparison = compare_cost(make_rising_runs({"a": [0.4] * 3, "b": [1.0] * 3}), Options(ACC, "a"), FIRST, "rounds")
    entry = comparison.results["rounds"]["", "b"]
    assert entry.speed_up is not None
    assert entry.speed_up.bound == ">="
    assert entry.speed_up.ratio == pytest.approx(2.0)
    assert math.isinf(comparison.results["rounds"]["", "a"].median.value)
    assert comparison.results["rounds"]["", "b"].verdict == "too few seeds" or entry.speed_up.n == 3


def test_an_unknown_axis_is_rejected() -> None:
    frames = make_rising_runs({"a": [1.0]})
    with pytest.raises(OptionError, match="axis=client_flops has no value for run a/0: it was not logged"):
        compare_cost(frames, Options(ACC, "a"), FIRST, "client_flops")
    frames.runs["virtual_s"] = 0.0
    with pytest.raises(OptionError, match="virtual time does not pass with device=instant"):
        compare_cost(frames, Options(ACC, "a"), FIRST)


def test_costs_are_over_common_seeds() -> None:
    runs = constant_frames({("", "random"): [0.1, 0.2], ("", "ucb"): [0.2]})
    runs.runs.loc[runs.runs["condition"] == "ucb", "bytes"] = 6.0
    costs = sum_costs(runs, Options(ACC, "random"))
    assert set(costs) == {"virtual_s", "bytes"}, "no run logged FLOPs"
    assert (costs["bytes"]["", "ucb"].mean, costs["bytes"]["", "ucb"].ratio) == (6.0, 3.0)
    options = Options(ACC, "random", unpaired_cells={("", "ucb")})
    assert math.isnan(sum_costs(runs, options)["bytes"]["", "ucb"].ratio)
