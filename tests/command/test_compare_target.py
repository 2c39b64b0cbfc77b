"""Time to a target over seeds: by hand, with runs that never get there, and what is written of it."""

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from compare_toy import ACC, run
from fedcohort.errors import OptionError
from fedcohort.observe.comparison import render_target
from fedcohort.observe.comparison.cells import ONE, Cell
from fedcohort.observe.comparison.goals import Goal, parse
from fedcohort.observe.comparison.runs import sort
from fedcohort.observe.comparison.series import Series
from fedcohort.observe.comparison.target import SpeedUp, TargetTable, Time, speed_up, tabulate
from fedcohort.observe.comparison.tracked import Run

STEP_S = {"random": 10.0, "ucb": 4.0, "oort": 5.0}  # virtual seconds of a round


def series(value: Sequence[float], step_s: float) -> Series:
    rounds = np.arange(len(value), dtype=float)
    return Series(rounds, np.array(value), step_s * rounds, 1e6 * rounds, 2e9 * rounds)


def timed(
    values: Mapping[str, Sequence[Sequence[float]]],
    target: str = "0.8",
    axis: str = "virtual_s",
    baseline: str | None = "random",
) -> TargetTable:
    """values: of each selector, the metric by round for each seed."""
    runs = [run(word, seed, of[-1]) for word, every in values.items() for seed, of in enumerate(every) if len(of)]
    found = sort(runs, "selector", None, ACC)
    histories: dict[Cell, dict[int, Series]] = {
        (word, ONE): {seed: series(of, STEP_S[word]) for seed, of in enumerate(every) if len(of)}
        for word, every in values.items()
    }
    return tabulate(found, histories, ("selector", None, ACC), target, axis, baseline, 1)


REACHED = {  # random meets .8 after 20, 30 and 40 s; ucb after 4, 8 and 4 s
    "random": [[0.1, 0.5, 0.8, 0.7], [0.1, 0.2, 0.3, 0.9], [0.1, 0.2, 0.3, 0.4, 0.81]],
    "ucb": [[0.1, 0.8, 0.7], [0.1, 0.5, 0.9], [0.1, 0.85, 0.9]],
}


def test_times_and_speed_up_by_hand() -> None:
    """Ratios 5, 30/8 = 3.75 and 10: the geometric mean is the cube root of 187.5; the interval is that of the logs."""
    table = timed(REACHED)
    random, ucb = table.entries["random", ONE], table.entries["ucb", ONE]
    assert {seed: time.low for seed, time in random.times.items()} == {0: 20.0, 1: 30.0, 2: 40.0}
    assert (random.low, random.high, random.met) == (30.0, 30.0, 3)
    assert (ucb.low, ucb.high) == (4.0, 4.0)
    found = ucb.speed_up
    assert found is not None
    assert found.logs is not None
    assert found.low == found.high == pytest.approx(187.5 ** (1 / 3))
    logs = np.log([5.0, 3.75, 10.0])
    half = 4.30265 * logs.std(ddof=1) / math.sqrt(3)
    assert (found.logs.over.low, found.logs.over.high) == pytest.approx(
        (logs.mean() - half, logs.mean() + half), rel=1e-5
    )
    assert random.speed_up is None


@pytest.mark.parametrize(("axis", "low"), [("virtual_s", 30.0), ("bytes", 3e6), ("client_flops", 6e9), ("rounds", 3.0)])
def test_every_axis(axis: str, low: float) -> None:
    assert timed(REACHED, axis=axis).entries["random", ONE].low == low


def test_half_of_an_even_number_is_the_lower_of_the_middle() -> None:
    values = {"random": [[0.1] * k + [0.9] for k in (1, 2, 3, 4)]}
    assert timed(values, baseline=None).entries["random", ONE].low == 20.0


def test_a_seed_that_never_gets_there_is_later_than_its_end() -> None:
    """Two of three meet it after 20 and 30 s, the third hadn't after 50 s: half have it at 30 s."""
    values = {"random": [[0.1, 0.5, 0.8], [0.1, 0.2, 0.3, 0.9], [0.1] * 6]}
    entry = timed(values, baseline=None).entries["random", ONE]
    assert (entry.low, entry.high, entry.met) == (30.0, 30.0, 2)
    assert entry.times[2] == Time(50.0, met=False)
    early = {"random": [[0.1, 0.5, 0.8], [0.1, 0.2, 0.3, 0.9], [0.1, 0.2]]}  # given up after 10 s: it may be the first
    entry = timed(early, baseline=None).entries["random", ONE]
    assert (entry.low, entry.high) == (20.0, 30.0)
    most = {"random": [[0.1, 0.5, 0.8], [0.1] * 4, [0.1] * 6]}
    entry = timed(most, baseline=None).entries["random", ONE]
    assert (entry.low, entry.high) == (30.0, math.inf)


def met(low: float) -> Time:
    return Time(low, met=True)


def never(low: float) -> Time:
    return Time(low, met=False)


