"""What a reader of a comparison's figures sees."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from comparison_harness import compare_runs, make_run
from fedcohort.report.comparison import figures
from fedcohort.results.matching.tracked_run import Run
from fedcohort.results.target import Target
from report.test_run_figures import check_layout, drawn_figures, read_figure_text  # noqa: F401

GAINS = {"random": 0.0, "flash": 0.02, "powd_mean": 0.1, "flash_tuned": 0.05, "oracle_clean": 0.2}


def make_gains(seeds: int = 3) -> list[Run]:
    return [
        make_run(name, seed, 0.5 + gain + seed / 100 + 0.004 * (seed == 1) * (gain > 0), dataset="digits")
        for name, gain in GAINS.items()
        for seed in range(seeds)
    ]


def test_differences_are_grouped_and_sorted_under_published_names(drawn_figures: dict[str, Figure]) -> None:  # noqa: F811
    figures.draw_comparison(compare_runs(make_gains()), Path())
    forest = drawn_figures["forest.png"]
    labels = [label.get_text() for label in forest.axes[0].get_yticklabels()]
    expected = ["published:", "pow-d, plain mean (n=3)", "FLASH (n=3)", "tuned:", "FLASH, tuned (n=3)"]
    assert labels == [*expected, "oracles:", "Clean oracle (n=3)"]
    assert "digits, 15 runs, 3 seeds per condition" in read_figure_text(forest)
    assert forest.axes[0].get_xlabel() == "better than random, points"
    titles = [axes.get_title("left") for axes in drawn_figures["differences.png"].axes]
    assert titles == ["pow-d, plain mean", "FLASH", "FLASH, tuned", "Clean oracle"]
    for figure in drawn_figures.values():
        check_layout(figure)


def test_a_point_is_readable_next_to_large_differences(drawn_figures: dict[str, Figure]) -> None:  # noqa: F811
    """On a linear scale of 20 points, 2 points would be a tenth of the distance from 0 to the largest difference."""
    figures.draw_comparison(compare_runs(make_gains()), Path())
    axes = drawn_figures["differences.png"].axes[0]
    zero, small, large = axes.transData.transform([(0, 0), (0, 2), (0, 20)])[:, 1]
    assert small - zero > 0.4 * (large - zero)
    assert "logarithmic scale beyond ±1 points" in read_figure_text(drawn_figures["differences.png"])
    small_gains = [run for run in make_gains() if run.params["selector"] in ("random", "flash")]
    figures.draw_comparison(compare_runs(small_gains), Path())
    assert drawn_figures["differences.png"].axes[0].get_yscale() == "linear"


def test_intervals_of_two_seeds_are_inside_the_frame(drawn_figures: dict[str, Figure]) -> None:  # noqa: F811
    """Differences of 0 and 80 points: half-width 12.7 * 40 points."""
    values = {"random": (0.1, 0.1), "flash": (0.1, 0.9)}
    figures.draw_comparison(
        compare_runs([make_run(name, s, value) for name, source in values.items() for s, value in enumerate(source)]),
        Path(),
    )
    (axes,) = drawn_figures["forest.png"].axes
    interval_ends = np.concatenate([np.asarray(line.get_xdata(), dtype=float) for line in axes.lines])
    assert interval_ends.max() > 500
    assert axes.get_xlim()[0] < interval_ends.min()
    assert axes.get_xlim()[1] > interval_ends.max()


def test_one_seed_has_neither_interval_nor_test(drawn_figures: dict[str, Figure]) -> None:  # noqa: F811
    figures.draw_comparison(compare_runs(make_gains(1)), Path())
    for name in ("forest.png", "differences.png"):
        text = read_figure_text(drawn_figures[name])
        assert "digits, 5 runs, 1 seed per condition: no intervals" in text
        assert "too few seeds for a test" in text
        assert "significant" not in text
    assert not any("95 % interval" in read_figure_text(figure) for figure in drawn_figures.values())
    figures.draw_comparison(compare_runs(make_gains(1), baseline=None), Path())
    assert "one seed" in read_figure_text(drawn_figures["means.png"])


def test_the_axis_of_an_accuracy_ends_at_its_range(drawn_figures: dict[str, Figure]) -> None:  # noqa: F811
    """Accuracies of 10 and 90 % have the interval 50 % +- 508 points."""
    runs = [make_run(name, seed, value) for name in ("random", "flash") for seed, value in enumerate((0.1, 0.9))]
    figures.draw_comparison(compare_runs(runs), Path())
    assert drawn_figures["curves.png"].axes[0].get_ylim() == (-2, 102)


@pytest.mark.parametrize(("target", "label"), [(0.6, "target 60 %"), (0.9, "target 90 %, met by no mean curve")])
def test_a_target_that_no_curve_meets_says_so(
    drawn_figures: dict[str, Figure],  # noqa: F811
    target: float,
    label: str,
) -> None:
    figures.draw_comparison(compare_runs(make_gains(), target=Target(target), axis="rounds"), Path())
    assert label in read_figure_text(drawn_figures["curves.png"]).split("\n")
    styles = {(line.get_linestyle(), line.get_marker()) for line in drawn_figures["curves.png"].axes[0].lines[:5]}
    assert len(styles) == 5, "lines differ without colours, too"
