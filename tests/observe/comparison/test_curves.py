"""Curves of a comparison: paired differences by hand, and figures that dozens of rows leave readable."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compare_toy import ACC, run, table
from fedcohort.observe.comparison import band, curves
from fedcohort.observe.comparison.runs import sort
from fedcohort.observe.comparison.series import Series
from fedcohort.report.figure import style


def series(values: list[float], step_s: float = 10.0) -> Series:
    """A curve of rounds 0, 1, ... that take `step_s` each."""
    rounds = np.arange(len(values), dtype=float)
    return Series(rounds, np.array(values), rounds * step_s, rounds * 1e6, rounds * 1e9)


def test_differences_are_paired_over_common_seeds() -> None:
    """After round 1 the gaps of seeds 0 and 1 are .2 and .4: mean .3, s .1414, half 12.7062 * .1414 / sqrt(2)."""
    own = {0: series([0.0, 0.3]), 1: series([0.0, 0.9]), 7: series([0.0, 5.0])}
    base = {0: series([0.0, 0.1]), 1: series([0.0, 0.5]), 2: series([0.0, 9.0])}
    found = band.subtract(own, base, "rounds")
    assert found.n == 2
    assert found.x.tolist() == [0, 1]
    assert found.mean.tolist() == pytest.approx([0.0, 0.3])
    assert found.half.tolist() == pytest.approx([0.0, 12.7062 * math.sqrt(0.02) / math.sqrt(2)], rel=1e-4)


def test_at_equal_cost_a_slower_run_is_behind() -> None:
    """Both gain .1 a round; the one whose round takes 20 s has made one and a half where the other has made three."""
    found = band.subtract({0: series([0.0, 0.1, 0.2], 20.0)}, {0: series([0.0, 0.1, 0.2, 0.3])}, "virtual_s")
    assert (found.x[0], found.x[-1]) == (0.0, 30.0)
    assert found.mean[-1] == pytest.approx(0.15 - 0.3)
    assert found.mean[0] == 0.0
    assert np.isnan(found.half).all(), "one seed has no interval"


def test_no_common_seed_or_cost_is_no_curve() -> None:
    assert len(band.subtract({0: series([0.1])}, {1: series([0.1])}, "rounds").x) == 0
    unknown = Series(*(np.array([0.0, 1.0]),) * 2, *(np.full(2, math.nan),) * 3)
    assert len(band.subtract({0: unknown}, {0: unknown}, "bytes").x) == 0


def drawn(rows: int, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    """The figures of curves and differences of so many rows, two seeds each; w00 is the baseline, the last the best."""
    figures: list[Any] = []
    monkeypatch.setattr(style, "save", lambda canvas, path: figures.append(canvas))
    words = ["random", *(f"w{n:02d}" for n in range(1, rows))]
    runs = [run(word, seed, 0.01 * n + 0.001 * seed * n) for n, word in enumerate(words) for seed in (0, 1)]
    found = sort(runs, "selector", None, ACC)
    histories = {
        cell: {seed: series([0.0, each.metrics[ACC]]) for seed, each in of.items()} for cell, of in found.cells.items()
    }
    curves.draw_curves(histories, found, table(runs), Path("curves.png"))
    assert curves.draw_differences(histories, found, table(runs), Path("differences.png"))
    return figures[0], figures[1]


def test_few_rows_share_panels(monkeypatch: pytest.MonkeyPatch) -> None:
    raw, gaps = drawn(3, monkeypatch)
    assert len(raw.axes) == len(gaps.axes) == 4
    assert [line.get_label() for line in raw.axes[0].lines] == ["random", "w01", "w02"]
    first = gaps.axes[0]
    assert [line.get_label() for line in first.lines[:-1]] == ["w01", "w02"]
    assert list(first.lines[-1].get_ydata()) == [0.0, 0.0], "a line at zero"
    assert first.lines[1].get_ydata()[-1] == pytest.approx(2.1), "points: 2 and 2.2"
    same = {line.get_label(): line.get_color() for line in raw.axes[0].lines}
    assert all(line.get_color() == same[line.get_label()] for line in first.lines[:-1]), "one row, one colour"


def test_of_dozens_the_best_have_colours_and_each_difference_a_panel(monkeypatch: pytest.MonkeyPatch) -> None:
    raw, gaps = drawn(30, monkeypatch)
    labels = [line.get_label() for line in raw.axes[0].lines]
    assert labels[:23] == ["23 others"] * 23
    assert labels[23:] == ["random", *(f"w{n}" for n in range(24, 30))]
    (legend,) = raw.legends
    assert len(legend.get_texts()) == 8
    shown = [axes for axes in gaps.axes if axes.get_visible()]
    assert [axes.get_title(loc="left") for axes in shown] == [f"w{n:02d}" for n in range(29, 0, -1)]
    assert all(list(axes.lines[-1].get_ydata()) == [0.0, 0.0] for axes in shown)


def test_without_a_baseline_there_is_no_difference(tmp_path: Path) -> None:
    runs = [run("random", seed, 0.5) for seed in (0, 1)]
    found = sort(runs, "selector", None, ACC)
    histories = {cell: {seed: series([0.5]) for seed in of} for cell, of in found.cells.items()}
    assert not curves.draw_differences(histories, found, table(runs), tmp_path / "differences.png")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("rows", [3, 12])
def test_no_axis_goes_beyond_what_percentages_can_differ_by(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    """Gaps of 10 and 40 points: half an interval is 12.7062 * 21.2 / sqrt(2) = 191 points."""
    figures: list[Any] = []
    monkeypatch.setattr(style, "save", lambda canvas, path: figures.append(canvas))
    words = ["random", *(f"w{n:02d}" for n in range(1, rows))]
    runs = [run(word, seed, 0.3 + (word != "random") * (0.1 + 0.3 * seed)) for word in words for seed in (0, 1)]
    found = sort(runs, "selector", None, ACC)
    histories = {
        cell: {seed: series([0.0, each.metrics[ACC]]) for seed, each in of.items()} for cell, of in found.cells.items()
    }
    assert curves.draw_differences(histories, found, table(runs), Path("differences.png"))
    limits = [axes.get_ylim() for axes in figures[0].axes if axes.get_visible()]
    assert limits
    assert all(-100 <= low < 0 < high <= 100 for low, high in limits)
