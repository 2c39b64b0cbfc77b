"""TiFL: tiers and their probabilities by hand, the credits, and who fills a tier that is too small."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from config_options import make_typed
from fedcohort.selector.tifl import State, TiFl, assign_tiers
from fedcohort.types import Population, ProbeResult
from optional_values import not_none
from round_harness import run_without_files
from run_harness import startup_notices
from selector_harness import World, ids, make_context, make_outcome, play_rounds
from signal_kinds import find_measured

LATENCY = np.array([9.0, 1, 8, 2, 7, 3, 6, 4, 5, 10, 11])
TIERS = [[1, 3, 5], [7, 8], [4, 6], [0, 2], [9, 10]]
ACCURACY, CREDITS = np.array([0.6, 0.4, 0.5, 0.7, 0.3]), np.array([3, 0, 2, 1, 5])
NAN = float("nan")


def tifl(**changes: Any) -> TiFl:
    return make_typed(TiFl, "selector", "tifl", **changes)


def start(**changes: Any) -> State:
    return tifl(**changes).init(Population(11, 2, 2, {"expected_s": LATENCY}))


def accuracy_reports(values: list[float]) -> dict[str, ProbeResult]:
    """Return probe results in which each client of a tier reports the tier's accuracy."""
    accuracy = np.empty(11)
    for value, members in zip(values, TIERS, strict=True):
        accuracy[members] = value
    return {"val_accuracy": ProbeResult(np.arange(11), accuracy)}


def test_tiers_are_equal_parts_by_speed() -> None:
    """Eleven clients in five tiers: sizes 3, 2, 2, 2, 2."""
    tier = assign_tiers(LATENCY, 5)
    assert [np.flatnonzero(tier == number).tolist() for number in range(5)] == TIERS
    assert assign_tiers(np.array([2.0, 1.0]), 3).tolist() == [1, 0]


@pytest.mark.parametrize(
    ("rank_sum", "accuracy", "credits", "p"),
    [
        ("plus", ACCURACY, CREDITS, [0.2, 0, 0.3, 0.1, 0.4]),  # 4, 3, 2, 1 of 10 for tiers 4, 2, 0, 3
        ("minus", ACCURACY, CREDITS, [1 / 6, 0, 1 / 3, 0, 1 / 2]),  # 3, 2, 1, 0 of 6
        ("plus", np.array([0.5, 0.5, 0.2]), np.ones(3, int), [1 / 3, 1 / 6, 1 / 2]),  # equal: the faster one
        ("minus", ACCURACY, np.array([0, 0, 1, 0, 0]), [0, 0, 1, 0, 0]),
    ],
)
def test_the_tier_probabilities_by_hand(
    rank_sum: str, accuracy: np.ndarray, credits: np.ndarray, p: list[float]
) -> None:
    selector = tifl(rank_sum=rank_sum, tiers=len(p))
    np.testing.assert_allclose(selector.tier_probabilities(accuracy, credits), p, rtol=1e-14)


def test_tiers_are_drawn_with_their_probabilities_among_those_with_credits() -> None:
    """p = (.2, 0, .3, .1, .4): tier 1 has no credits. Four sigma of 1000 rounds."""
    state = replace(start(), credits=CREDITS, probability=np.array([0.2, 0, 0.3, 0.1, 0.4]))
    drawn = []
    for seed in range(1000):
        selection, after = tifl().select(state, make_context(n_clients=11, seed=seed), {})
        assert set(selection.clients) <= set(TIERS[after.last_drawn_tier])
        assert (state.credits - after.credits).tolist() == [int(number == after.last_drawn_tier) for number in range(5)]
        drawn.append(after.last_drawn_tier)
    p = np.array([0.2, 0, 0.3, 0.1, 0.4])
    share = np.bincount(drawn, minlength=5) / 1000
    assert (np.abs(share - p) <= 4 * np.sqrt(p * (1 - p) / 1000)).all()


def test_every_tier_is_drawn_as_often_as_it_has_credits() -> None:
    """Two credits each: ten rounds use them up, and the next ten use renewed ones."""
    steps = play_rounds(tifl(credits=2, interval=100), World(n_clients=20, cohort=2), 20)
    for cycle in (steps[:10], steps[10:]):
        assert sorted(step.after.last_drawn_tier for step in cycle) == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]


@pytest.mark.parametrize(
    ("latest", "available", "cohort", "clients"),
    [
        (2, range(11), 4, [4, 6, 7, 8]),  # the next faster tier
        (0, range(11), 5, [1, 3, 5, 7, 8]),  # the next slower one
        (3, [0, 9, 10, 4], 2, [0, 4]),
        (1, [7, 9, 10, 0, 2, 1], 2, [1, 7]),
        (1, [7, 4, 9], 3, [4, 7, 9]),
    ],
)
def test_small_tiers_are_filled_from_faster_ones_first(
    latest: int, available: Any, cohort: int, clients: list[int]
) -> None:
    is_latest = np.arange(5) == latest
    state = replace(start(), probability=is_latest.astype(np.float64))
    ctx = make_context(cohort=cohort, n_clients=11, available=sorted(available))
    selection, after = tifl().select(state, ctx, {})
    assert after.last_drawn_tier == latest
    assert selection.clients.tolist() == clients


def test_a_tier_whose_clients_are_away_keeps_its_credit() -> None:
    state = replace(start(), credits=np.array([0, 3, 0, 0, 0]))
    selection, after = tifl(credits=4).select(state, make_context(n_clients=11, available=[4, 6]), {})
    assert selection.clients.tolist() == [4, 6]
    assert after.credits.tolist() == [4, 4, 3, 4, 4]


