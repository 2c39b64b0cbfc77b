"""Conditions compared with a baseline: closed forms, families and laws."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fedcohort.errors import OptionError
from fedcohort.results.compare import Comparison, Options, compare_conditions
from fedcohort.results.frame import RunFrames
from results.constant_runs import ACC, make_frames


def verdicts(comparison: Comparison) -> dict[tuple[str, str], str]:
    return {cell: entry.verdict for cell, entry in comparison.results.items()}


def test_a_difference_is_paired_over_common_seeds() -> None:
    """Differences .1, .2, .3 have t = sqrt(12) with 2 degrees of freedom: p = 1 - sqrt(12 / 14)."""
    comparison = compare_conditions(
        make_frames({("", "random"): [0.1, 0.2, 0.4, 0.5], ("", "ucb"): [0.2, 0.4, 0.7]}), Options(ACC, "random")
    )
    entry = comparison.results["", "ucb"]
    assert entry.difference is not None
    assert entry.difference.n == 3
    assert entry.difference.mean == pytest.approx(0.2)
    assert entry.p == pytest.approx(1 - math.sqrt(12 / 14))
    assert entry.verdict == "not settled"
    assert entry.seeds_needed is not None
    assert comparison.results["", "random"].difference is None
    assert comparison.result_window == (4, 6)


def test_the_family_is_the_methods_of_a_setting_without_oracles() -> None:
    """Holm doubles the smaller of two p; an oracle is in no family, and another setting is another one."""
    noise = [0.001, -0.001, 0.002, -0.002]
    values = {
        (setting, name): [0.5 + gain + scale * x for x in noise]
        for setting, name, gain, scale in (
            ("a", "random", 0.0, 0.0),
            ("a", "good", 0.05, 1.0),
            ("a", "bad", -0.05, 5.0),
            ("a", "oracle_clean", 0.1, 1.0),
            ("b", "random", 0.0, 0.0),
            ("b", "good", 0.05, 1.0),
        )
    }
    comparison = compare_conditions(make_frames(values), Options(ACC, "random"))
    raw = {cell: entry.difference.p for cell, entry in comparison.results.items() if entry.difference is not None}
    assert comparison.results["a", "good"].p == pytest.approx(2 * raw["a", "good"])
    assert comparison.results["a", "oracle_clean"].p == raw["a", "oracle_clean"]
    assert comparison.results["b", "good"].p == raw["b", "good"]
    assert (comparison.settings["a"].n_tests, comparison.settings["b"].n_tests) == (2, 1)
    assert verdicts(comparison)["a", "bad"] == "worse"
    assert list(comparison.list_results("a")) == ["oracle_clean", "good", "random", "bad"]


def test_verdicts_without_a_significant_difference() -> None:
    base, nan = [0.5, 0.52, 0.54], math.nan
    values = {
        ("", "random"): base,
        ("", "same"): [x + 0.1 for x in base],
        ("", "diverged"): [0.5, math.inf, 0.5],
        ("", "few"): [0.5, 0.6],
    }
    comparison = compare_conditions(make_frames(values), Options(ACC, "random"))
    expected = {"random": "", "same": "same on all seeds", "diverged": "diverged", "few": "too few seeds"}
    assert verdicts(comparison) == {("", name): verdict for name, verdict in expected.items()}
    assert math.isnan(comparison.results["", "diverged"].p)
    assert list(comparison.list_results(""))[-1] == "diverged"
    assert compare_conditions(make_frames({("", "a"): [nan]}), Options(ACC)).results["", "a"].verdict == ""


def test_conditions_with_other_data_are_not_paired() -> None:
    runs = make_frames({("", "random"): [0.1, 0.2], ("", "ucb"): [0.2, 0.4]})
    assert (
        compare_conditions(runs, Options(ACC, "random", unpaired_cells={("", "ucb")})).results["", "ucb"].difference
        is None
    )


@pytest.mark.parametrize(
    ("options", "expected"),
    [({}, 5.0), ({"result": "last"}, 6.0), ({"result": "best"}, 6.0), ({"horizon": 4}, 3.0), ({"sign": -1}, 5.0)],
)
def test_the_result_of_a_run_by_hand(options: dict[str, Any], expected: float) -> None:
    """Of the values 1 to 6 the last three are averaged, as a sixth of six rounds holds one evaluation."""
    runs = make_frames({("", "a"): [0.0]})
    runs.curves[ACC] = runs.curves["round"].astype(float)
    assert compare_conditions(runs, Options(ACC, **options)).results["", "a"].mean.mean == expected


def test_the_best_of_a_loss_is_the_lowest() -> None:
    runs = make_frames({("", "a"): [0.0]})
    runs.curves[ACC] = runs.curves["round"].astype(float)
    assert compare_conditions(runs, Options(ACC, sign=-1, result="best")).results["", "a"].mean.mean == 1.0


def test_a_clock_weighs_each_model_by_its_time() -> None:
    """Rounds end at 1 to 6 s; of the last sixth of 12 s, from 10 on, the newest model is the sixth."""
    runs = make_frames({("", "a"): [0.0]}, clock_s=12.0)
    runs.curves[ACC] = runs.curves["round"].astype(float)
    assert compare_conditions(runs, Options(ACC)).results["", "a"].mean.mean == 6.0


def test_the_order_of_runs_and_seeds_does_not_matter() -> None:
    rng = np.random.default_rng(0)
    values = {(s, m): list(rng.normal(0.5, 0.02, 6)) for s in ("a", "b") for m in ("random", "x", "y")}
    runs = make_frames(values)
    shuffled = RunFrames(runs.runs.sample(frac=1, random_state=1), runs.curves.sample(frac=1, random_state=2))
    first, second = (compare_conditions(ordered, Options(ACC, "random")).results for ordered in (runs, shuffled))
    for cell, entry in first.items():
        shuffled_entry = second[cell]
        assert (entry.mean, entry.verdict, entry.seeds_needed) == (
            shuffled_entry.mean,
            shuffled_entry.verdict,
            shuffled_entry.seeds_needed,
        )
        assert entry.p == shuffled_entry.p or math.isnan(entry.p)


def test_negated_metrics_mirror_the_verdicts() -> None:
    rng = np.random.default_rng(1)
    values = {("", "random"): list(rng.normal(0.5, 0.01, 8))}
    values |= {("", f"m{i}"): list(rng.normal(0.5 + 0.01 * i, 0.01, 8)) for i in range(-4, 5)}
    options = Options(ACC, "random")
    high, low = (verdicts(compare_conditions(make_frames(values), replace(options, sign=sign))) for sign in (1, -1))
    mirror = {"better": "worse", "worse": "better"}
    assert {"better", "worse"} <= set(high.values())
    assert {cell: mirror.get(verdict, verdict) for cell, verdict in high.items()} == low


def test_invalid_arguments_are_rejected() -> None:
    with pytest.raises(OptionError, match="result must be one of late, last, best, got 'mean'"):
        Options(ACC, result="mean")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match=r"horizon must be an integer in \[1, inf\), got 0"):
        Options(ACC, horizon=0)
