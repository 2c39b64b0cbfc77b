"""Ranks: the case, and the bootstrap over seeds and families."""

import math
from collections.abc import Mapping
from dataclasses import astuple
from typing import Any

import numpy as np
import pytest

from fedcohort.results.overall import MeanRank, SettingResults, rank_methods, rank_values
from results.statistics_cases import approx_nested, load_case


def settings(values: np.ndarray, families: int) -> dict[str, SettingResults]:
    """Return [settings, methods, seeds] as settings of so many families."""
    seeds = range(values.shape[2])
    return {
        str(i): SettingResults(values_by_method, seeds, str(i % families)) for i, values_by_method in enumerate(values)
    }


def rank(table: Mapping[str, SettingResults], name: str = "study") -> Any:
    """Return the columns of `MeanRank` for all methods, each [methods]."""
    methods = [f"m{i}" for i in range(len(table["0"].values))]
    by_method, _ = rank_methods(methods, table, name)
    return MeanRank(*np.array([astuple(by_method[method]) for method in methods]).T)


def test_the_ranks_of_a_case_by_hand() -> None:
    inputs, expected = load_case(9)
    table = {
        str(i): SettingResults(np.array(values)[:, None], [0], family)
        for i, (values, family) in enumerate(zip(inputs["table"], inputs["families"], strict=True))
    }
    ranks = rank(table, "case")
    assert ranks.mean.tolist() == approx_nested(expected)
    assert np.isnan([*ranks.low, *ranks.first_share]).all()  # two families are too few


def test_ties_share_their_rank_and_diverged_methods_are_last() -> None:
    assert rank_values(np.array([[1.0, 2.0, math.nan, 2.0, math.inf]])).tolist() == [[3.0, 1.5, 4.5, 1.5, 4.5]]


def test_the_bootstrap_covers_seeds_and_families() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(12, 4, 5)) + np.array([0.0, 1.0, 1.0, 3.0])[None, :, None]
    ranks = rank(settings(values, 6))
    assert (ranks.low <= ranks.mean).all()
    assert (ranks.mean <= ranks.high).all()
    assert ranks.first_share.sum() == pytest.approx(1.0)
    assert ranks.first_share[3] > 0.9
    repeat = rank(settings(values, 6))
    assert repeat.low.tolist() == ranks.low.tolist()
    reversed_ranks = rank(settings(values[:, ::-1], 6))
    assert reversed_ranks.low.tolist() == ranks.low[::-1].tolist()
    values[0, 0, 0] = math.nan  # a seed that diverged costs its rank wherever it is drawn
    assert rank(settings(values, 6)).high[0] >= ranks.high[0]
    tied_ranks = rank(settings(np.repeat(values[1:, :1], 2, axis=1), 6))
    assert tied_ranks.first_share.tolist() == [0.5, 0.5]


def test_a_setting_without_a_drawn_seed_counts_with_all_its_seeds() -> None:
    values = np.random.default_rng(1).normal(size=(6, 2, 8))
    table = settings(values, 6)
    table["0"] = SettingResults(values[0, :, :1], [0], "0")
    assert np.isfinite(rank(table).low).all()