@pytest.mark.parametrize(
    ("times", "base", "low", "high"),
    [
        ([met(4), met(5), met(5)], [met(8), never(20), met(15)], 3.0, 3.0),  # 2, 3, and more than 4
        ([met(4), met(5), met(5)], [met(8), never(20), never(15)], 3.0, math.inf),  # 2, and more than 3 and 4
        ([met(4), never(5)], [met(8), met(20)], 0.0, 8**0.5),  # 2, and less than 4: the geometric mean of two
        ([met(4), never(5), met(1), met(1)], [met(8), met(20), met(3), met(5)], 6**0.5, 12**0.5),  # 2, < 4, 3, 5
        ([met(4), never(5), met(1)], [never(8), met(20), met(3)], 2.0, 4.0),  # more than 2, less than 4, and 3
        ([never(4), met(5)], [never(8), met(20)], 0.0, math.inf),  # anything, and 4
        ([never(4)], [never(8)], 0.0, math.inf),
        ([met(0), met(5)], [met(8), met(20)], 0.0, math.inf),  # w_0 meets it: no ratio
    ],
)
def test_what_a_censored_pair_leaves_known(times: list[Time], base: list[Time], low: float, high: float) -> None:
    found = speed_up(dict(enumerate(times)), dict(enumerate(base)))
    assert [found.low, found.high] == pytest.approx([low, high])
    assert found.logs is None
    assert found.why


def test_no_pair_and_one_pair() -> None:
    assert speed_up({0: met(1)}, {1: met(1)}).why == "no common seeds"
    one = speed_up({0: met(4), 2: met(1)}, {0: met(8), 1: met(1)})
    assert [one.low, one.high, one.n] == pytest.approx([2.0, 2.0, 1])
    assert render_target.ratio_words(one) == "2.00 (n=1 common seeds: no interval, no test; n=1)"
    same = speed_up({0: met(4), 1: met(8)}, {0: met(8), 1: met(16)})
    assert render_target.ratio_words(same) == "2.00 (the same ratio for every seed: no interval, no test; n=2)"


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (None, "–"),
        (SpeedUp(1.5, math.inf, None, 4, 1, "why"), "median > 1.50 (why; n=4)"),
        (SpeedUp(0.0, 0.8, None, 4, 1, "why"), "median < 0.80 (why; n=4)"),
        (SpeedUp(0.5, 0.8, None, 4, 1, "why"), "median 0.50 to 0.80 (why; n=4)"),
        (SpeedUp(0.5, 0.5, None, 4, 1, "why"), "median 0.50 (why; n=4)"),
        (SpeedUp(0.0, math.inf, None, 4, 2, "why"), "unknown (why; n=4)"),
        (SpeedUp(0.0, math.inf, None, 0, 0, "no common seeds"), "no common seeds"),
    ],
)
def test_how_a_speed_up_is_written(found: SpeedUp | None, words: str) -> None:
    assert render_target.ratio_words(found) == words


BEST = {  # the last values of seed 0 are .7 and .6, those of seed 1 .5 and .9
    "random": [[0.1, 0.75, 0.7], [0.1, 0.3, 0.5]],
    "oort": [[0.1, 0.2, 0.6], [0.1, 0.2, 0.9]],
    "ucb": [[0.1, 0.7, 0.8], [0.1, 0.3, 0.95]],
}


def test_the_best_of_some_words_is_a_target_of_each_seed() -> None:
    table = timed(BEST, "best_of:random,oort")
    assert table.goals["ucb", ONE] == {0: Goal(0.7, ("random", ONE)), 1: Goal(0.9, ("oort", ONE))}
    assert {seed: time.low for seed, time in table.entries["ucb", ONE].times.items()} == {0: 4.0, 1: 8.0}
    assert table.entries["random", ONE].times == {0: met(10.0), 1: never(20.0)}
    text = render_target.markdown(table)
    assert text.startswith(
        "### Virtual time until test/acc is 70 to 90 % or more (the best of random,oort on each seed): by when half"
    )
    lacking = timed({**BEST, "oort": [BEST["oort"][0], []]}, "best_of:random,oort")
    assert sorted(lacking.entries["ucb", ONE].times) == [0]
    assert "no target: ucb on seed 1, where one of random, oort has no value" in lacking.notes


def test_speed_ups_over_whoever_set_the_target() -> None:
    """Seed 0: random meets .7 after 10 s, ucb after 4; seed 1: oort meets .9 after 10 s, ucb after 8. 2.5 and 1.25."""
    table = timed(BEST, "best_of:random,oort", baseline=None)
    found = table.entries["ucb", ONE].over_best
    assert found is not None
    assert found.low == pytest.approx(math.sqrt(2.5 * 1.25))
    random = table.entries["random", ONE].over_best  # 1, and less than 10 / 20
    assert random is not None
    assert (random.low, random.censored) == (0.0, 1)
    assert random.high == pytest.approx(math.sqrt(0.5))
    assert "### Times as fast as the one of random,oort that set the target on each seed" in render_target.markdown(
        table
    )
    lines = list(csv.DictReader(io.StringIO(render_target.render_csv(table))))
    (own,) = (line for line in lines if line["selector"] == "ucb" and not line["seed"])
    assert (own["baseline"], own["pairs"]) == ("best_of:random,oort", "2")
    assert float(own["speedup_low"]) == pytest.approx(math.sqrt(2.5 * 1.25))
    assert timed(REACHED).entries["ucb", ONE].over_best is None
    assert "set the target" not in render_target.markdown(timed(BEST, "best_of:random"))  # that is the baseline


