"""What a study keeps of a run's curve, in closed form."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedcohort.record import provenance
from fedcohort.record.journal import Journal
from fedcohort.results.compare import Options
from fedcohort.results.run import Evaluations
from fedcohort.results.target import Target
from fedcohort.study.definition import find_clock_limit
from fedcohort.study.measure import make_row, measure_run_folder
from fedcohort.study.result_files import Row
from record.example_run import make_report, make_run_info
from study.small_study import make_curve


def curve(*values: float) -> Evaluations:
    steps = np.arange(len(values), dtype=float)
    return make_curve(steps, values, 10 * steps, 100 * steps)


def columns(
    curve: Evaluations, goal: float = math.nan, clock_s: float = math.nan, crossing: str = "window", **options: Any
) -> Row:
    settings = Options("test/acc", **options)
    return make_row(curve.cut_at_horizon(settings.horizon, clock_s), settings, Target(crossing=crossing), goal)


def test_late_mean_last_and_best_values() -> None:
    measured = columns(curve(0.9, 0.2, 0.6, 0.5, 0.4))
    assert measured["late"] == pytest.approx((0.6 + 0.5 + 0.4) / 3)
    assert measured["last"] == 0.4
    assert measured["best"] == 0.9
    assert math.isnan(measured["target"])
    assert math.isnan(measured["rounds_to_target"])


def test_the_best_value_of_a_loss_is_its_smallest() -> None:
    options = Options("test/loss", "random", sign=-1, result="best")
    row = make_row(curve(2.3, 0.7, 0.4, 0.9), options)
    assert (row["late"], row["best"], row["last"]) == (0.4, 0.4, 0.9)


def test_with_a_clock_the_late_mean_covers_the_last_sixth_of_the_time() -> None:
    """Of 60 s the last ten: one model until 54 s, the next from there, and what comes at 61 s is too late."""
    trajectory = make_curve([0, 1, 2, 3], [0.1, 0.5, 0.8, 0.9], [0, 30, 54, 61], [0] * 4)
    assert columns(trajectory, clock_s=60.0)["late"] == pytest.approx(0.4 * 0.5 + 0.6 * 0.8)
    # a fast run that had done all of its rounds at 40 s is as good as it was then; a slow one has its first model
    assert columns(curve(0.1, 0.5, 0.7, 0.4, 0.6), clock_s=60.0)["late"] == pytest.approx(0.6)
    assert columns(curve(0.1, 0.5), clock_s=9.0)["late"] == pytest.approx(0.1)
    # rounds alone don't say who is better: three of the slow one's are its whole run
    slow_curve = make_curve(range(4), [0.1, 0.3, 0.6, 0.8], [0, 20, 40, 50], [0] * 4)
    fast_curve = make_curve(range(4), [0.1, 0.8, 0.8, 0.8], [0, 50, 55, 60], [0] * 4)
    assert columns(slow_curve)["late"] < columns(fast_curve)["late"]
    assert columns(slow_curve, clock_s=60.0)["late"] == pytest.approx(columns(fast_curve, clock_s=60.0)["late"])


def test_a_clock_is_found_in_the_overrides() -> None:
    assert find_clock_limit(["rounds=120", "until.virtual_s=300", "seed=0"]) == 300.0
    assert find_clock_limit(["until.virtual_s=300", "until.virtual_s=null"]) is None
    assert find_clock_limit(["rounds=120", "until.acc=0.9"]) is None


def test_the_late_mean_of_a_short_run_excludes_the_initial_model() -> None:
    assert columns(curve(0.1, 0.5, 0.7))["late"] == pytest.approx(0.6)
    assert math.isnan(columns(curve(0.1))["late"])


@pytest.mark.parametrize("target", [0.6, 0.7, 0.9])
def test_a_target_met_exactly_is_met_before_and_after_it_is_kept(target: float) -> None:
    """Curves are kept in single precision, where 0.7 and 0.9 are a little less, and 0.6 a little more."""
    trajectory = curve(0.1, target - 1e-4, target)
    stored = replace(trajectory, values=trajectory.values.astype(np.float32).astype(float))
    assert [columns(run, target, crossing="first")["rounds_to_target"] for run in (trajectory, stored)] == [2.0, 2.0]


def test_a_diverged_end_is_part_of_the_curve(tmp_path: Path) -> None:
    """Round 2 has no finite value and round 3 was not evaluated: the costs of both rounds still count."""
    journal, facts = Journal(), make_run_info(tmp_path / "run", rounds=3)
    journal.start(facts)
    for step, value in enumerate((0.5, 0.6, math.nan, None)):
        measured = {} if value is None else {"clients/jain": value}
        metrics = {
            **measured,
            "time/virtual_s": 10.0 * step,
            "comm/down_bytes": 1.0 * step,
            "comm/up_bytes": 2.0 * step,
        }
        journal.observe(replace(make_report(step), metrics=metrics))
    provenance.append_start_record(facts.folder, {"commit": "c0ffee", "dirty": False, "sources": "", "versions": {}})
    client_metric, trajectory = measure_run_folder(facts.folder, "clients/jain")
    assert trajectory.steps.tolist() == [0.0, 1.0, 2.0]
    assert math.isnan(columns(trajectory)["late"])
    assert (client_metric["rounds"], client_metric["virtual_s"], client_metric["bytes"]) == (3, 30.0, 9.0)


def test_the_cost_to_a_target_that_one_evaluation_meets() -> None:
    first = columns(curve(0.1, 0.5, 0.7, 0.4, 0.8), 0.7, crossing="first")
    assert (first["rounds_to_target"], first["virtual_s_to_target"], first["bytes_to_target"]) == (2.0, 20.0, 200.0)
    assert math.isnan(columns(curve(0.1, 0.5), 0.7, crossing="first")["bytes_to_target"])
    untrained = columns(curve(0.9, 0.5, 0.4), 0.7, crossing="first")
    assert math.isnan(untrained["rounds_to_target"]), "the untrained model does not count"


def test_the_cost_to_a_target_that_the_mean_of_the_window_meets() -> None:
    """Means of three: 0.5, 0.6 and 0.65 after rounds 3, 4 and 5; up to a horizon of 4, 0.65 is never met."""
    run = curve(0.1, 0.4, 0.8, 0.3, 0.7, 0.95)
    assert columns(run, 0.65)["rounds_to_target"] == 5.0
    assert columns(run, 0.6)["rounds_to_target"] == 4.0
    limited = columns(run, 0.65, horizon=4)
    assert math.isnan(limited["rounds_to_target"])
    assert (limited["bytes_spent"], limited["late"], limited["last"]) == (400.0, pytest.approx(0.6), 0.7)


def test_the_last_sixth_is_the_default() -> None:
    """Of 24 evaluations the last four; of six, three at least. The target is met by the mean of as many."""
    row = columns(curve(0.1, *(k / 24 for k in range(1, 25))), 0.5)
    assert row["late"] == pytest.approx((21 + 22 + 23 + 24) / 4 / 24)
    assert row["rounds_to_target"] == 14.0, "(11 + 12 + 13 + 14) / 4 / 24 is 0.52, one round earlier it is 0.48"
    assert columns(curve(0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7))["late"] == pytest.approx(0.6)


def test_evaluations_after_the_time_budget_do_not_meet_the_target() -> None:
    """Rounds end at 10, 20, 30 s: the third, which meets 0.7, ends after a clock of 25 s, and not after one of 30."""
    short_budget, exact_budget = (columns(curve(0.1, 0.5, 0.6, 0.7), 0.7, clock, "first") for clock in (25.0, 30.0))
    assert math.isnan(short_budget["virtual_s_to_target"])
    assert (exact_budget["rounds_to_target"], exact_budget["virtual_s_to_target"]) == (3.0, 30.0)
