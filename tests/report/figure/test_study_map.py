"""The pictures of a study: that they are drawn."""

import math
from pathlib import Path

import numpy as np

from fedcohort.report.figure.study_map import SettingMap, draw_map, draw_ranks


def test_both_are_drawn(tmp_path: Path) -> None:
    difference = np.array([[1.5, -30.0, math.nan], [0.0, 0.2, 12.0]])
    clear = np.array([[True, True, False], [False, False, True]])
    setting_map = SettingMap(
        ["a", "b"], ["flash", "powd", "clean"], difference, clear, [2], "points", "random", "3 seeds"
    )
    draw_map(setting_map, tmp_path / "map.png")
    draw_ranks({"a": 1.2, "random": 2.0, "b": 2.8}, "random", "2 settings", tmp_path / "ranks.png")
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "ranks.png").read_bytes().startswith(b"\x89PNG")
