"""FedCS: the plan of a round by hand, its deadline, and its candidates."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from config_options import make_typed
from fedcohort.selector.base import Stateless
from fedcohort.selector.fedcs import FedCs, schedule_uploads
from round_harness import run_without_files
from selector_harness import World, make_context, play_rounds

# 100 bits at 10, 5, 20 and 10 bit/s in both directions, and the seconds of the training
LINK_S, COMPUTE_S = np.array([10.0, 20.0, 5.0, 10.0]), np.array([5.0, 20.0, 30.0, 8.0])
SIGNALS = {"expected_s": 2 * LINK_S + COMPUTE_S, "expected_up_s": LINK_S, "expected_down_s": LINK_S}


def fedcs(**changes: Any) -> FedCs:
    return make_typed(FedCs, "selector", "fedcs", **changes)


@pytest.mark.parametrize(
    ("round_s", "order"), [(60.0, [0, 3, 2]), (75.0, [0, 3, 2]), (75.01, [0, 3, 2, 1]), (45.0, [0, 3]), (25.0, [0])]
)
def test_the_plan_by_hand(round_s: float, order: list[int]) -> None:
    """The costs are 25, 60, 40, 28 s, of which client 0 has the least: Theta = 15.

    Then 0 + 10 for client 3 (it computed while 0 did): Theta = 25, and 35 s in all. Client 2 computes for 30 s, of
    which 5 are left, and sends for 5: 45 s in all. Client 1 adds 10 s of download and 20 s of upload: 75 s.
    A round must take less than T_round. With 25 s none fits, and the cheapest client is alone.
    """
    assert schedule_uploads(LINK_S, COMPUTE_S, LINK_S, round_s).tolist() == order


def test_equally_cheap_clients_come_in_their_order() -> None:
    ones = np.ones(4)
    assert schedule_uploads(ones, ones, ones, 100.0).tolist() == [0, 1, 2, 3]


def test_without_transfers_all_fast_clients_fit() -> None:
    """They compute in parallel: every client below T_round, and no other."""
    seconds = np.random.default_rng(0).uniform(0, 10, 50)
    zeros = np.zeros(50)
    chosen = schedule_uploads(zeros, seconds, zeros, 4.0)
    assert sorted(chosen.tolist()) == np.flatnonzero(seconds < 4.0).tolist()
    assert all(seconds[a] <= seconds[b] for a, b in pairwise(chosen))


@pytest.mark.parametrize(
    ("options", "cohort", "clients"),
    [
        ({"limit": 60.0, "limit_in": "seconds"}, 4, [0, 2, 3]),
        ({"limit": 60.0, "limit_in": "seconds", "candidates": 4}, 2, [0, 3]),  # no more than m
        ({"limit": 1.1}, 4, [0, 3]),  # jobs take 25, 60, 40, 28 s: T_round is 1.1 times 38.25 s
    ],
)
def test_a_selected_cohort_fits_the_time_limit(options: dict[str, Any], cohort: int, clients: list[int]) -> None:
    ctx = make_context(cohort=cohort, n_clients=4, signals=SIGNALS)
    chosen = fedcs(**options).select(Stateless(), ctx, {})[0].clients.tolist()
    assert chosen == clients
    assert FedCs.may_choose_fewer, "of four available clients, three or two are chosen"


def test_candidates_are_drawn_uniformly() -> None:
    """Two of four: the cohort is a part of them, and every client is in it at times."""
    ctx = [make_context(cohort=2, n_clients=4, signals=SIGNALS, seed=seed) for seed in range(60)]
    cohorts = {tuple(fedcs(limit=9.0).select(Stateless(), c, {})[0].clients.tolist()) for c in ctx}
    assert cohorts == {(a, b) for a in range(4) for b in range(a + 1, 4)}
    assert fedcs().shortlist(7) == 7
    assert fedcs(candidates=9).shortlist(7) == 9


def test_the_size_of_a_cohort_follows_the_limit() -> None:
    sizes = [
        np.mean([len(step.selection.clients) for step in play_rounds(fedcs(limit=limit), World(cohort=8), 30)])
        for limit in (0.1, 1.0, 100.0)
    ]
    assert sizes[0] == 1
    assert sizes[0] < sizes[1] < sizes[2] == 8


def test_no_planned_client_is_late_on_a_deterministic_device() -> None:
    """deadline.k is the same number: both are in mean expected durations of a job."""
    overrides = ("device.lam=0", "partition=quantity", "deadline=fixed", "deadline.k=1.2", "selector.limit=1.2")
    run = run_without_files("selector=fedcs", "cohort=8", "rounds=4", *overrides)
    planned = [report for report in run.reports[1:] if len(report.cohort) > 1]
    assert planned
    assert all(np.array_equal(report.cohort, report.arrived) for report in planned)
