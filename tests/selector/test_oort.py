"""Oort: each term by hand, the whole score by hand, what the paper has and its code hasn't, and the pacer."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from agg_harness import make_update
from case_loop import for_all
from config_options import make_component, make_typed
from fedcohort.errors import OptionError
from fedcohort.selector.oort import Oort
from fedcohort.selector.ranking import State
from fedcohort.selector.ranking_terms import (
    candidates_above_cutoff,
    client_utilities,
    count_explore_exploit,
    expected_cohort_shares,
    normalise_utilities,
    speed_factor,
    staleness_bonus,
)
from fedcohort.signal.base import find_signal
from fedcohort.types import Selection
from optional_values import not_none
from selector_harness import World, ids, make_context, make_outcome, play_rounds
from signal_kinds import find_reported

NAN, INF = float("nan"), float("inf")
EXPECTED = {"expected_s": np.ones(5)}
PLAIN: Oort = make_component("selector", "oort", preferred_in="seconds", preferred=10.0)


def oort(**changes: Any) -> Oort:
    return make_typed(Oort, "selector", "oort", **changes)


def five(**changes: Any) -> State:
    """Five clients that have all trained, with T = 10 s."""
    state = State(
        utilities=np.array([1.0, 2.0, 3.0, 4.0, 10.0]),
        last_rounds=ids(9, 8, 5, 3, 1),
        seconds=np.array([5.0, 10.0, 20.0, 5.0, 40.0]),
        n_participations=ids(1, 1, 1, 1, 1),
        eps=0.9,
        preferred=10.0,
        utility_sums=np.empty(0),
    )
    return replace(state, **changes)


def select_clients(state: State, cohort: int = 2, round: int = 9, seed: int = 0, **changes: Any) -> Selection:
    selector = replace(PLAIN, **changes)
    return selector.select(state, make_context(round, cohort, signals=EXPECTED, seed=seed), {})[0]


def test_the_utility_of_clients_by_hand() -> None:
    """Losses 1, 2, 2: 3 sqrt(9 / 3); n times the mean is 5, the root of the sum of squares 3."""
    np.testing.assert_allclose(client_utilities(np.array([3.0]), np.array([9.0])), [5.1961524], atol=1e-7)
    assert client_utilities(np.array([0.0]), np.array([0.0])).tolist() == [0.0]


def test_the_signals_are_those_of_the_samples_trained_on() -> None:
    update = make_update(0, [0.0], n=4, sample_loss=np.array([1.0, 2.0, NAN, 2.0]))
    assert (find_reported("loss_count").read(update), find_reported("loss_squares").read(update)) == (3.0, 9.0)
    nan_update = make_update(0, [0.0], n=2, sample_loss=np.array([NAN, NAN]))
    assert (find_reported("loss_count").read(nan_update), find_reported("loss_squares").read(nan_update)) == (0.0, 0.0)
    assert find_signal("loss_count").bytes_up + find_signal("loss_squares").bytes_up == 8


def test_the_bonus_grows_with_the_rounds_since_the_last_selection() -> None:
    """sqrt(.1 ln R / last)."""
    np.testing.assert_allclose(staleness_bonus(10, ids(5, 9)), [0.214597, 0.159951], atol=5e-7)
    np.testing.assert_allclose(staleness_bonus(100, ids(1, 0)), [0.678614, 0.0], atol=5e-7)


def test_slow_clients_are_penalised() -> None:
    """T = 10, alpha = 2."""
    times = np.array([5.0, 10.0, 20.0, 40.0, NAN, INF])
    np.testing.assert_allclose(speed_factor(times, 10.0, 2.0), [1, 1, 0.25, 0.0625, 1, 0])
    assert speed_factor(times, INF, 2.0).tolist() == [1.0] * 6


def test_the_whole_score_by_hand() -> None:
    """norm(U) = (U - .999) / 9.001 in round 10; then clients 2 and 4 are 2 and 4 times too slow."""
    selection = select_clients(five(), eps=0.0, eps_min=0.0)
    parts = selection.score_terms
    before = [0.16006196, 0.28086338, 0.43690524, 0.61045042, 1.47985259]
    np.testing.assert_allclose(parts["utility"] + parts["staleness"], before, atol=5e-9)
    scores = np.array([0.16006196, 0.28086338, 0.10922631, 0.61045042, 0.09249079])
    np.testing.assert_allclose(not_none(selection.scores), scores, atol=5e-9)
    assert selection.scores is not None
    assert candidates_above_cutoff(selection.scores, np.arange(5), 2, 0.95).tolist() == [1, 3], (
        "at least .95 x .28086 = .26682"
    )
    assert 0.95 * np.sort(selection.scores)[-2] == pytest.approx(0.26682, abs=5e-6)
    assert len(candidates_above_cutoff(selection.scores, np.arange(5), 2, 0.05)) == 5
    np.testing.assert_allclose(not_none(selection.probability), [0, 0.315112, 0, 0.684888, 0], atol=5e-7)
    assert selection.clients.tolist() == [1, 3]


def test_admitted_clients_are_drawn_by_score() -> None:
    """cutoff = .05 admits all five; one place of each: 4 sigma of 1000 draws."""
    state, p = five(), np.array([0.16006196, 0.28086338, 0.10922631, 0.61045042, 0.09249079])
    picks = [select_clients(state, 1, seed=seed, cutoff=0.05, eps=0.0, eps_min=0.0).clients[0] for seed in range(1000)]
    p /= p.sum()
    assert (np.abs(np.bincount(picks, minlength=5) / 1000 - p) < 4 * np.sqrt(p * (1 - p) / 1000)).all()


def test_the_largest_utilities_are_clipped() -> None:
    """c at place int(.6 5) = 3 of the sorted: 10 counts as 4; the extremes stay those before clipping."""
    U = np.array([1.0, 2.0, 3.0, 4.0, 10.0])
    np.testing.assert_allclose(normalise_utilities(U, 0.95), (U - 0.999) / 9.001)
    np.testing.assert_allclose(normalise_utilities(U, 0.6), (np.array([1.0, 2.0, 3.0, 4.0, 4.0]) - 0.999) / 9.001)
    np.testing.assert_allclose(normalise_utilities(U, 1.0), normalise_utilities(U, 0.95))
    assert normalise_utilities(np.zeros(2), 0.95).tolist() == [0.0, 0.0]
    assert np.isnan(normalise_utilities(np.array([NAN, 1.0]), 0.95)).tolist() == [True, False]


def test_the_exploration_share_decays_per_round() -> None:
    """max(.98^R .9, .2): .2 after ceil(ln(.2/.9) / ln .98) = 75 rounds."""
    eps = [step.after.eps for step in play_rounds(oort(), World(), 76)]
    np.testing.assert_allclose(eps[:5], [0.882, 0.86436, 0.847073, 0.830131, 0.813529], atol=5e-7)
    assert eps[73] > 0.2
    assert eps[74] == eps[75] == 0.2


@for_all(
    "m, eps, n_unexplored, n_explored, expected",
    [
        (10, 0.882, 30, 20, (8, 2)),
        (10, 0.882, 5, 20, (5, 5)),  # no client is left to explore
        (10, 0.2, 30, 3, (7, 3)),  # too few are known
        (10, 0.882, 30, 0, (10, 0)),  # the first round
        (10, 0.2, 0, 12, (0, 10)),
        (10, 0.2, 3, 4, (3, 4)),  # three places are left to fill
        (0, 0.9, 0, 0, (0, 0)),
        (0, 0.9, 3, 4, (0, 0)),
        (4, 0.2, 30, 20, (1, 3)),  # .8 of a client
        (2, 0.2, 30, 20, (1, 1)),
        (1, 0.2, 30, 20, (1, 0)),
        (1, 0.2, 0, 20, (0, 1)),
        (4, 0.0, 30, 20, (0, 4)),  # who doesn't want to explore doesn't
    ],
)
def test_the_number_of_explored_clients(
    m: int, eps: float, n_unexplored: int, n_explored: int, expected: tuple[int, int]
) -> None:
    assert count_explore_exploit(m, eps, n_unexplored, n_explored) == expected


@pytest.mark.parametrize("cohort", [1, 2, 3])
def test_all_clients_are_explored_and_cohorts_stay_complete(cohort: int) -> None:
    """Of 12 clients each is explored once; 20 further rounds have distinct ids.

    From the first round on eps is .2, less than one client of a cohort of 1, 2 or 3: one client explores anyway.
    """
    steps = play_rounds(oort(eps=0.2), World(cohort=cohort), 40)
    last_new_step = next(i for i, step in enumerate(steps) if (step.after.last_rounds > 0).all())
    assert len(steps) - last_new_step > 20
    assert all(len(np.unique(step.selection.clients)) == cohort for step in steps)


@pytest.mark.parametrize(("explore", "chances"), [("speed", [4 / 7, 2 / 7, 1 / 7]), ("size", [0.5, 0.3, 0.2])])
def test_unexplored_clients_are_selected_by_speed_or_size(explore: str, chances: list[float]) -> None:
    """Speeds 1, 1/2, 1/4, or sizes 50, 30, 20 of clients no slower than T; 4 sigma of 1000 draws."""
    signals = {"expected_s": np.array([1.0, 2.0, 4.0]), "n_train": np.array([50, 30, 20])}
    selector = oort(explore=explore, preferred=100.0)
    state = selector.init(World(3, 1).population(selector.needs))
    selections = [
        selector.select(state, make_context(0, 1, 3, signals=signals, seed=seed), {})[0] for seed in range(1000)
    ]
    np.testing.assert_allclose(not_none(selections[0].probability), chances, rtol=1e-12)
    p, share = np.array(chances), np.bincount([s.clients[0] for s in selections], minlength=3) / 1000
    assert (np.abs(share - p) < 4 * np.sqrt(p * (1 - p) / 1000)).all()


def test_exploring_by_size_counts_duration() -> None:
    """T is the fastest's 1 s (0.1 percent): sizes 50, 30, 20 times (1, 1/2, 1/4)^2."""
    signals = {"expected_s": np.array([1.0, 2.0, 4.0]), "n_train": np.array([50, 30, 20])}
    selector = oort(explore="size", preferred=0.1)
    selection = selector.select(
        selector.init(World(3, 1).population(selector.needs)), make_context(0, 1, 3, signals=signals), {}
    )
    weights = np.array([50.0, 7.5, 1.25])
    np.testing.assert_allclose(not_none(selection[0].probability), weights / weights.sum(), rtol=1e-12)


