"""What is written and drawn of a comparison: tables in three languages, units, averaged curves."""

import csv
import io
import math
from dataclasses import replace

import numpy as np
import pytest

from compare_toy import ACC, both, table
from fedcohort.command import compare
from fedcohort.observe.comparison import band, render, sheet, shown
from fedcohort.observe.comparison.series import Series
from known import known
from yaml_words import ROOT


def test_markdown_latex_and_csv() -> None:
    """ucb - random is .1, .2, .3: mean .2, s .1, half 4.30265 * .1 / sqrt(3) = .2484, p as above with t = sqrt(12)."""
    found = table(both([0.1, 0.1, 0.1], [0.2, 0.3, 0.4]))
    text = render.markdown(found)
    assert "| random | 10.0 ± 0.0 (n=3) |" in text
    assert "| ucb | 30.0 ± 10.0 (n=3) |" in text
    assert "| ucb | +20.0 [-4.8, +44.8], p = 0.074 (n=3) |" in text
    tex = render.latex(found)
    assert r"ucb & $30.0 \pm 10.0$ (3) \\" in tex
    assert tex.count(r"\begin{tabular}{lr}") == 2
    rows = list(csv.DictReader(render.render_csv(found).splitlines()))
    assert [row["selector"] for row in rows] == ["random", "ucb"]
    assert float(rows[1]["diff"]) == pytest.approx(0.2)
    assert float(rows[1]["diff_p"]) == pytest.approx(1 - math.sqrt(12 / 14))
    assert rows[0]["diff"] == rows[0]["baseline"] == ""
    assert rows[1]["seeds"] == "0 1 2"


def test_one_seed_is_said_to_be_one() -> None:
    text = render.markdown(table(both([0.1], [0.3])))
    assert "| ucb | 30.000 (n=1) |" in text
    assert "| ucb | +20.000 (n=1 common seeds: no interval, no test) |" in text
    assert "- n<2: every cell: no standard deviation, no interval" in text


def test_latex_is_escaped() -> None:
    assert sheet.tex("ucb_cs & 5 % ± n<2") == r"ucb\_cs \& 5 \% $\pm$ n$<$2"


@pytest.mark.parametrize(
    ("metric", "largest", "factor", "name"),
    [
        (ACC, 1.0, 100.0, "%"),
        ("clients/acc_var", 300.0, 1.0, "%²"),
        ("test/loss", 2.0, 1.0, "nats"),
        ("comm/up_bytes", 3e6, 1e-6, "MB"),
        ("comp/client_flops", 2e12, 1e-12, "TFLOP"),
        ("time/virtual_s", 500.0, 1.0, "s"),
        ("clients/jain", 1.0, 1.0, ""),
    ],
)
def test_units(metric: str, largest: float, factor: float, name: str) -> None:
    found = shown.unit_of(metric, largest)
    assert found.factor == pytest.approx(factor)
    assert found.name == name


# --- curves ----------------------------------------------------------------------------------------------------------
def test_curves_are_averaged_at_common_rounds() -> None:
    def series(rounds: list[float], value: list[float]) -> Series:
        nothing = np.zeros(len(rounds))
        return Series(np.array(rounds, float), np.array(value, float), nothing, nothing, nothing)

    found = band.by_round([series([0, 1, 2], [1, 2, 3]), series([0, 2, 4], [3, 7, 9])])
    assert found.x.tolist() == [0, 2]
    assert found.mean.tolist() == [2, 5]
    assert found.std.tolist() == pytest.approx([math.sqrt(2), math.sqrt(8)])


def test_between_two_rounds_a_run_is_as_good_as_after_the_first() -> None:
    """Runs are compared over the span that they have in common.

    One run's rounds end at 0, 10, 20 s, the other's at 0 and 4 s: the common span is [0, 4], where the first still has
    its initial value, and the second has another one at 4 s alone.
    """
    times = [np.array([0.0, 10.0, 20.0]), np.array([0.0, 4.0])]
    found = band.by_cost(times, [np.array([1.0, 5.0, 9.0]), np.array([3.0, 7.0])])
    assert (found.x[0], found.x[-1]) == (0.0, 4.0)
    assert found.mean[:-1].tolist() == [2.0] * (len(found.x) - 1)
    assert found.mean[-1] == 4.0


def test_no_curve_where_no_time_was_logged() -> None:
    assert len(band.by_cost([np.full(2, math.nan)], [np.zeros(2)]).x) == 0


def test_a_yardstick_is_marked_wherever_it_stands() -> None:
    """As the run itself has said that it read what no server can know."""
    runs = both([0.1, 0.2], [0.3, 0.4])
    runs = [
        replace(r, tags={**r.tags, "yardstick": "noise_rate"}) if r.params["selector"] == "ucb" else r for r in runs
    ]
    made = table(runs)
    text = render.markdown(made)
    line = next(line for line in text.splitlines() if line.startswith("| ucb "))
    assert line.endswith("(n=2) ‡ |")
    assert not any("‡" in line for line in text.splitlines() if line.startswith("| random "))
    assert "- ‡ is a yardstick, no method: it reads what no server can know, see below" in text
    assert "- yardsticks, no methods: ucb read noise_rate, which no server can know" in text
    assert r"\ddag{}" in render.latex(made)
    rows = list(csv.DictReader(io.StringIO(render.render_csv(made))))
    assert [(row["selector"], row["yardstick"]) for row in rows] == [("random", "false"), ("ucb", "true")]
    assert "‡" not in render.markdown(table(both([0.1, 0.2], [0.3, 0.4])))


def test_which_of_the_middle_two_times_counts_is_said() -> None:
    """What it is in fact is tested in `test_compare_target`."""
    for text in (known(compare.__doc__), (ROOT / "docs" / "sweeps.md").read_text()):
        assert "of an even number" in " ".join(text.split()).lower()
        assert "the smaller of the middle two" in " ".join(text.split())
