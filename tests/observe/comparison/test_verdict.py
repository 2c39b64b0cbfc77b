"""What a comparison says in words, and the picture that it is sorted for."""

import csv
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from compare_toy import ACC, both, notes_with, run, table
from fedcohort.observe.comparison import draw, render, sheet, verdict
from fedcohort.observe.comparison.runs import sort
from fedcohort.observe.comparison.table import Table
from fedcohort.report.figure import style

# t_{.975, 2} = 4.30265: with s = .01 over three seeds half an interval is .024842
AHEAD, UNTOLD, BEHIND = (0.24, 0.25, 0.26), (0.19, 0.20, 0.21), (0.14, 0.15, 0.16)
BASE = (0.20, 0.20, 0.20)


def of(values: Mapping[str, Sequence[float]], better: str = "auto", metric: str = ACC) -> Table:
    runs = [run(word, seed, value) for word, of in values.items() for seed, value in enumerate(of)]
    return table(runs, metric=metric, better=better)


def test_who_is_ahead_behind_and_not_told() -> None:
    """+5, 0 and -5 points, each with 2.4842 beside it: two are clear of zero."""
    found = of({"random": BASE, "flash": UNTOLD, "ucb": AHEAD, "oort": BEHIND, "one": (0.5,)})
    assert verdict.tell(found) == [
        "test/acc: ucb is ahead of random by 5.0 points [2.5, 7.5], 3 seeds; oort is behind random by 5.0 points "
        "[2.5, 7.5], 3 seeds; flash not distinguishable from random; of one nothing can be said: one seed in common "
        "with random."
    ]
    assert [gap.cell[0] for gap in verdict.list_gaps(found)] == ["one", "ucb", "flash", "oort"], "the best first"
    less = of({"random": BASE, "flash": UNTOLD, "ucb": AHEAD}, better="low")
    assert verdict.tell(less)[0].startswith("test/acc: ucb is behind random by 5.0 points [2.5, 7.5], 3 seeds; flash")
    assert [gap.cell[0] for gap in verdict.list_gaps(less)] == ["flash", "ucb"]


def test_an_interval_that_touches_zero_tells_nothing() -> None:
    """Differences 0 and x: mean x / 2, half 12.7 * x / 2."""
    assert [gap.side for gap in verdict.list_gaps(of({"random": (0.2, 0.2), "ucb": (0.2, 0.3)}))] == [0]


def test_the_same_difference_on_all_seeds_has_no_interval() -> None:
    """Two runs that happen to be alike have no spread: that is said, and no interval of no length."""
    assert [gap.side for gap in verdict.list_gaps(of({"random": (0.2, 0.2), "ucb": (0.2, 0.2)}))] == [0]
    found = of({"random": (0.2, 0.2), "ucb": (0.25, 0.25)})
    (gap,) = verdict.list_gaps(found)
    assert (gap.side, math.isnan(gap.low), math.isnan(gap.high)) == (1, True, True)
    assert verdict.tell(found) == [
        "test/acc: ucb is ahead of random by 5.0 points on each of 2 seeds, without an interval."
    ]
    (row,) = (row for row in csv.DictReader(render.render_csv(found).splitlines()) if row["selector"] == "ucb")
    assert (row["diff_ci95_low"], row["diff_ci95_high"], row["diff_p"]) == ("", "", "")


def test_a_diverged_run_is_no_silence() -> None:
    """A loss that isn't finite has no difference: that is said, whoever else is there."""
    found = of({"random": BASE, "flash": UNTOLD, "ucb": (0.2, math.nan, 0.2)})
    said = "of ucb nothing can be said: a value is not finite."
    assert verdict.tell(found) == [f"test/acc: flash not distinguishable from random; {said}"]
    assert verdict.tell(of({"random": BASE, "ucb": (0.2, math.inf, 0.2)})) == [f"test/acc: {said}"]


def test_all_renderings_open_with_it() -> None:
    found = table(both(BASE, AHEAD))
    (said,) = verdict.tell(found)
    assert render.markdown(found).startswith(f"> {said}\n\n### test/acc")
    assert render.latex(found).splitlines()[1] == f"\\noindent {sheet.tex(said)}\\par"
    rows = list(csv.DictReader(render.render_csv(found).splitlines()))
    assert [row["verdict"] for row in rows] == ["", "ahead of"]
    alone = table([run("random", seed, 0.1) for seed in range(2)])
    assert verdict.tell(alone) == []
    assert render.markdown(alone).startswith("### ")
    two = of({"random": BASE, "flash": UNTOLD, "ucb": AHEAD})
    assert "- each of the 2 intervals of differences is one of 95 % by itself" in render.markdown(two)


def test_each_column_has_a_sentence() -> None:
    values = {"random": BASE, "ucb": AHEAD}
    runs = [run(w, s, v, agg) for agg in ("a", "b") for w in values for s, v in enumerate(values[w])]
    assert [line.partition(" by")[0] for line in verdict.tell(table(runs, "agg"))] == [
        "test/acc: ucb + a is ahead of random + a",
        "test/acc: ucb + b is ahead of random + b",
    ]


def test_the_forest_is_sorted_and_has_a_line_at_zero(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []
    monkeypatch.setattr(style, "save", lambda figure, path: drawn.append(figure))
    values = {"random": BASE, "flash": UNTOLD, "ucb": AHEAD, "oort": BEHIND}
    runs = [run(word, seed, value) for word, of in values.items() for seed, value in enumerate(of)]
    draw.forest(table(runs), sort(runs, "selector", None, ACC), tmp_path / "forest.png")
    (axes,) = drawn[0].axes
    assert [text.get_text() for text in axes.get_yticklabels()] == ["ucb (n=3)", "flash (n=3)", "oort (n=3)"]
    assert list(axes.lines[0].get_xdata()) == [0.0, 0.0]
    means = [bars.lines[0].get_xdata()[0] for bars in axes.containers]
    assert means == pytest.approx([5.0, 0.0, -5.0])
    assert axes.get_ylim()[0] > axes.get_ylim()[1], "the best at the top"


def test_options_that_come_along_with_a_word_are_no_footnotes() -> None:
    """deadline=fixed has no `deadline.w`; what both have, and options of no such word, stay."""
    kinds = {
        "random": {"deadline": "fixed", "deadline.k": "1.0", "deadline.window_s": "0", "client.lr": "0.1"},
        "flash": {"deadline": "fedbalancer", "deadline.w": "20", "deadline.window_s": "5", "client.momentum": "0.9"},
    }
    found = sort([run(word, 0, 0.1, options=options) for word, options in kinds.items()], "selector", None, ACC)
    named = [line.split(": ")[1].split(" is ")[0] for line in notes_with(found, "also differs")]
    assert named == ["client.lr", "client.momentum", "deadline", "deadline.window_s"]


def test_of_dozens_the_clearest_are_named() -> None:
    """Rows 1 to 9 points ahead and 1 to 9 behind: four are named on each side, those that differ most."""
    values = {"random": BASE} | {f"{way}{n}": [v + step * n / 100 + s * n * 1e-4 for s, v in enumerate(BASE)]
              for way, step in (("up", 1), ("down", -1)) for n in range(1, 10)}  # fmt: skip
    (said,) = verdict.tell(of(values))
    named = [part.partition(" is ")[0].removeprefix("test/acc: ") for part in said.split("; ")]
    more = ["5 more are ahead of random, by less", "5 more are behind random, by less."]
    assert named == ["up9", "up8", "up7", "up6", more[0], "down6", "down7", "down8", "down9", more[1]]