@pytest.mark.parametrize(("percent", "T"), [(0.1, 5.0), (30.0, 5.0), (40.0, 10.0), (99.0, 40.0), (100.0, INF)])
def test_the_preferred_duration_is_a_percentile(percent: float, T: float) -> None:
    """Sorted: 5, 5, 10, 20, 40; place int(5 percent / 100)."""
    system = select_clients(five(preferred=percent), preferred_in="percentile", preferred=percent).score_terms["system"]
    np.testing.assert_allclose(system, speed_factor(five().seconds, T, 2.0))


def test_a_client_that_never_trained_counts_with_its_expected_duration() -> None:
    """NaN stands for the 1 s of EXPECTED: position int(.3 5) = 1 of 1, 1, 10, 20, 40 is 1 s."""
    state = five(seconds=np.array([NAN, 10.0, 20.0, NAN, 40.0]), preferred=30.0)
    system = select_clients(state, preferred_in="percentile", preferred=30.0).score_terms["system"]
    np.testing.assert_allclose(system, [1, 1 / 100, 1 / 400, 1, 1 / 1600])


def pace_rounds(sums: list[float], **changes: Any) -> tuple[float, list[float]]:
    """T and the sums that stay, after rounds that paid `utility_sums`; W = 4, Delta = 5, T = 30 before."""
    selector = oort(**{"window": 4, **changes})
    state = selector.init(World(3, 1).population(selector.needs))
    for round, total in enumerate(sums):
        answers: dict[str, Any] = {"loss_count": [1.0], "loss_squares": [total**2], "duration": [1.0]}
        state = selector.observe(state, make_outcome(round, [0], **answers))[1]
    return state.preferred, state.utility_sums.tolist()


