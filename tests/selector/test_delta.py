"""DELTA: scores and probabilities by hand, an unbiased estimate, and the cohort that is measured while it trains."""

from typing import Any

import numpy as np
import pytest

from config_options import make_component
from fedcohort.errors import OptionError
from fedcohort.selector.delta import State, draw_with_repetition
from fedcohort.types import Population, ProbeResult
from round_harness import run_without_files
from selector_harness import ids, make_context, make_outcome

G = np.array([[1.0, 0.0], [0.0, 1.0], [3.0, 0.0]])
SIGMA = np.array([1.0, 0.5, 2.0])
MOMENTS = np.column_stack([G, SIGMA])


def start(n_clients: int = 3, cohort: int = 1) -> Any:
    return Population(n_clients, 2, cohort, {})


def test_scores_by_hand() -> None:
    """The mean gradient is (4/3, 1/3): zeta^2 = 2/9, 20/9, 26/9, and sqrt(.8 zeta^2 + .2 sigma^2) follows.

    Released: losses 2, 1, .5 are shares 4/7, 2/7, 1/7; .5 share zeta + .5 sqrt(share).
    """
    scores = make_component("selector", "delta").compute_scores(G, SIGMA)
    np.testing.assert_allclose(scores, np.sqrt([0.8 * 2 / 9 + 0.2, 0.8 * 20 / 9 + 0.05, 0.8 * 26 / 9 + 0.8]))
    np.testing.assert_allclose(scores / scores.sum(), [0.16476313, 0.36241279, 0.47282408], atol=1e-8)
    released = make_component("selector", "delta", score="released").compute_scores(G, np.array([2.0, 1.0, 0.5]))
    np.testing.assert_allclose(released / released.sum(), [0.39336115, 0.36847632, 0.23816252], atol=1e-8)


def test_the_cohort_shares_the_probability_that_it_had() -> None:
    """Of clients 0 and 2 the mean is (2, 0) and both zeta are 1: scores 1 and sqrt(1.6), and .5 is shared by them."""
    selector = make_component("selector", "delta")
    state = State(np.array([0.2, 0.5, 0.3]), np.zeros(3))
    probes = {"gradient_moments": ProbeResult(ids(0, 2), MOMENTS[[0, 2]])}
    _, after = selector.observe(state, make_outcome(0, [0, 2], probes))
    np.testing.assert_allclose(after.probability, [0.5 / (1 + 1.6**0.5), 0.5, 0.5 * 1.6**0.5 / (1 + 1.6**0.5)])
    np.testing.assert_allclose(after.probability[0], 0.22075922, atol=1e-8)
    _, after = selector.observe(state, make_outcome(0, [0], probes, failed=[2]))
    np.testing.assert_array_equal(after.probability, state.probability)
    invalid = {"gradient_moments": ProbeResult(ids(0, 1, 2), np.where(np.eye(3), np.nan, MOMENTS))}
    np.testing.assert_array_equal(
        selector.observe(state, make_outcome(0, [0, 1, 2], invalid))[1].probability, state.probability
    )
    repeated = {"gradient_moments": ProbeResult(ids(0, 2), np.ones((2, 3)) * [1, 1, 0])}
    np.testing.assert_array_equal(
        selector.observe(state, make_outcome(0, [0, 2], repeated))[1].probability, state.probability
    )
    update_selector = make_component("selector", "delta", gradient="update")
    answers = {"gradient_std": ProbeResult(ids(0, 2), SIGMA[[0, 2]])}
    _, after = update_selector.observe(state, make_outcome(0, [0, 2], answers, update=G[[0, 2]].tolist()))
    np.testing.assert_allclose(after.probability, [0.22075922, 0.5, 0.27924078], atol=1e-8)


def test_a_client_keeps_a_least_probability() -> None:
    """Scores 0 and 1 of two clients: 0 is raised to .01 / 2 before both are divided by 1.005."""
    selector = make_component("selector", "delta", variance=1.0, diversity=0.0)
    answers = {"gradient_moments": ProbeResult(ids(0, 1), np.array([[1.0, 0.0], [1.0, 1.0]]))}
    _, after = selector.observe(selector.init(start(2)), make_outcome(0, [0, 1], answers))
    np.testing.assert_allclose(after.probability, [0.005 / 1.005, 1 / 1.005])


