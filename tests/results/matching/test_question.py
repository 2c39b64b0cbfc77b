"""Options in which compared cells differ as well, and the newest sweep."""

from collections.abc import Mapping
from dataclasses import replace

import pandas as pd
import pytest

from case_loop import for_all
from comparison_harness import ACC, compare_runs, make_run, make_runs
from fedcohort.errors import OptionError
from fedcohort.report.comparison.page import list_verdicts
from fedcohort.report.comparison.tables import make_result_table
from fedcohort.results.matching.match import match
from fedcohort.results.matching.question import (
    ComparisonQuestion,
    answer_comparison_question,
    find_newest_sweep,
    list_differing_options,
)
from fedcohort.results.matching.tracked_run import Run, name_newest_sweep

LONG = {"deadline": "fixed", "deadline.k": "1.0", "until.virtual_s": "5400"}
SHORT = {"deadline": "wait_for_all", "until.virtual_s": "null"}


def two_sweeps() -> list[Run]:
    """Random and flash of the first sweep, with five seeds, then all three with other budgets and three seeds."""
    runs = [
        _move_to_sweep(make_run(selector, seed, acc + seed / 100, started=1, options=LONG, rounds="500"), "2026-01-01")
        for selector, acc in (("random", 0.7), ("flash", 0.6))
        for seed in range(5)
    ]
    return runs + [
        _move_to_sweep(make_run(selector, seed, acc + seed / 90, started=2, options=SHORT, rounds="50"), "2026-01-02")
        for selector, acc in (("random", 0.6), ("flash", 0.6), ("ucb", 0.65))
        for seed in range(3)
    ]


def _move_to_sweep(run: Run, sweep: str) -> Run:
    return replace(run, tags={**run.tags, "sweep_id": sweep})


def test_a_verdict_names_a_difference_of_budgets() -> None:
    """Of random and flash the first sweep's five runs are compared, of ucb there are those of the second only."""
    answer = compare_runs(two_sweeps())
    assert answer.differing_options["", "flash"] == ()
    assert answer.differing_options["", "ucb"] == ("rounds", "until.virtual_s", "deadline")
    lines = list_verdicts(answer)
    (ucb,) = (line for line in lines if line.startswith("ucb is worse than random"))
    assert ucb.endswith("Other options differ as well: rounds, until.virtual_s and deadline.")
    assert lines[-1] == "The runs belong to several sweeps: sweep=2026-01-02 compares only those of the newest."
    assert not any("Other options" in line for line in lines if "flash" in line)


def test_many_options_are_counted() -> None:
    options = {"client.lr": "1", "client.batch": "2", "eval.every": "3", "update_limit.a": "4", "cohort": "9"}
    runs = [make_run("random", seed, 0.5) for seed in range(2)]
    runs += [make_run("ucb", seed, 0.4, options=options, rounds="9") for seed in range(2)]
    (line,) = list_verdicts(compare_runs(runs))
    assert line.endswith("Other options differ as well: rounds, client.batch, client.lr, cohort and 2 more.")


def test_costs_are_those_up_to_the_horizon() -> None:
    """Rounds 1 to 3 take 7 s and 3 MB each: whole runs spend 21 s, runs up to round 2 spend 14 s and 6 MB."""
    costs = {"time/virtual_s": 21.0, "comm/down_bytes": 9e6, "comm/up_bytes": 0.0}
    runs = [replace(run, metrics={**run.metrics, **costs}) for run in make_runs([0.5], [0.6])]
    assert compare_runs(runs).costs["virtual_s"]["", "ucb"].mean == 21
    answer = compare_runs(runs, horizon=2)
    assert answer.costs["virtual_s"]["", "ucb"].mean == 14
    assert answer.costs["bytes"]["", "ucb"].mean == 6e6
    assert "cost by the last evaluation up to round 2 (times" in make_result_table(answer).caption


