"""GreedyFed: values by hand, what is kept of them, S-FedAvg's draw, and the charge of the server's evaluations."""

import itertools
from typing import Any

import numpy as np
import pytest

from config_options import make_component
from fedcohort.types import Population, RoundOutcome
from round_harness import run_without_files
from selector_harness import make_context, make_outcome

N_TRAIN = np.array([30, 10, 20, 40, 50])
START = Population(5, 2, 2, {"n_train": N_TRAIN})


def make_round_outcome(
    round: int, clients: list[int], losses: dict[tuple[int, ...], float], failed: tuple[int, ...] = ()
) -> RoundOutcome:
    """Return a round whose losses are by the members of the mean, which the numbers of samples must weigh."""

    def server_loss(weights: np.ndarray) -> float:
        members = np.flatnonzero(weights)
        samples = N_TRAIN[np.array(clients, int)[members]]
        np.testing.assert_allclose(weights[members], samples / max(samples.sum(), 1))
        return losses[tuple(sorted(np.array(clients, int)[members].tolist()))]

    result = make_outcome(round, clients, failed=failed)
    result.signals["server_loss"] = server_loss  # type: ignore[index]
    return result


def test_values_are_means_of_a_clients_rounds() -> None:
    """Two clients: phi_0 = ((v(0) - v()) + (v(01) - v(1))) / 2 = ((2 - 1.4) + (1.8 - 1.2)) / 2, v = -loss."""
    selector = make_component("selector", "greedyfed")
    state = selector.init(START)
    _, state = selector.observe(
        state, make_round_outcome(0, [0, 1], {(): 2.0, (0,): 1.4, (1,): 1.8, (0, 1): 1.2}, failed=(4,))
    )
    np.testing.assert_allclose(state.value_estimates, [0.6, 0.2, 0, 0, 0])
    _, state = selector.observe(state, make_round_outcome(1, [2, 0], {(): 2.0, (0,): 2.2, (2,): 1.5, (0, 2): 1.7}))
    np.testing.assert_allclose(state.value_estimates, [(0.6 - 0.2) / 2, 0.2, 0.5, 0, 0])
    assert state.participation_rounds.tolist() == [2, 1, 1, 0, 0]
    exponential = make_component("selector", "greedyfed", memory="exp", alpha=0.75)
    first = exponential.observe(exponential.init(START), make_round_outcome(0, [0], {(): 2.0, (0,): 1.4}))[1]
    assert first.value_estimates[0] == pytest.approx(0.6)
    _, state = exponential.observe(state, make_round_outcome(2, [1], {(): 2.0, (1,): 1.0}))
    assert state.value_estimates[1] == pytest.approx(0.75 * 0.2 + 0.25 * 1.0)


def test_clients_without_a_value_come_first_and_then_the_largest_values() -> None:
    selector = make_component("selector", "greedyfed")
    state = selector.init(START)
    _, state = selector.observe(state, make_round_outcome(0, [0, 1], {(): 2.0, (0,): 1.4, (1,): 1.8, (0, 1): 1.2}))
    first = {tuple(selector.select(state, make_context(seed=s), {})[0].clients.tolist()) for s in range(20)}
    assert first == {(2, 3), (2, 4), (3, 4)}
    _, state = selector.observe(state, make_round_outcome(1, [2, 3, 4], {m: 2.0 - (4 in m) for m in subsets(2, 3, 4)}))
    assert selector.select(state, make_context(round=2), {})[0].clients.tolist() == [0, 4]
    ucb = make_component("selector", "greedyfed", exploration=9.0)  # bonus 9 sqrt(ln 4), over sqrt 2 for client 4
    _, state = ucb.observe(state, make_round_outcome(2, [4], {(): 2.0, (4,): 1.0}))
    assert ucb.select(state, make_context(round=3), {})[0].scores[[0, 4]] == pytest.approx(
        [0.6 + 9 * np.log(4) ** 0.5, 1.0 + 9 * (np.log(4) / 2) ** 0.5]
    )


def subsets(*clients: int) -> list[tuple[int, ...]]:
    return [s for k in range(len(clients) + 1) for s in itertools.combinations(clients, k)]


def test_s_fedavg_starts_at_equal_values_and_draws_by_their_exponentials() -> None:
    """.75 x 1/3 + .25 x .3 = .325 by hand. Of values 0, ln 2 and ln 4, one client is drawn with 1/7, 2/7 and 4/7."""
    selector = make_component("selector", "greedyfed", choice="softmax", memory="exp")
    state = selector.init(Population(3, 2, 1, {"n_train": N_TRAIN[:3]}))
    _, state = selector.observe(state, make_round_outcome(0, [0], {(): 2.0, (0,): 1.7}))
    np.testing.assert_allclose(state.value_estimates, [0.325, 1 / 3, 1 / 3])
    state.value_estimates[:] = np.log([1, 2, 4])
    drawn = [
        selector.select(state, make_context(cohort=1, n_clients=3, seed=s), {})[0].clients.tolist()[0]
        for s in range(700)
    ]
    np.testing.assert_allclose(np.bincount(drawn) / 700, [1 / 7, 2 / 7, 4 / 7], atol=0.06)


def test_the_order_of_arrival_does_not_change_permutations() -> None:
    selector = make_component("selector", "greedyfed", exact=0, permutations=1)
    state: Any = selector.select(selector.init(START), make_context(), {})[1]
    losses = {m: 3.0 - len(m) ** 0.5 - 0.1 * sum(m) for m in subsets(0, 1, 3, 4)}
    first, second = (
        selector.observe(state, make_round_outcome(0, order, losses))[1] for order in ([0, 1, 3, 4], [4, 1, 0, 3])
    )
    np.testing.assert_array_equal(first.value_estimates, second.value_estimates)


def test_evaluations_are_charged_to_the_server() -> None:
    """A cohort of four has 2^4 coalitions; a pass of logistic regression on 8 x 8 digits is 2 * 64 * 10 FLOPs."""
    run = run_without_files("selector=greedyfed", "rounds=2")
    n_val = round(run.last.metrics["comp/server_flops"] / (2 * 16 * 2 * 64 * 10))
    assert n_val > 10
    assert [report.metrics["comp/server_flops"] for report in run.reports] == [
        step * 16 * n_val * 2 * 64 * 10 for step in range(3)
    ]
