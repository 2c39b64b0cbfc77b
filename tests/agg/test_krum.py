"""Krum and Multi-Krum: scores by hand, colluding clients, and the reduction to the mean."""

from collections.abc import Sequence

import pytest

from agg_harness import ROWS_WITH_ONE_FAR, aggregate_once, make_population, make_update
from config_options import make_component
from fedcohort.errors import OptionError


def krum(rows: Sequence[Sequence[float]], choice: str = "krum", **options: int | None) -> list[float]:
    updates = [make_update(k, row, n=1 + k) for k, row in enumerate(rows)]
    displacement: list[float] = aggregate_once(make_component("agg", choice, **options), updates).tolist()
    return displacement


def test_krum_scores_with_two_neighbours_by_hand() -> None:
    """With f = 1 of five updates, a score has two neighbours: 3, 3, 7, 2 and 24015, so that update 3 is chosen.

    Squared distances of update 0: 2, 5, 1 and 12301; of update 2: 5, 5, 2 and 12010.
    """
    assert krum(ROWS_WITH_ONE_FAR, attackers=1) == krum(ROWS_WITH_ONE_FAR) == [2, 0]
    assert krum(ROWS_WITH_ONE_FAR, attackers=1, keep=3) == pytest.approx([5 / 3, 1 / 3])  # updates 3, 0 and 1
    assert krum(ROWS_WITH_ONE_FAR, "multi_krum") == krum(ROWS_WITH_ONE_FAR, keep=4) == [2, 0]  # all but the last


def test_colluders_win_where_fewer_than_2f_plus_3_arrive() -> None:
    """Three honest updates at 0, and (5, 5), (5, 5), (5, 6): each honest one has two neighbours at distance 0.

    With f = 2 and six updates there are two neighbours: scores 0, 0, 0, 1, 1, 2. With f = 3 there is one: two of the
    colluders have a score of 0, too. Without the honest ones, the first two are chosen by id.
    """
    colluders = [[5.0, 5.0], [5.0, 5.0], [5.0, 6.0]]
    honest = [[0.0, 0.0]] * 3
    assert krum([*colluders, *honest], attackers=2) == [0, 0]
    assert krum([*colluders, *honest], attackers=3) == [5, 5]


def test_one_update_is_kept_where_f_or_fewer_arrive() -> None:
    """f = 3 of three updates: each has one neighbour, at 2, 2 and 5, and the first one is taken."""
    assert krum(ROWS_WITH_ONE_FAR[:3], "multi_krum", attackers=3) == [1, 0]


def test_keeping_all_updates_gives_their_mean() -> None:
    assert krum(ROWS_WITH_ONE_FAR, keep=5) == pytest.approx([21.6, 10])
    assert krum(ROWS_WITH_ONE_FAR[3:]) == pytest.approx([51, 25])  # two updates cannot be compared
    # Of three there is one neighbour: updates 0 and 1 have a score of 2.
    assert krum(ROWS_WITH_ONE_FAR[:3]) == [1, 0]


def test_a_cohort_must_be_large_enough() -> None:
    make_component("agg", "krum", attackers=2).init(make_population(7), 3)
    make_component("agg", "krum", attackers=0).init(make_population(2), 3)
    with pytest.raises(OptionError, match=r"attackers must be an integer in \[0, 1\], as the cohort of 6 must"):
        make_component("agg", "krum", attackers=2).init(make_population(6), 3)
