"""Pisces' utilities by hand, its share of clients that never trained, and clients barred for outliers."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from config_options import make_typed
from fedcohort.selector.pisces import Pisces, mark_loss_outliers
from fedcohort.types import Population
from optional_values import not_none
from round_harness import run_without_files
from selector_harness import World, changing_clients, list_cohorts, make_context, make_outcome, play_rounds
from state_saving import save_and_restore

POPULATION = Population(6, 10, 2, {})
CHANGING_WORLD = World(cohort=6, available=changing_clients)
BUSY_POPULATION = Population(6, 10, 6, {})  # all six clients work at the same time


def pisces(**options: Any) -> Pisces:
    return make_typed(Pisces, "selector", "pisces", **options)


def train_client(selector: Pisces, client: int, staleness: list[int], count: float, squares: float) -> Any:
    state = selector.init(POPULATION)
    for steps in staleness:
        report = make_outcome(9, [client], loss_count=[count], loss_squares=[squares])
        late_report = replace(report, sent_round=np.array([9 - steps]))
        state = selector.observe(state, late_report)[1]
    return state


@pytest.mark.parametrize(
    ("count", "squares", "staleness", "expected"),
    [
        (100, 300.0, [0], 173.20508076),  # n = 100 with mean square 3
        (100, 300.0, [0, 4, 2, 6, 1, 3], 84.51542547),  # the last five have the mean 3.2
        (50, 450.0, [1], 106.06601718),  # 50 * 3 / 2^.5
    ],
)
def test_the_utilities_of_the_specification(
    count: float, squares: float, staleness: list[int], expected: float
) -> None:
    selector = pisces(eps=0, eps_min=0)
    state = train_client(selector, 3, staleness, count, squares)
    selection, _ = selector.select(state, make_context(cohort=1, n_clients=6), {})
    assert selection.clients.tolist() == [3]
    assert not_none(selection.scores)[3] == pytest.approx(expected)


def test_clients_that_never_trained_get_their_share() -> None:
    """One of six has trained. With eps = .5, Binomial(2, .5) others are drawn, but at least one of the two places."""
    selector = pisces(eps=0.5)
    state = train_client(selector, 3, [0], 10, 10.0)
    chosen = [selector.select(state, make_context(cohort=2, n_clients=6, seed=s), {})[0].clients for s in range(400)]
    assert np.mean([3 in clients for clients in chosen]) == pytest.approx(0.75, abs=0.06)
    assert all(len(clients) == 2 for clients in chosen)


def test_the_share_falls_to_its_least_value() -> None:
    selector, state = pisces(), pisces().init(POPULATION)
    shares = []
    for round in range(60):
        shares.append(state.eps)
        _, state = selector.select(state, make_context(round, n_clients=6), {})
    np.testing.assert_allclose(shares[:3], [0.9, 0.882, 0.86436])
    assert shares[-1] == 0.3


def pisces_with_outliers(**options: Any) -> Pisces:
    return pisces(eps=0, eps_min=0, bar_outliers=True, **options)


def report_losses(selector: Pisces, state: Any, round: int, losses: dict[int, float]) -> Any:
    """Return the state after clients with 4 samples reported these root mean squares of their losses."""
    squares = [4 * loss**2 for loss in losses.values()]
    return selector.observe(
        state, make_outcome(round, list(losses), loss_count=[4.0] * len(losses), loss_squares=squares)
    )[1]


def test_the_outlier_of_the_specification() -> None:
    """With 3 neighbours within .5 the five losses from .9 to 1.2 are a cluster, and 5 is noise."""
    is_outlier = mark_loss_outliers(np.array([1, 1.1, 0.9, 1.05, 5, 1.2]), max_neighbour_distance=0.5, min_neighbours=3)
    assert is_outlier.tolist() == [False, False, False, False, True, False]


def test_a_client_is_barred_when_its_credits_are_spent() -> None:
    """Six clients work at the same time, so that six losses are compared: client 4 pays in each of two rounds."""
    selector, losses = pisces_with_outliers(outlier_credits=2), dict(enumerate([1, 1.1, 0.9, 1.05, 5, 1.2]))
    state = selector.init(BUSY_POPULATION)
    chosen = []
    for round in range(3):
        state = report_losses(selector, state, round, losses)
        chosen.append(selector.select(state, make_context(cohort=1, n_clients=6), {})[0].clients.tolist())
    assert chosen == [[4], [5], [5]]
    assert state.credits.tolist() == [2, 2, 2, 2, 0, 2]
    without_outlier_bar = selector.select(state, make_context(cohort=6, n_clients=6), {})[0].clients
    assert without_outlier_bar.tolist() == [0, 1, 2, 3, 5]


def test_a_report_costs_at_most_one_credit_and_only_the_client_that_sent_it() -> None:
    """The outlier of client 4 stays among the losses of the last versions while others report."""
    selector = pisces_with_outliers()
    state = report_losses(selector, selector.init(BUSY_POPULATION), 0, dict(enumerate([1, 1.1, 0.9, 1.05, 5, 1.2])))
    for round in (1, 2, 3):
        state = report_losses(selector, state, round, {0: 1.0, 1: 1.1})
    assert state.credits.tolist() == [5, 5, 5, 5, 4, 5]


def test_only_enough_losses_of_the_last_versions_are_compared() -> None:
    """m = 6 losses are needed: five aren't enough, nor are six of which one is from the sixth last version."""
    selector = pisces_with_outliers()
    few = report_losses(selector, selector.init(BUSY_POPULATION), 0, {0: 1, 1: 1, 2: 1, 3: 1, 4: 5})
    assert few.credits.tolist() == [5] * 6
    old, recent = (report_losses(selector, few, round, {5: 9.0}) for round in (5, 4))
    assert old.credits.tolist() == [5] * 6
    assert recent.credits.tolist() == [5, 5, 5, 5, 5, 4]