def test_without_probability_tiers_are_drawn_uniformly() -> None:
    state = replace(start(), credits=np.array([1, 1, 0, 0, 0]), probability=np.array([0, 0, 0.5, 0.5, 0]))
    latest = {tifl().select(state, make_context(n_clients=11, seed=seed), {})[1].last_drawn_tier for seed in range(30)}
    assert latest == {0, 1}


@pytest.mark.parametrize(
    ("adapt", "before", "latest", "changes"),
    [
        ("paper", 0.5, 2, True),  # .5 is no more than before
        ("paper", 0.49, 2, False),
        ("paper", 0.71, 3, True),
        ("always", 0.49, 2, True),
    ],
)
def test_probabilities_change_where_the_drawn_tier_has_not_become_better(
    adapt: str, before: float, latest: int, changes: bool
) -> None:
    state = replace(start(), accuracy=np.full(5, before), credits=CREDITS, previous_tier=latest)
    after = tifl(adapt=adapt).observe(state, make_outcome(10, [0], accuracy_reports(ACCURACY.tolist())))[1]
    np.testing.assert_allclose(after.accuracy, ACCURACY, rtol=1e-14)
    expected = [0.2, 0, 0.3, 0.1, 0.4] if changes else [0.2] * 5
    np.testing.assert_allclose(after.probability, expected, rtol=1e-14)


@pytest.mark.parametrize(("accuracies", "changes"), [((0.5, 0.7), True), ((0.7, 0.5), False)])
def test_the_tier_drawn_before_the_query_decides(accuracies: tuple[float, float], changes: bool) -> None:
    """Tier 0 was drawn in the rounds before round 10, and w_10 is its result, whichever tier round 10 draws."""
    selector = tifl(tiers=2, interval=10)
    before = State(np.array([0, 0, 1, 1]), np.array([10, 10]), np.array([0.5, 0.5]), np.array([0.6, 0.6]), 0, 1)
    answers = {"val_accuracy": ProbeResult(np.arange(4), np.repeat(accuracies, 2))}
    drawn_tiers = set()
    for seed in range(20):
        state = selector.select(before, make_context(10, 1, 4, seed=seed), {})[1]
        drawn_tiers.add(state.last_drawn_tier)
        refill = replace(make_context(10, 1, 4, seed=seed + 20), is_refill=True)
        state = selector.select(state, refill, {})[1]  # the tier of a refill does not decide either
        after = selector.observe(state, make_outcome(10, [0], answers))[1]
        np.testing.assert_allclose(after.probability, [2 / 3, 1 / 3] if changes else [0.5, 0.5], rtol=1e-14)
    assert drawn_tiers == {0, 1}


def test_the_first_accuracy_is_compared_with_none() -> None:
    state = replace(start(), last_drawn_tier=0)
    after = tifl(adapt="always").observe(state, make_outcome(0, [0], accuracy_reports(ACCURACY.tolist())))[1]
    assert after.probability.tolist() == [0.2] * 5
    np.testing.assert_allclose(after.accuracy, ACCURACY, rtol=1e-14)


def test_a_tier_without_a_valid_answer_keeps_its_accuracy() -> None:
    state = replace(start(), accuracy=ACCURACY, last_drawn_tier=0)
    answers = {"val_accuracy": ProbeResult(ids(1, 3, 7, 9, 10), np.array([0.25, 0.75, NAN, 2.0, 0.5]))}
    after = tifl().observe(state, make_outcome(10, [0], answers))[1]
    np.testing.assert_allclose(after.accuracy, [0.5, 0.4, 0.5, 0.7, 0.75], rtol=1e-14)
    no_clients = {"val_accuracy": ProbeResult(ids(), np.empty(0))}
    assert tifl().observe(state, make_outcome(10, [0], no_clients))[1] is state
    assert tifl().observe(state, make_outcome(11, [0]))[1] is state


def test_ready_clients_are_queried_every_interval() -> None:
    steps = play_rounds(tifl(interval=3), World(), 7)
    assert [len(step.probes) for step in steps] == [1, 0, 0, 1, 0, 0, 1]
    assert steps[0].probes[0].concurrent
    assert steps[0].probes[0].clients.tolist() == list(range(12))


def test_one_tier_is_random_selection() -> None:
    steps = play_rounds(tifl(tiers=1), World(), 400)
    share = np.bincount(np.concatenate([step.selection.clients for step in steps]), minlength=12) / 400
    assert (np.abs(share - 1 / 4) < 4 * np.sqrt(3 / 16 / 400)).all()
    assert not_none(steps[0].selection.scores).tolist() == [1.0] * 12


def test_accuracy_counts_correct_predictions() -> None:
    logp = torch.log_softmax(torch.tensor([[2.0, 1.0], [0.0, 1.0], [3.0, -1.0]]), 1)
    correct = find_measured("val_accuracy").per_sample(logp, torch.tensor([0, 0, 0]), {})
    assert correct.tolist() == [1, 0, 1]


def test_a_notice_says_that_validation_sets_are_needed() -> None:
    for value, expected in (("0", True), ("0.1", False)):
        lines = startup_notices("selector=tifl", f"split.client_val={value}")
        assert any(line.startswith("selector=tifl compares tiers by") for line in lines) == expected


def test_the_accuracy_in_a_run_is_a_share() -> None:
    run = run_without_files("selector=tifl", "selector.interval=2", "rounds=3", "split.client_val=0.3")
    for report in run.reports[1::2]:
        accuracy = report.clients["signal_val_accuracy"]
        assert ((accuracy >= 0) & (accuracy <= 1)).all()
    assert "signal_val_accuracy" not in run.reports[2].clients
