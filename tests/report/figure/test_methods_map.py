"""What a reader of a study's figures sees."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from fedcohort.report.figure import style
from fedcohort.report.figure.methods import draw_difference_map, draw_ranks
from report.test_run_figures import check_layout, drawn_figures, read_figure_text  # noqa: F401


@pytest.mark.parametrize(("n_settings", "width", "blocks"), [(2, style.COLUMN_WIDTH, 1), (40, style.PAGE_WIDTH, 3)])
def test_the_map_groups_and_sorts_methods_and_shows_every_number(
    drawn_figures: dict[str, Figure],  # noqa: F811
    n_settings: int,
    width: float,
    blocks: int,
) -> None:
    methods = ["flash", "powd_mean", "flash_tuned", "oracle_clean"]
    groups = ["published", "published", "tuned", "oracles"]
    difference = np.tile([[1.5, 30.2, 0.3, -2.0]], (n_settings, 1))
    difference[0, 2] = math.nan
    labels = [f"40 % of clients with wrong labels, persistent speeds, for {i} hours" for i in range(n_settings)]
    clear = np.tile([[True, False, False, True]], (n_settings, 1))
    title = "Difference to random, points (bold*: significant)"
    draw_difference_map(pd.DataFrame(difference, labels, methods), clear, groups, title, "3 seeds", Path("map.png"))
    figure = drawn_figures["map.png"]
    assert (figure.get_figwidth(), len(figure.axes)) == (width, blocks)
    names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert names == ["published:", "pow-d, plain mean", "FLASH", "tuned:", "FLASH, tuned", "oracles:", "Clean oracle"]
    numbers = [text.get_text() for axes in figure.axes for text in axes.texts]
    assert sorted(set(numbers)) == sorted(["+1.5*", "+30", "+0.3", "–", "−2.0*"])
    assert len(numbers) == 4 * n_settings
    assert title in read_figure_text(figure)
    check_layout(figure)
    for label in figure.axes[0].get_xticklabels():
        assert label.get_text().count("\n") < 3


def test_ranks_have_intervals_inside_the_frame(drawn_figures: dict[str, Figure]) -> None:  # noqa: F811
    ranks = {"random": ("published", 2.0, 1.1, 2.9), "powd": ("published", 1.2, 1.0, 1.6)}
    ranks["flash_tuned"] = ("tuned", 2.8, math.nan, math.nan)  # of few settings
    draw_ranks(ranks, "random", "2 settings", Path("ranks.png"))
    figure = drawn_figures["ranks.png"]
    (axes,) = figure.axes
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == ["published:", "pow-d", "random", "tuned:", "FLASH, tuned"]
    assert axes.get_xlim()[0] <= 1.0
    assert axes.get_xlim()[1] >= 2.9
    assert "mean rank, 1 is best (line: random)" in read_figure_text(figure)
    check_layout(figure)
