"""The fast oracle: whom it draws from."""

import numpy as np

from fedcohort.selector.base import Stateless
from fedcohort.selector.oracle_fast import OracleFast
from optional_values import not_none
from selector_harness import make_context, to_list

SECONDS = {"expected_s": np.array([40.0, 1.0, 20.0, 10.0, 30.0])}


def test_only_the_fastest_clients_are_selected() -> None:
    """share=0 is a pool of m = 2; .6 of five clients is one of the three fastest, 1, 3 and 2."""
    assert to_list(OracleFast(0.0).select(Stateless(), make_context(signals=SECONDS), {})[0].clients) == [1, 3]
    selections = {
        tuple(to_list(OracleFast(0.6).select(Stateless(), make_context(signals=SECONDS, seed=seed), {})[0].clients))
        for seed in range(40)
    }
    assert selections == {(1, 2), (1, 3), (2, 3)}


def test_selection_probabilities_by_hand() -> None:
    selection = OracleFast(0.6).select(Stateless(), make_context(signals=SECONDS), {})[0]
    np.testing.assert_allclose(not_none(selection.probability), [0, 2 / 3, 2 / 3, 2 / 3, 0])
    np.testing.assert_allclose(not_none(selection.scores), -SECONDS["expected_s"])


def test_equal_clients_are_selected_uniformly() -> None:
    equal_times = {"expected_s": np.full(5, 7.0)}
    selection = OracleFast(0.2).select(Stateless(), make_context(signals=equal_times), {})[0]
    np.testing.assert_allclose(not_none(selection.probability), [0.4] * 5)
