"""The result of a run: cases, and closed forms."""

import math
from dataclasses import replace

import numpy as np
import pytest

from fedcohort.errors import OptionError
from fedcohort.results.compare import Options
from fedcohort.results.run import (
    Evaluations,
    Numbers,
    ResultKind,
    average_over_clock,
    find_late_window,
    fit_late_slope,
    result_of_run,
)
from results.statistics_cases import approx_nested, load_case


def compute_run_result(
    steps: Numbers, values: Numbers, result_kind: ResultKind = "late", horizon: int | None = None
) -> float:
    """Return the result of a run with these evaluations, which has no virtual clock."""
    run = Evaluations(np.array(steps, dtype=float), np.array(values, dtype=float), {})
    return result_of_run(run, result_kind, horizon)


@pytest.mark.parametrize("number", [1, 2])
def test_the_results_of_runs_by_hand(number: int) -> None:
    inputs, expected = load_case(number)
    assert compute_run_result(**inputs) == approx_nested(expected)


def test_the_last_sixth_counts_but_at_least_three_evaluations() -> None:
    steps, values = np.arange(61.0), np.arange(61.0)
    assert compute_run_result(steps, values) == np.mean(range(51, 61))
    assert find_late_window(steps).sum() == 10
    assert compute_run_result(steps[:13], values[:13]) == 11.0
    assert compute_run_result(steps[:3], values[:3]) == 1.5  # two trained models
    assert math.isnan(compute_run_result(steps[:1], values[:1]))  # the untrained model is no result
    assert (compute_run_result(steps, -values, "last"), compute_run_result(steps, -values, "best")) == (-60.0, -1.0)
    assert fit_late_slope(steps, 2 * values) == pytest.approx(2.0)
    assert math.isnan(compute_run_result(steps, np.where(steps == 55, math.nan, values)))
    with pytest.raises(OptionError, match=r"result must be one of late, last, best, got 'mean'"):
        Options("test/acc", result="mean")  # type: ignore[arg-type]


@pytest.mark.parametrize(("result_kind", "expected"), [("last", 0.55), ("best", 0.6)])
def test_evaluations_after_the_clock_do_not_count(result_kind: ResultKind, expected: float) -> None:
    """The round that reaches the limit of 60 s ends at 110 s: its model does not exist at the limit."""
    virtual_s = np.array([0.0, 30, 55, 110])
    run = Evaluations(np.arange(4.0), np.array([0.1, 0.6, 0.55, 0.7]), {"virtual_s": virtual_s}, clock_s=60.0)
    assert result_of_run(run, result_kind) == expected
    short_run = replace(run, clock_s=20.0)
    assert result_of_run(short_run, result_kind) == pytest.approx(result_of_run(short_run)) == 0.1


def test_with_a_clock_each_model_is_weighted_by_its_time() -> None:
    """Of 60 s the last ten: one model until 54 s, the next from there, and what comes at 61 s is too late."""
    values = np.array([0.1, 0.5, 0.8, 0.9])
    assert average_over_clock(np.array([0.0, 30, 54, 61]), values, 60.0) == pytest.approx(0.4 * 0.5 + 0.6 * 0.8)
    assert average_over_clock(np.array([0.0, 10, 20, 30]), values, 60.0) == pytest.approx(0.9)
