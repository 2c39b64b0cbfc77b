"""Every method that the loop checks is a method of its group's contract."""

from types import SimpleNamespace

import numpy as np
import pytest

from case_loop import for_all
from fedcohort.device.base import Timing, Workload
from fedcohort.errors import ComponentError
from fedcohort.rng import Draws
from fedcohort.round import contracts
from fedcohort.startup.components import find_base_class
from fedcohort.types import AggregationOverride, RoundContext, RoundOutcome, Selection

CTX = RoundContext(0, 2, 4, np.arange(4), {}, np.random.default_rng(0))
OUTCOME = RoundOutcome(0, Selection(np.arange(2)), np.arange(2), np.empty(0, np.int64), {}, {}, 1.0)


@for_all("group", sorted(contracts.CHECKS_BY_GROUP))
def test_checks_stand_for_methods_of_the_contract(group: str) -> None:
    assert set(contracts.CHECKS_BY_GROUP[group]) <= set(dir(find_base_class(group)))


def test_a_selection_is_a_copy_of_the_ids() -> None:
    """The selector may write into its own array in the next round."""
    order = np.array([1, 3])
    selection, state = contracts.check_selection(None, (Selection(order), 5), 4, CTX)
    order[:] = 0
    assert (selection.clients.tolist(), state) == ([1, 3], 5)


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        (Selection(np.array([3, 1])), "Selection.clients must be .* sorted distinct"),
        (Selection(np.array([1]), probability=np.full(4, 7.0)), "Selection.probability must be .* in \\[0, 1\\]"),
        (Selection(np.array([1]), scores=np.ones(1)), "Selection.scores must be a numeric array \\[4\\]"),
    ],
)
def test_a_wrong_selection_is_described(selection: Selection, message: str) -> None:
    with pytest.raises(ComponentError, match=message):
        contracts.check_selection(None, (selection, None), None, CTX)


def test_negative_weights_and_unsaved_states_are_refused() -> None:
    with pytest.raises(ComponentError, match="weights must be"):
        contracts.check_weight_override(None, (AggregationOverride(weights=np.array([1.0, -1.0])), None), None, OUTCOME)
    with pytest.raises(ComponentError, match="can't be saved in a checkpoint"):
        contracts.check_init(None, {1, 2})


def test_seconds_of_work_are_positive_where_the_device_is_timed() -> None:
    zeros, ones = np.zeros(2), np.ones(2)
    work = Workload(ones, ones, 1, ones, ones)
    none = Timing(zeros, zeros, zeros, zeros)
    assert contracts.check_job_timing(SimpleNamespace(timed=False), none, np.arange(2), work, Draws(0, 2)) is none
    with pytest.raises(ComponentError, match="above 0 where `timed` is true"):
        contracts.check_job_timing(SimpleNamespace(timed=True), none, np.arange(2), work, Draws(0, 2))