def test_a_horizon_outside_the_evaluated_rounds_is_rejected() -> None:
    expected = (
        r"horizon must be an integer in \[2, 3\], where test/acc is evaluated, or null for the end of each run, got"
    )
    for horizon in (1, 4):
        with pytest.raises(OptionError, match=f"{expected} {horizon}"):
            compare_runs(make_runs([0.5], [0.6]), steps=(0, 2, 3), horizon=horizon)


def test_a_run_that_ends_before_the_horizon_counts_up_to_its_end() -> None:
    """The run of ucb with seed 1 ends after round 2, with 14 of 21 s: the mean of its condition is 17.5 s."""
    runs = make_runs([0.5, 0.5], [0.6, 0.6])
    question = ComparisonQuestion(baseline="random", horizon=3)
    curves = pd.DataFrame(
        {"run": run.id, "round": step, "virtual_s": 7.0 * step, ACC: 0.1 * step}
        for run in runs
        for step in range(3 if run.id.startswith("ucb-fedavg-s1") else 4)
    )
    answer = answer_comparison_question(question, match(runs, "selector", None, ACC, baseline="random"), curves)
    assert answer.costs["virtual_s"]["", "ucb"].mean == 17.5
    assert answer.headline.results["", "ucb"].results[1] == pytest.approx(0.15)


@for_all(
    "rows, first, second, expected",
    [
        ("selector", {"selector.d": "5"}, {"selector.d": "10"}, ()),  # options of what is compared
        ("selector", {"deadline": "fixed", "deadline.k": "1"}, {"deadline": "none"}, ("deadline",)),
        ("selector", {"deadline.k": "1", "rounds": "5"}, {"deadline.k": "2", "rounds": "9"}, ("rounds", "deadline.k")),
        ("agg", {"deadline": "fixed"}, {"deadline": "none"}, ()),  # which an aggregator may bring along
        ("name", {"deadline": "fixed"}, {"deadline": "none"}, ()),  # whatever the names stand for
        ("name", {"rounds": "5"}, {"rounds": "9"}, ("rounds",)),  # but no name hides a budget
        ("rounds", {"rounds": "5"}, {"rounds": "9"}, ()),
    ],
)
def test_other_options_that_differ_are_noted(
    rows: str, first: Mapping[str, str], second: Mapping[str, str], expected: tuple[str, ...]
) -> None:
    a, b = ("5", "9") if rows == "rounds" else ("a", "b")
    runs = []
    for value, options in ((a, first), (b, second)):
        run = make_run("random", 0, 0.5, options={**options, **({rows: value} if rows in ("selector", "agg") else {})})
        runs.append(replace(run, tags={**run.tags, "name": value}))
    matched = match(runs, rows, None, ACC)
    assert list_differing_options(("", b), ("", a), matched) == expected


def test_a_baseline_column_makes_columns_the_conditions() -> None:
    """Of agg=a, the baseline, and agg=b, which brings its own deadline along, in the row of one selector."""
    runs = [make_run("ucb", s, 0.5 + 0.1 * s, agg, options={"deadline": agg}) for agg in ("a", "b") for s in range(2)]
    answer = compare_runs(runs, cols="agg", baseline="a")
    assert list(answer.headline.results) == [("ucb", "a"), ("ucb", "b")]
    assert answer.differing_options == {("ucb", "b"): ()}


def test_the_newest_sweep_is_the_one_that_began_last() -> None:
    """A sweep that found all of its runs finished has those of the one before, and a name that sorts after."""
    runs = [
        _move_to_sweep(make_run("a", 0, 0.1, started=3), "2025, 2026"),
        _move_to_sweep(make_run("b", 0, 0.1, started=1), "2027"),
    ]
    assert name_newest_sweep(runs) == "2026"
    assert name_newest_sweep([replace(run, tags={}) for run in runs]) is None
    assert find_newest_sweep(match(runs, "selector", None, ACC)) == "2026"
    assert find_newest_sweep(match(runs[:1], "selector", None, ACC)) is None
