"""A verdict says in its own sentence where it isn't about like with like, and how to ask for those that are."""

import csv
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from compare_toy import ACC, run, table
from fedcohort.observe.comparison import draw, render, verdict
from fedcohort.observe.comparison.likeness import find_newest_sweep, find_unlike, name_newest
from fedcohort.observe.comparison.runs import sort
from fedcohort.observe.comparison.table import tabulate
from fedcohort.observe.comparison.tracked import Run
from fedcohort.report.figure import style

LONG = {"deadline": "fixed", "deadline.k": "1.0", "until.virtual_s": "5400"}
SHORT = {"deadline": "wait_for_all", "until.virtual_s": "null"}


def two_sweeps() -> list[Run]:
    """Random and flash of the first sweep, with five seeds, then all three with other budgets and three seeds."""
    runs = [
        _in(run(word, seed, acc + seed / 100, started=1, options=LONG, rounds="500"), "2026-01-01")
        for word, acc in (("random", 0.7), ("flash", 0.6))
        for seed in range(5)
    ]
    return runs + [
        _in(run(word, seed, acc + seed / 90, started=2, options=SHORT, rounds="50"), "2026-01-02")
        for word, acc in (("random", 0.6), ("flash", 0.6), ("ucb", 0.65))
        for seed in range(3)
    ]


def _in(found: Run, sweep: str) -> Run:
    return replace(found, tags={**found.tags, "sweep_id": sweep})


def test_runs_of_another_budget_are_not_said_to_be_behind_without_that() -> None:
    """Of random and flash the first sweep's five runs are compared, of ucb there are those of the second alone."""
    (said,) = verdict.tell(table(two_sweeps()))
    like, unlike, hint = said.removesuffix(".").split("; ")
    assert like.startswith("test/acc: flash is behind random by 10.00 points")
    assert "like" not in like
    assert unlike.startswith("ucb is behind random by 4.89 points")
    assert unlike.endswith(", 3 seeds, but not like with like: rounds, until.virtual_s, deadline differ")
    assert hint == "the runs are of several sweeps: sweep=2026-01-02 compares those of the newest alone"


def test_the_csv_and_the_forest_say_so_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who reads only these would take the verdict for one on the selector."""
    drawn = []
    monkeypatch.setattr(style, "save", lambda figure, path: drawn.append(figure))
    found = table(two_sweeps())
    rows = {row["selector"]: row for row in csv.DictReader(render.render_csv(found).splitlines())}
    assert (rows["ucb"]["verdict"], rows["ucb"]["unlike"]) == ("behind", "rounds until.virtual_s deadline")
    assert (rows["flash"]["verdict"], rows["flash"]["unlike"], rows["random"]["unlike"]) == ("behind", "", "")
    draw.forest(found, sort(two_sweeps(), "selector", None, ACC), tmp_path / "forest.png")
    (axes,) = drawn[0].axes
    shown = {bars.get_label(): bars.lines[0].get_fillstyle() for bars in axes.containers}
    assert shown == {"behind random": "full", "behind random, but not like with like": "none"}


def test_runs_of_one_sweep_are_compared_without_a_word_more() -> None:
    newest = [each for each in two_sweeps() if each.tags["sweep_id"] == "2026-01-02"]
    assert verdict.tell(table(newest)) == [
        "test/acc: ucb is ahead of random by 5.0 points on each of 3 seeds, without an interval; "
        "flash not distinguishable from random."
    ]


def test_whoever_is_not_distinguishable_may_be_unlike_too() -> None:
    runs = [run("random", seed, 0.5) for seed in range(3)]
    runs += [run(word, seed, 0.49 + seed / 100, rounds=n) for word, n in (("a", "5"), ("b", "9")) for seed in range(3)]
    assert verdict.tell(table(runs)) == [
        "test/acc: a not distinguishable from random; b not distinguishable from random, but not like with like: "
        "rounds differs."
    ]


def test_many_options_are_counted() -> None:
    options = {"client.lr": "1", "client.batch": "2", "eval.every": "3", "update_limit.a": "4", "cohort": "9"}
    runs = [run("random", seed, 0.5) for seed in range(2)]
    runs += [run("ucb", seed, 0.4, options=options, rounds="9") for seed in range(2)]
    (said,) = verdict.tell(table(runs))
    assert said.endswith("but not like with like: rounds, client.batch, client.lr, cohort and 2 more differ.")


@pytest.mark.parametrize(
    ("rows", "first", "second", "expected"),
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
def test_what_differs_beside_what_is_compared(
    rows: str, first: Mapping[str, str], second: Mapping[str, str], expected: tuple[str, ...]
) -> None:
    a, b = ("5", "9") if rows == "rounds" else ("a", "b")
    runs = []
    for value, given in ((a, first), (b, second)):
        made = run("random", 0, 0.5, options={**given, **({rows: value} if rows in ("selector", "agg") else {})})
        runs.append(replace(made, tags={**made.tags, "name": value}))
    found = sort(runs, rows, None, ACC)
    assert find_unlike((b, ""), (a, ""), found, rows) == expected


def test_a_column_that_is_the_baseline_is_what_is_compared() -> None:
    """Of agg=a, the baseline, and agg=b, which brings its own deadline along, in the row of one selector."""
    runs = [run("ucb", s, 0.5, agg, options={"deadline": agg}) for agg in ("a", "b") for s in range(2)]
    found = tabulate(sort(runs, "selector", "agg", ACC), "selector", "agg", ACC, "a", "auto")
    assert found.entries["ucb", "b"].unlike == ()


def test_the_newest_sweep_is_the_one_that_began_last() -> None:
    """A sweep that found all of its runs finished has those of the one before, and a name that sorts after."""
    runs = [_in(run("a", 0, 0.1, started=3), "2025, 2026"), _in(run("b", 0, 0.1, started=1), "2027")]
    assert name_newest(runs) == "2026"
    assert name_newest([replace(each, tags={}) for each in runs]) is None
    assert find_newest_sweep(sort(runs, "selector", None, ACC)) == "2026"
    assert find_newest_sweep(sort(runs[:1], "selector", None, ACC)) is None
