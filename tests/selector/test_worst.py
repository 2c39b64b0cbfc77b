"""worst: its query, its choice, and the limit of clients; the greedy order is tested in tests/signal."""

import re

import numpy as np
import pytest

from fedcohort.errors import OptionError
from fedcohort.selector.base import Stateless
from fedcohort.selector.worst import Worst
from fedcohort.types import Population, ProbeResult
from selector_harness import ids, make_context


def test_all_available_clients_are_queried_and_the_first_picked_are_selected() -> None:
    ctx = make_context(available=[0, 2, 3, 4])
    (probe,) = Worst(9).plan(Stateless(), ctx)
    assert probe.signal == "greedy_gain"
    assert not probe.concurrent
    assert probe.clients.tolist() == [0, 2, 3, 4]
    assert dict(probe.options) == {"cohort": 2, "direction": "up"}
    answer = ProbeResult(ids(0, 2, 3, 4), np.array([0.0, 1.0, np.nan, 2.0]))
    selection = Worst(9).select(Stateless(), ctx, {"greedy_gain": answer})[0]
    assert selection.clients.tolist() == [2, 4]
    np.testing.assert_array_equal(selection.scores, [0, np.nan, 1, -np.inf, 2])


def test_no_client_is_queried_if_there_is_no_choice() -> None:
    ctx = make_context(available=[1, 4])
    assert Worst(9).plan(Stateless(), ctx) == ()
    assert Worst(9).select(Stateless(), ctx, {})[0].clients.tolist() == [1, 4]


def test_too_many_clients_are_rejected() -> None:
    Worst(12).init(Population(12, 4, 3, {}))
    message = "limit must be an integer of at least 13, the number of clients, which all train in every round, got 12"
    with pytest.raises(OptionError, match=re.escape(message)):
        Worst(12).init(Population(13, 4, 3, {}))