def test_a_late_update_is_compared_with_the_losses_of_its_own_version() -> None:
    """Losses fell from 5 to 1: client 5 reports 5 in round 7, from the model of round 0. The others did so then."""
    selector = pisces_with_outliers()
    state = report_losses(selector, selector.init(BUSY_POPULATION), 0, {0: 5, 1: 5, 2: 5, 3: 5, 4: 5})
    old_update = replace(make_outcome(7, [5], loss_count=[4], loss_squares=[100]), sent_round=np.array([0]))
    assert selector.observe(state, old_update)[1].credits.tolist() == [5] * 6
    newer_update = replace(old_update, sent_round=np.array([4]))
    after_progress = report_losses(selector, state, 4, {0: 1, 1: 1, 2: 1, 3: 1, 4: 1})
    assert selector.observe(after_progress, newer_update)[1].credits.tolist() == [5, 5, 5, 5, 5, 4]


def test_invalid_losses_are_not_compared() -> None:
    selector = pisces_with_outliers()
    state = report_losses(
        selector, selector.init(BUSY_POPULATION), 0, dict(enumerate([1, 1, 1, 1, math.inf, math.nan]))
    )
    assert state.credits.tolist() == [5] * 6, "four of the six losses are valid"
    assert report_losses(selector, state, 1, {5: 1}).credits.tolist() == [5] * 6
    assert report_losses(selector, state, 1, {5: 1, 4: 1e140}).credits.tolist() == [5, 5, 5, 5, 4, 5]


def test_if_all_available_clients_are_barred_all_may_be_selected_again(caplog: pytest.LogCaptureFixture) -> None:
    selector = pisces_with_outliers(outlier_credits=1)
    losses = dict(enumerate([1.0, 2, 3, 4, 5, 6]))  # no loss has a neighbour
    state = report_losses(selector, selector.init(BUSY_POPULATION), 0, losses)
    assert state.credits.tolist() == [0] * 6
    selection, state = selector.select(state, make_context(cohort=2, n_clients=6), {})
    assert selection.clients.tolist() == [4, 5]
    assert state.credits.tolist() == [1] * 6
    assert "round 1: all available clients are barred, as 1 of their losses were outliers" in caplog.text
    caplog.clear()
    selector.select(state, make_context(cohort=2, n_clients=6), {})
    assert not caplog.text


def test_without_outliers_and_with_the_option_off_cohorts_are_equal_to_the_bit() -> None:
    """A distance above all differences finds no outlier; the other options have no effect while it is off."""
    runs = [
        play_rounds(selector, CHANGING_WORLD, 40)
        for selector in (
            pisces(),
            pisces(outlier_credits=1, outlier_distance=1e-9, outlier_versions=40),
            pisces(bar_outliers=True, outlier_distance=1e9),
        )
    ]
    assert list_cohorts(runs[0]) == list_cohorts(runs[1]) == list_cohorts(runs[2])
    with_bar = play_rounds(pisces(bar_outliers=True, outlier_credits=1, outlier_distance=0.05), CHANGING_WORLD, 40)
    assert list_cohorts(with_bar) != list_cohorts(runs[0])


def test_credits_survive_a_checkpoint() -> None:
    selector = pisces(bar_outliers=True, outlier_distance=0.05)
    uninterrupted = play_rounds(selector, CHANGING_WORLD, 30)
    restored = save_and_restore(uninterrupted[14].after)
    assert restored.credits.min() < 5
    resumed = play_rounds(selector, CHANGING_WORLD, 15, restored, 15, save_and_restore(uninterrupted[14].failures))
    assert list_cohorts(resumed) == list_cohorts(uninterrupted)[15:]
    assert resumed[-1].after.credits.tolist() == uninterrupted[-1].after.credits.tolist()


def test_clients_that_report_false_losses_are_no_longer_selected() -> None:
    """6 of 30 clients report ten times their squared losses, which multiplies the root mean square by 3.2."""
    attack = ("attack=false_signal", "attack.fraction=0.2", "attack.signals=[loss_squares]")
    asynchronous = ("deadline=buffered", "agg=fedbuff", "device=shifted_exponential", "clients=30", "cohort=5")
    late_cohorts, attackers = {}, set[int]()
    for bar_outliers in (True, False):
        options = (*attack, *asynchronous, "selector=pisces", f"selector.bar_outliers={bar_outliers}", "rounds=40")
        run = run_without_files(*options)
        for report in run.reports[1:]:
            attackers |= set(report.cohort[report.clients["attacker"][report.cohort] == 1].tolist())
        late_cohorts[bar_outliers] = {client for cohort in run.cohorts[-10:] for client in cohort}
    assert len(attackers) == 6
    assert not attackers & late_cohorts[True]
    assert attackers <= late_cohorts[False]