def test_markdown_latex_and_csv() -> None:
    values = {**REACHED, "oort": [[0.1, 0.9, 0.9], [0.1, 0.2, 0.3], [0.1, 0.2, 0.3]]}
    table = timed(values)
    text = render_target.markdown(table)
    assert "| random | 30 s (3 of 3 seeds) |" in text
    assert "| ucb | 4 s (3 of 3 seeds) |" in text
    assert "| oort | > 10 s (not reached in 2 of 3 seeds) |" in text
    assert "| ucb | 5.72 [" in text
    # 20 / 5 is 4; the others are less than 30 / 10 and 40 / 10, so the second of three is less than 4
    assert "| oort | median < 4.00 (2 of 3 pairs are censored: no interval, no test; n=3) |" in text
    assert "- Seeds that never got there count as later than their end; > t: fewer than half" in text
    tex = render_target.latex(table)
    assert r"oort & $>$ 10 s (not reached in 2 of 3 seeds) \\" in tex
    assert tex.count(r"\begin{tabular}{lr}") == 2
    rows = list(csv.DictReader(io.StringIO(render_target.render_csv(table))))
    mine = [row for row in rows if row["selector"] == "oort"]
    assert [(row["seed"], row["reached"], row["low"], row["high"]) for row in mine] == [
        ("0", "1", "5.0", "5.0"),
        ("1", "0", "10.0", ""),
        ("2", "0", "10.0", ""),
        ("", "1", "10.0", ""),
    ]
    assert (mine[-1]["speedup_low"], mine[-1]["censored_pairs"], mine[-1]["p"]) == ("", "2", "")
    assert float(mine[-1]["speedup_high"]) == pytest.approx(4.0)


@pytest.mark.parametrize("word", ["high", "best_of:", "nan", "inf", "0.8x"])
def test_a_target_that_is_no_number(word: str) -> None:
    with pytest.raises(OptionError, match=r"target must be a number, or best_of: and values of rows or of cols"):
        parse(word, ACC)


def test_what_does_not_fit_is_refused_by_name() -> None:
    with pytest.raises(
        OptionError, match=r"target must be best_of: and one or more of oort, random, ucb, got 'best_of:x'"
    ):
        timed(BEST, "best_of:random,x")
    with pytest.raises(OptionError, match=r"target must be best_of: and one or more of oort, random, ucb, got"):
        timed(BEST, "best_of:x")
    still = {word: [[0.1, 0.9]] for word in ("random", "ucb")}
    runs: list[Run] = [run(word, 0, 0.9, device="instant") for word in still]
    nothing = {(word, ONE): {0: series(of[0], 0.0)} for word, of in still.items()}
    found = sort(runs, "selector", None, ACC)
    names = ("selector", None, ACC)
    with pytest.raises(OptionError, match=r"axis=virtual_s needs a clock, and random-.* has none \(device=instant\)"):
        tabulate(found, nothing, names, "0.8", "virtual_s", None, 1)
    assert tabulate(found, nothing, names, "0.8", "rounds", None, 1).entries["ucb", ONE].low == 1.0
    bare = {cell: {0: replace(of[0], client_flops=np.full(2, np.nan))} for cell, of in nothing.items()}
    with pytest.raises(OptionError, match=r"axis=client_flops isn't known of random-"):
        tabulate(found, bare, names, "0.8", "client_flops", None, 1)


def test_less_of_a_loss_is_better() -> None:
    found = sort([run("random", 0, 0.9)], "selector", None, "test/loss")
    falls = {("random", ONE): {0: series([2.0, 1.5, 0.9], 10.0)}}
    made = tabulate(found, falls, ("selector", None, "test/loss"), "1.5", "virtual_s", None, -1)
    assert made.entries["random", ONE].times == {0: met(10.0)}
    assert "test/loss is 1.5 nats or less" in render_target.markdown(made)


def test_best_of_columns_and_a_baseline_of_rows_do_not_go_together() -> None:
    runs = [run(word, 0, 0.9, agg=agg) for word in ("random", "ucb") for agg in ("fedavg", "scaffold")]
    found = sort(runs, "selector", "agg", ACC)
    of = {cell: {0: series([0.1, 0.5, 0.6 if cell[1] == "fedavg" else 0.9], STEP_S[cell[0]])} for cell in found.cells}
    names = ("selector", "agg", ACC)
    table = tabulate(found, of, names, "best_of:fedavg", "virtual_s", "fedavg", 1)
    assert table.goals["ucb", "scaffold"] == {0: Goal(0.6, ("ucb", "fedavg"))}
    with pytest.raises(OptionError, match=r"baseline must be one of fedavg, scaffold, among which target=best_of:"):
        tabulate(found, of, names, "best_of:fedavg", "virtual_s", "random", 1)