@for_all(
    "pacer, sums, T",
    [
        ("paper", [5.0] * 4 + [4.0] * 4, 35),
        ("paper", [5.0] * 4 + [4.0] * 3, 30),  # not yet
        ("paper", [5.0] * 4 + [4.0] * 4 + [3.0] * 4, 40),  # every W rounds
        ("paper", [5.0] * 4 + [4.0] * 7, 35),
        ("paper", [4.0] * 4 + [5.0] * 4, 30),
        ("paper", [4.0] * 8, 30),
        ("code", [4.0] * 8, 35),  # flat
        ("code", [5.0] * 4 + [4.0] * 4, 30),  # a change of a fifth is neither
        ("code", [1.0] * 4 + [7.0] * 4, 25),  # sixfold change
        ("none", [5.0] * 4 + [4.0] * 4, 30),
    ],
)
def test_the_pacer_by_hand(pacer: str, sums: list[float], T: float) -> None:
    assert pace_rounds(sums, pacer=pacer)[0] == T
    assert len(pace_rounds(sums, pacer=pacer)[1]) < 8, "what is kept stays short"


def test_the_pacer_stays_within_its_bounds() -> None:
    utilities = [5.0] * 4 + [4.0] * 4
    assert pace_rounds(utilities, preferred=98.0)[0] == 100.0
    assert pace_rounds(utilities, preferred=98.0, preferred_in="seconds", step=7.0)[0] == 105.0
    assert pace_rounds([1.0] * 4 + [7.0] * 4, pacer="code", preferred=6.0)[0] == 5.0
    assert pace_rounds([1.0] * 4 + [7.0] * 4, pacer="code", preferred=3.0)[0] == 3.0


