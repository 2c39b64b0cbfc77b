"""Probabilities of sets and cohorts, against sums over all orders and sums over all cohorts."""

import math
from itertools import combinations, permutations

import numpy as np
import pytest

from fedcohort.draw_log import DrawLog, LoggedGenerator
from fedcohort.maths.successive_draws import CohortDistribution, log_probability_of_set
from fedcohort.rng import new_generator
from fedcohort.selector.base import draw, top
from fedcohort.types import Ids

WEIGHTS = np.array([1.0, 2.0, 3.0, 4.0])


def order_log_probability(weights: np.ndarray, total: float) -> float:
    """Return log P of drawing clients of these weights in this order from a pool of this total weight."""
    return float(np.log(weights / (total - np.concatenate([[0.0], np.cumsum(weights)[:-1]]))).sum())


def draw_with_log(weights: np.ndarray, n_drawn: int, seed: int = 0) -> tuple[DrawLog, Ids]:
    rng = LoggedGenerator(new_generator(seed, "draw"), np.arange(len(weights)))
    rng.start_selection()
    clients = draw(weights, np.arange(len(weights)), n_drawn, rng)
    return rng.finish(), clients


def test_the_probability_of_two_of_four_clients_is_the_sum_over_orders() -> None:
    """P(3 before 0) = 4/10 x 1/6, P(0 before 3) = 1/10 x 4/9; the 12 ordered pairs add up to one."""
    assert order_log_probability(WEIGHTS[[3, 0]], 10.0) == pytest.approx(math.log(4 / 60))
    assert order_log_probability(WEIGHTS[[0, 3]], 10.0) == pytest.approx(math.log(4 / 90))
    orders = [math.exp(order_log_probability(WEIGHTS[list(pair)], 10.0)) for pair in permutations(range(4), 2)]
    assert sum(orders) == pytest.approx(1.0)


@pytest.mark.parametrize("n_drawn", [1, 2, 3])
@pytest.mark.parametrize("weights", [WEIGHTS, 10.0**WEIGHTS, np.ones(4), np.array([1e-9, 1.0, 1.0, 1e9])])
def test_a_set_has_the_sum_over_its_orders(weights: np.ndarray, n_drawn: int) -> None:
    for chosen in combinations(range(4), n_drawn):
        orders = [order_log_probability(weights[list(order)], weights.sum()) for order in permutations(chosen)]
        outside = weights[[k for k in range(4) if k not in chosen]].sum()
        assert log_probability_of_set(weights[list(chosen)], outside) == pytest.approx(
            np.logaddexp.reduce(orders), abs=1e-6 if weights.max() > 1e6 else 1e-12
        )


@pytest.mark.parametrize(("n_clients", "n_drawn"), [(100, 10), (10_000, 100), (100_000, 1_000), (1_000, 999)])
def test_equal_weights_give_each_set_the_same_probability(n_clients: int, n_drawn: int) -> None:
    """One over the binomial coefficient."""
    expected = math.lgamma(n_drawn + 1) + math.lgamma(n_clients - n_drawn + 1) - math.lgamma(n_clients + 1)
    assert log_probability_of_set(np.ones(n_drawn), float(n_clients - n_drawn)) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize(
    "weights",
    [
        np.array([0.0, 0.0, 1.0, 0.0, 2.0]),  # two of positive weight, and one of three others
        np.array([5.0, 0.0, 1.0, 0.5, 2.0]),  # the client of weight zero is never drawn
    ],
)
def test_clients_of_weight_zero_come_last(weights: np.ndarray) -> None:
    log, clients = draw_with_log(weights, 3)
    distribution = CohortDistribution.from_draws(log, clients)
    probabilities = {c: math.exp(distribution.log_probability(np.array(c))) for c in combinations(range(5), 3)}
    assert sum(probabilities.values()) == pytest.approx(1.0)
    if weights[0] == 0:
        assert probabilities[(0, 2, 4)] == pytest.approx(1 / 3)
        assert probabilities[(0, 1, 2)] == 0
    else:
        assert probabilities[(0, 1, 2)] == 0


def test_highest_scores_are_certain_and_ties_are_drawn() -> None:
    """Client 4 is above the cut; one of the three clients tied at the cut follows."""
    rng = LoggedGenerator(new_generator(0, "draw"), np.arange(5))
    rng.start_selection()
    scores = np.array([1.0, 1.0, 0.0, 1.0, 2.0])
    clients = top(scores, np.arange(5), 2, rng)
    distribution = CohortDistribution.from_draws(rng.finish(), clients)
    assert [
        math.exp(distribution.log_probability(np.array(pair))) for pair in ((0, 4), (1, 4), (3, 4))
    ] == pytest.approx(3 * [1 / 3])
    assert not distribution.can_draw_cohort(np.array([0, 1]))
    assert not distribution.can_draw_cohort(np.array([2, 4]))
    cohorts = {tuple(cohort) for cohort in distribution.draw_cohorts(100, np.random.default_rng(0)).tolist()}
    assert cohorts == {(0, 4), (1, 4), (3, 4)}


def test_highest_scores_without_ties_are_deterministic() -> None:
    rng = LoggedGenerator(new_generator(0, "draw"), np.arange(4))
    rng.start_selection()
    clients = top(WEIGHTS, np.arange(4), 2, rng)
    assert CohortDistribution.from_draws(rng.finish(), clients).is_deterministic


def test_draws_from_disjoint_pools_multiply() -> None:
    rng = LoggedGenerator(new_generator(0, "draw"), np.arange(4))
    rng.start_selection()
    clients = np.concatenate([draw(WEIGHTS, np.array([0, 1]), 1, rng), draw(WEIGHTS, np.array([2, 3]), 1, rng)])
    distribution = CohortDistribution.from_draws(rng.finish(), np.sort(clients))
    assert math.exp(distribution.log_probability(np.array([1, 3]))) == pytest.approx(2 / 3 * 4 / 7)
    assert not distribution.can_draw_cohort(np.array([0, 1]))


def test_a_pool_that_depends_on_a_draw_has_no_known_probability() -> None:
    rng = LoggedGenerator(new_generator(0, "draw"), np.arange(4))
    rng.start_selection()
    first = draw(WEIGHTS, np.arange(4), 1, rng)
    second = draw(WEIGHTS, np.setdiff1d(np.arange(4), first), 1, rng)
    distribution = CohortDistribution.from_draws(rng.finish(), np.union1d(first, second))
    assert distribution.unknown_reason == "its later draws depend on its earlier ones"


def test_a_cohort_chosen_from_drawn_candidates_has_no_known_probability() -> None:
    log, candidates = draw_with_log(WEIGHTS, 3)
    assert "candidates" in CohortDistribution.from_draws(log, candidates[:2]).unknown_reason


def test_drawn_cohorts_have_the_stated_probabilities() -> None:
    log, clients = draw_with_log(WEIGHTS, 2)
    distribution = CohortDistribution.from_draws(log, clients)
    cohorts = distribution.draw_cohorts(4_000, np.random.default_rng(0)).tolist()
    for pair in combinations(range(4), 2):
        probability = math.exp(distribution.log_probability(np.array(pair)))
        assert abs(cohorts.count(list(pair)) / 4_000 - probability) < 4 * math.sqrt(probability / 4_000)
