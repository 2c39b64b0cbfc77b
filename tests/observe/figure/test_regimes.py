"""The pictures of a study: whose ranks a bar joins, by hand; and that they are drawn."""

import math
from pathlib import Path

import numpy as np

from fedcohort.observe.figure.regimes import RegimeMap, draw_map, draw_ranks, list_alike


def test_a_bar_joins_those_within_the_distance() -> None:
    # 1 and 2 and 2.5 are within 1.6, 2 and 2.5 and 3.5 are, 4.2 is 1.6 or more from 2.5; 3.5 and 4.2 are within it
    assert list_alike([1.0, 2.0, 2.5, 3.5, 4.2], 1.6) == [(0, 2), (1, 3), (3, 4)]
    assert list_alike([1.0, 3.0, 5.0], 2.0) == []  # as far apart as the distance is apart
    assert list_alike([1.0, 1.0, 1.0], 0.5) == [(0, 2)]


def test_both_are_drawn(tmp_path: Path) -> None:
    difference = np.array([[1.5, -30.0, math.nan], [0.0, 0.2, 12.0]])
    clear = np.array([[True, True, False], [False, False, True]])
    shown = RegimeMap(["a", "b"], ["flash", "powd", "clean"], difference, clear, [2], "points", "random", "3 seeds")
    draw_map(shown, tmp_path / "map.png")
    draw_ranks({"a": 1.2, "random": 2.0, "b": 2.8}, 9.0, "random", "2 regimes", tmp_path / "ranks.png")
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "ranks.png").read_bytes().startswith(b"\x89PNG")