def test_a_clients_report_is_kept_until_it_trains_again() -> None:
    selector = oort()
    state = selector.init(World(3, 2).population(selector.needs))
    answers: dict[str, Any] = {"loss_count": [3.0, 4.0], "loss_squares": [9.0, 4.0], "duration": [7.0, 8.0]}
    state = selector.observe(state, make_outcome(4, [0, 2], failed=[1], **answers))[1]
    np.testing.assert_allclose(state.utilities, [5.1961524, NAN, 4.0], atol=1e-7)
    assert state.last_rounds.tolist() == [5, 0, 5], "rounds count from 1"
    np.testing.assert_array_equal(state.seconds, [7.0, NAN, 8.0])
    assert state.n_participations.tolist() == [1, 0, 1]


@pytest.mark.parametrize(("count", "squares"), [(NAN, 1.0), (1.0, NAN), (INF, 1.0), (0.0, INF), (-1.0, -1.0)])
def test_clients_with_invalid_utility_are_a_last_resort(count: float, squares: float) -> None:
    assert np.isnan(client_utilities(np.array([count]), np.array([squares]))).all()
    state = five(utilities=np.array([1.0, 2.0, 3.0, 4.0, NAN]))
    assert all(4 not in select_clients(state, 4, seed=seed).clients for seed in range(30))
    assert select_clients(state, 5).clients.tolist() == [0, 1, 2, 3, 4]


def test_clients_over_the_limit_of_rounds_are_a_last_resort() -> None:
    state = five(n_participations=ids(10, 10, 9, 9, 9))
    assert all(
        select_clients(state, 3, seed=seed, cap=10, cutoff=0.0).clients.tolist() == [2, 3, 4] for seed in range(10)
    )
    assert {3} == {int(select_clients(state, 1, seed=seed, cap=None).clients[0]) for seed in range(10)}
    assert len(select_clients(state, 4, cap=10).clients) == 4


def test_probabilities_refer_to_one_draw() -> None:
    """2 places by (3, 1, 0), 1 by (0, 0, 5)."""
    weights_and_counts = ((np.array([3.0, 1.0, 0.0]), 2), (np.array([0.0, 0.0, 5.0]), 1))
    np.testing.assert_allclose(expected_cohort_shares(weights_and_counts), [1 / 2, 1 / 6, 1 / 3])
    assert expected_cohort_shares(((np.zeros(2), 0), (np.zeros(2), 0))).tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("changes", "needs"),
    [
        ({}, {"expected_s"}),
        ({"explore": "size"}, {"expected_s", "n_train"}),
        ({"explore": "size", "preferred_in": "seconds"}, {"n_train"}),
        ({"preferred_in": "seconds"}, {"expected_s"}),
    ],
)
def test_only_the_signals_of_the_options_are_needed(changes: dict[str, Any], needs: set[str]) -> None:
    world = World()
    play_rounds(oort(**changes), world, 2)
    assert world.read_signals == oort(**changes).needs == needs | {"loss_count", "loss_squares", "duration"}


def test_a_percentile_above_100_is_rejected() -> None:
    with pytest.raises(OptionError, match=r"preferred must be a number in \(0, 100\] with preferred_in=percentile"):
        replace(oort(), preferred=120.0)
    replace(oort(), preferred=120.0, preferred_in="seconds")
