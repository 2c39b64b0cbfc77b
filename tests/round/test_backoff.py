"""Back-off: when a client is withheld, for how long, and the share of many clients that never arrive."""

import numpy as np
import pytest

from fedcohort.round import backoff
from fedcohort.round.backoff import NO_CLIENT_FAILURES, Backoff
from selector_harness import ids, make_context, make_outcome, to_list
from state_saving import save_and_restore


def record_failures(times: int, clients: list[int], start: int = 0) -> Backoff:
    failures = NO_CLIENT_FAILURES
    for round in range(start, start + times):
        failures = backoff.update_backoff(failures, make_outcome(round, [], failed=clients))
    return failures


def list_offered_clients(
    failures: Backoff, round: int, cohort: int = 2, n: int = 8, available: list[int] | None = None
) -> list[int]:
    return to_list(backoff.omit_failed_clients(failures, make_context(round, cohort, n, available), cohort).available)


def test_two_failures_do_not_withhold_a_client() -> None:
    assert list_offered_clients(record_failures(2, [1]), 2) == list(range(8))


@pytest.mark.parametrize(("times", "laps"), [(3, 4), (4, 8), (5, 16), (6, 32), (7, 32), (400, 32)])
def test_the_back_off_doubles_from_one_lap_to_eight(times: int, laps: int) -> None:
    """K / m = 4 rounds a lap."""
    failures, other_clients = record_failures(times, [1]), [0, 2, 3, 4, 5, 6, 7]
    assert list_offered_clients(failures, times) == list_offered_clients(failures, times + laps - 1) == other_clients
    assert list_offered_clients(failures, times + laps) == list(range(8))


def test_an_arrival_resets_the_back_off() -> None:
    failures = backoff.update_backoff(record_failures(6, [1, 2]), make_outcome(6, [1]))
    assert list_offered_clients(failures, 7) == [0, 1, 3, 4, 5, 6, 7]
    assert failures.clients.tolist() == [2]
    assert backoff.update_backoff(failures, make_outcome(8, [2])) is NO_CLIENT_FAILURES


def test_no_client_is_withheld_if_too_few_remain() -> None:
    """Clients whose back-off ends first return together; clients that are away stay away."""
    failures = backoff.update_backoff(record_failures(3, [1, 2, 3], start=0), make_outcome(3, [0], failed=[3]))
    assert list_offered_clients(failures, 4, available=[1, 2, 3]) == [1, 2]
    assert list_offered_clients(failures, 4, available=[0, 1, 2, 3]) == [0, 1, 2]
    assert list_offered_clients(failures, 4, available=[0, 3]) == [0, 3]
    assert list_offered_clients(failures, 4, cohort=40, available=[1, 2, 3]) == [1, 2, 3]
    assert list_offered_clients(failures, 4, available=[]) == []


def test_the_back_off_state_is_stored() -> None:
    failures = record_failures(4, [1, 5])
    assert list_offered_clients(save_and_restore(failures), 4) == list_offered_clients(failures, 4)
    assert save_and_restore(failures).clients.dtype == ids().dtype


def test_clients_that_never_arrive_get_only_part_of_their_share() -> None:
    """900 of 3,000 clients, ten a round, preferred to all others."""
    failures, n_failed = NO_CLIENT_FAILURES, 0
    absent = np.arange(3000) % 10 < 3
    for round in range(800):
        offered_clients = backoff.omit_failed_clients(failures, make_context(round, 10, 3000), 10).available
        chosen = offered_clients[np.argsort(~absent[offered_clients], kind="stable")[:10]]
        failed_ids = chosen[absent[chosen]]
        failures = backoff.update_backoff(
            failures, make_outcome(round, chosen[~absent[chosen]].tolist(), failed=failed_ids.tolist())
        )
        n_failed += len(failed_ids) if round >= 400 else 0
    assert n_failed <= 0.3 * 10 * 400