def test_the_estimate_is_unbiased() -> None:
    """The mean of the weights draws_i w_i / (m p_i) is w_i; two draws include i with 1 - (1 - p_i)^2."""
    selector, p = make_component("selector", "delta"), np.array([0.16476313, 0.36241279, 0.47282408])
    n_train, total, inclusion, n_rounds = np.array([1, 3, 2]), np.zeros(3), np.zeros(3), 4000
    for seed in range(n_rounds):
        ctx = make_context(cohort=2, n_clients=3, signals={"n_train": n_train}, seed=seed)
        selection, state = selector.select(State(p, np.zeros(3)), ctx, {})
        total[selection.clients] += state.weights[selection.clients]
        inclusion[selection.clients] += 1
    np.testing.assert_allclose(total / n_rounds, n_train / 6, atol=0.02)
    np.testing.assert_allclose(inclusion / n_rounds, selection.probability, atol=0.03)
    np.testing.assert_allclose(selection.probability, 1 - (1 - p) ** 2, atol=1e-7)
    advice, _ = selector.observe(state, make_outcome(0, selection.clients.tolist()))
    assert advice.absolute
    np.testing.assert_array_equal(advice.weights, state.weights[selection.clients])


def test_where_at_most_m_are_available_all_train_under_the_aggregators_weights() -> None:
    selector = make_component("selector", "delta")
    ctx = make_context(cohort=3, n_clients=4, available=[0, 1, 3], signals={"n_train": np.ones(4, np.int64)})
    selection, state = selector.select(selector.init(start(4)), ctx, {})
    assert selection.clients.tolist() == [0, 1, 3]
    assert selector.observe(state, make_outcome(0, [0, 1, 3]))[0] is None


def test_the_cohort_is_measured_while_it_trains() -> None:
    """`plan` names the clients that `select` draws afterwards from the same generator."""
    selector = make_component("selector", "delta")
    for seed in range(20):
        ctx = make_context(cohort=4, n_clients=9, signals={"n_train": np.arange(9) + 1}, seed=seed)
        (probe,) = selector.plan(selector.init(start(9)), ctx)
        assert probe.concurrent
        selection, state = selector.select(selector.init(start(9)), ctx, {})
        assert probe.clients.tolist() == selection.clients.tolist()
    share = (np.arange(9) + 1) / 45
    draws = state.weights * 4 / 9 / share
    np.testing.assert_allclose(draws, np.round(draws))
    assert draws.sum() == pytest.approx(4)
    assert draw_with_repetition(np.ones(9), make_context(cohort=9, n_clients=9))[0].tolist() == [1] * 9


def test_ideal_probabilities_are_proportional_to_the_scores() -> None:
    selector = make_component("selector", "delta", ideal=True)
    ctx = make_context(n_clients=3, cohort=1, signals={"n_train": np.ones(3, np.int64)})
    assert selector.plan(selector.init(start()), ctx)[0].clients.tolist() == [0, 1, 2]
    answers = {"gradient_moments": ProbeResult(ids(0, 1, 2), MOMENTS)}
    _, state = selector.select(selector.init(start()), ctx, answers)
    np.testing.assert_allclose(state.probability, [0.16476313, 0.36241279, 0.47282408], atol=1e-8)
    assert state.weights.max() in 1 / 3 / state.probability
    with pytest.raises(OptionError, match="ideal=true measures clients before they train"):
        make_component("selector", "delta", ideal=True, score="released")


def test_a_run_charges_the_cohorts_gradients() -> None:
    """P + 1 = 651 numbers more, and a pass with gradients next to two epochs. A released score has a loss instead."""
    overrides = ("selector=delta", "rounds=1", "cohort=3", "partition=dirichlet")
    with_queries = run_without_files(*overrides).last
    with_updates = run_without_files(*overrides, "selector.gradient=update", "selector.score=released").last
    n_clients = len(with_queries.cohort)
    assert with_queries.cohort.tolist() == with_updates.cohort.tolist()
    assert with_queries.metrics["comm/probe_bytes"] == 4 * 651 * n_clients
    assert with_queries.metrics["comm/up_bytes"] - with_updates.metrics["comm/up_bytes"] == 4 * 650 * n_clients
    assert with_queries.metrics["comp/client_flops"] == pytest.approx(1.5 * with_updates.metrics["comp/client_flops"])
