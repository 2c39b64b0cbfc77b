"""Ranks: the case, and the bootstrap over seeds and families."""

import math

import numpy as np
import pytest

from fedcohort.results.ranks import SettingResults, rank_methods, rank_values
from results.known_cases import case, near


def settings(values: np.ndarray, families: int) -> dict[str, SettingResults]:
    """Return [settings, methods, seeds] as settings of so many families."""
    seeds = range(values.shape[2])
    return {
        str(i): SettingResults(values_by_method, seeds, str(i % families)) for i, values_by_method in enumerate(values)
    }


def test_the_ranks_of_a_case_by_hand() -> None:
    inputs, expected = case(9)
    table = {
        str(i): SettingResults(np.array(values)[:, None], [0], family)
        for i, (values, family) in enumerate(zip(inputs["table"], inputs["families"], strict=True))
    }
    ranks = rank_methods(table, "case")
    assert ranks.mean.tolist() == near(expected)
    assert np.isnan([*ranks.low, *ranks.first]).all()  # two families are too few


def test_ties_share_their_rank_and_diverged_methods_are_last() -> None:
    assert rank_values(np.array([[1.0, 2.0, math.nan, 2.0, math.inf]])).tolist() == [[3.0, 1.5, 4.5, 1.5, 4.5]]


def test_the_bootstrap_covers_seeds_and_families() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(12, 4, 5)) + np.array([0.0, 1.0, 1.0, 3.0])[None, :, None]
    ranks = rank_methods(settings(values, 6), "study")
    assert (ranks.low <= ranks.mean).all()
    assert (ranks.mean <= ranks.high).all()
    assert ranks.first.sum() == pytest.approx(1.0)
    assert ranks.first[3] > 0.9
    again = rank_methods(settings(values, 6), "study")
    assert again.low.tolist() == ranks.low.tolist()
    turned = rank_methods(settings(values[:, ::-1], 6), "study")
    assert turned.low.tolist() == ranks.low[::-1].tolist()
    values[0, 0, 0] = math.nan  # a seed that diverged costs its rank wherever it is drawn
    assert rank_methods(settings(values, 6), "study").high[0] >= ranks.high[0]
    equal = rank_methods(settings(np.repeat(values[1:, :1], 2, axis=1), 6), "study")
    assert equal.first.tolist() == [0.5, 0.5]


def test_a_setting_without_a_drawn_seed_counts_with_all_of_its_own() -> None:
    values = np.random.default_rng(1).normal(size=(6, 2, 8))
    table = settings(values, 6)
    table["0"] = SettingResults(values[0, :, :1], [0], "0")
    assert np.isfinite(rank_methods(table, "study").low).all()
