"""FEEL: the probabilities by hand, where rho leads, and an estimate that is unbiased by enumeration."""

from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from agg_harness import make_update
from config_options import make_component
from fedcohort.selector.feel import (
    Feel,
    State,
    _solve_lagrange_multiplier,
    des_raj_coefficients,
    feel_probabilities,
    impute_update_norms,
    normalise_importance,
)
from fedcohort.types import AggregationOverride, ProbeResult, Selection
from optional_values import not_none
from selector_harness import World, ids, make_context, make_outcome, play_rounds
from signal_kinds import UnimplementedAccess, find_computed, find_reported

NAN, INF = float("nan"), float("inf")
A = np.array([0.5 * 2, 0.3 * 1, 0.2 * 5])  # n_k/n = (.5, .3, .2), ||g|| = (2, 1, 5)
T = np.array([1.0, 2.0, 4.0])
W, G, Q = np.array([0.5, 0.3, 0.2]), np.array([[1.0, 0], [0, 2], [-1, 1]]), np.array([0.2, 0.5, 0.3])
SIGNALS = {"n_train": np.array([50, 30, 20]), "expected_s": 10 * T}


PLAIN: Feel = make_component("selector", "feel")


def find_lagrange_multiplier(a: np.ndarray, T: np.ndarray, rho: float) -> float:
    """Return lambda, which may be negative, from the root s = lambda + rho min T."""
    return _solve_lagrange_multiplier(a, T, rho) - rho * float(T.min())


def feel(**changes: Any) -> Feel:
    return replace(PLAIN, **changes)


def select_clients(norms: list[float], cohort: int = 1, seed: int = 0, **changes: Any) -> tuple[Selection, State]:
    answers = {"grad_norm": ProbeResult(ids(0, 1, 2), np.array(norms))}
    state = State(np.full(3, NAN), np.zeros(3))
    return feel(**changes).select(state, make_context(0, cohort, 3, signals=SIGNALS, seed=seed), answers)


@pytest.mark.parametrize(
    ("rho", "q", "lam"),
    [
        (0.0, [0.43478261, 0.13043478, 0.43478261], 5.29),  # a / 2.3; lambda = 2.3^2
        (0.1, [0.44133699, 0.13099123, 0.42767178], 4.520637),
        (0.5, [0.49265679, 0.13258082, 0.37476239], 1.560066),
        (0.9, [0.72320454, 0.09081759, 0.18597787], -0.708804),  # a solver that assumes lambda >= 0 fails
    ],
)
def test_probabilities_by_hand(rho: float, q: list[float], lam: float) -> None:
    np.testing.assert_allclose(feel_probabilities(A, T, rho), q, atol=5e-9)
    assert find_lagrange_multiplier(A, T, rho) == pytest.approx(lam, abs=5e-7)
    np.testing.assert_allclose(A * np.sqrt((1 - rho) / (rho * T + lam)), q, atol=5e-6)


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.9, 0.999999])
def test_the_probabilities_minimise_the_objective(rho: float) -> None:
    """rho sum q T + (1 - rho) sum a^2 / q is convex: no small step within sum q = 1 makes it smaller."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        a, seconds = rng.random(6) + 0.01, rng.random(6) * 5
        q = feel_probabilities(a, seconds, rho)
        assert q.sum() == pytest.approx(1.0, abs=1e-12)

        def cost(q: np.ndarray, a: np.ndarray = a, seconds: np.ndarray = seconds) -> float:
            return float(rho * (q @ seconds) + (1 - rho) * (a**2 / q).sum())

        for _ in range(10):
            step = rng.standard_normal(6)
            step = (step - step.mean()) * 1e-3 * q.min()
            assert cost(q + step) >= cost(q) * (1 - 1e-12)


def test_with_equal_latencies_only_importance_counts() -> None:
    """With s = rho T + lambda, sum a sqrt((1 - rho) / s) = 1: s = .2 * 2.3^2, and lambda is 5.6 less."""
    np.testing.assert_allclose(feel_probabilities(A, np.full(3, 7.0), 0.8), A / 2.3, rtol=1e-12)
    assert find_lagrange_multiplier(A, np.full(3, 7.0), 0.8) == pytest.approx(0.2 * 2.3**2 - 0.8 * 7, rel=1e-12)


def test_the_scale_of_the_norms_matters_only_in_the_printed_formula() -> None:
    """It cancels for rho = 0; in the formula as printed it changes q otherwise; divided by their sum it can't."""
    np.testing.assert_allclose(feel_probabilities(3 * A, T, 0.0), feel_probabilities(A, T, 0.0), rtol=1e-12)
    assert np.abs(feel_probabilities(3 * A, T, 0.5) - feel_probabilities(A, T, 0.5)).max() > 0.01
    np.testing.assert_allclose(normalise_importance(3 * A), normalise_importance(A), rtol=1e-14)
    np.testing.assert_allclose(normalise_importance(A), A / 2.3)


def test_clients_without_a_valid_norm_are_equally_important() -> None:
    for n in (0, 1, 4):
        assert normalise_importance(np.full(n, NAN)).tolist() == [1 / max(n, 1)] * n


@pytest.mark.parametrize("redraw", ["renormalise", "resolve"])
@pytest.mark.parametrize("rho", [0.1, 0.5, 0.9])
def test_latency_counts_as_much_among_many_as_among_few(rho: float, redraw: str) -> None:
    """Twenty equal clients in place of each one: each has a twentieth of its probability."""
    n, norms, seconds = np.array([50.0, 30.0, 20.0]), np.array([2.0, 1.0, 5.0]), 10 * T
    ratios = []
    for copies in (1, 20):
        signals = {"n_train": np.repeat(n, copies), "expected_s": np.repeat(seconds, copies)}
        K = 3 * copies
        answers = {"grad_norm": ProbeResult(ids(*range(K)), np.repeat(norms, copies))}
        state = State(np.full(K, NAN), np.zeros(K))
        selection, _ = feel(rho=rho, redraw=redraw).select(state, make_context(0, 1, K, signals=signals), answers)
        ratios.append(not_none(selection.probability).reshape(3, copies).sum(axis=1))
    np.testing.assert_allclose(ratios[0], ratios[1], rtol=1e-9)


def test_a_client_twice_as_slow_is_selected_less_often() -> None:
    """a and T with mean 1, rho = .5: sum q = 1 at s = rho T + lambda near .5, q_k near a_k / sqrt(T_k)."""
    seconds = np.repeat([2 / 3, 4 / 3], 25)
    q = feel_probabilities(np.full(50, 0.02), seconds, 0.5)
    assert q[0] / q[-1] == pytest.approx(np.sqrt(2), rel=0.03)


def test_a_selection_scales_importance_by_its_sum_and_time_by_its_mean() -> None:
    """a over 2.3, T over 70 / 3: the scores, which are the probabilities."""
    selection, _ = select_clients([2.0, 1.0, 5.0])
    expected = feel_probabilities(A / 2.3, T / (7 / 3), 0.5)
    np.testing.assert_allclose(not_none(selection.scores), expected, rtol=1e-10)
    np.testing.assert_allclose(not_none(selection.probability), expected, rtol=1e-10)
    np.testing.assert_allclose(selection.score_terms["importance"], A / 2.3)
    np.testing.assert_allclose(selection.score_terms["latency"], T / (7 / 3))


@pytest.mark.parametrize("redraw", ["renormalise", "resolve"])
def test_the_first_draw_follows_the_probabilities(redraw: str) -> None:
    """4 sigma of 500 draws."""
    p = select_clients([2.0, 1.0, 5.0])[0].probability
    assert p is not None
    picks = [select_clients([2.0, 1.0, 5.0], seed=seed, redraw=redraw)[0].clients[0] for seed in range(500)]
    assert (np.abs(np.bincount(picks, minlength=3) / 500 - p) < 4 * np.sqrt(p * (1 - p) / 500)).all()


@pytest.mark.parametrize("redraw", ["renormalise", "resolve"])
def test_the_second_draw_excludes_the_first_client(redraw: str) -> None:
    """Chances q_j / (1 - q_i), or those that solve the two clients' own problem; the weights tell which came first."""
    q = feel_probabilities(A / 2.3, T / (7 / 3), 0.5)
    orders = set()

    def recompute_probabilities(candidates: np.ndarray) -> np.ndarray:
        return feel_probabilities(A[candidates] / A[candidates].sum(), T[candidates] / T[candidates].mean(), 0.5)

    for seed in range(40):
        selection, state = select_clients([2.0, 1.0, 5.0], 2, seed, redraw=redraw)
        for first, second in permutations(selection.clients.tolist()):
            candidates = np.setdiff1d(np.arange(3), [first])
            repeat = (
                q[candidates] / q[candidates].sum() if redraw == "renormalise" else recompute_probabilities(candidates)
            )
            weights = des_raj_coefficients(W[[first, second]], np.array([q[first], repeat[candidates == second][0]]))
            if np.allclose(state.weights[[first, second]], weights, rtol=1e-9):
                orders.add((first, second))
                break
        else:
            pytest.fail(f"{state.weights} belong to no order of {selection.clients}")
    assert len(orders) >= 4


def test_des_raj_is_unbiased_and_inverse_probabilities_are_not() -> None:
    """Every ordered pair with its probability: E = (.3, .8) = sum w g; (1/m) sum w g / q gives something else."""
    des_raj_mean, inverse_mean = np.zeros(2), np.zeros(2)
    for i, j in permutations(range(3), 2):
        pair, draw_probabilities = [i, j], np.array([Q[i], Q[j] / (1 - Q[i])])
        des_raj_mean += draw_probabilities.prod() * (des_raj_coefficients(W[pair], draw_probabilities) @ G[pair])
        inverse_mean += draw_probabilities.prod() * ((W[pair] / Q[pair]) @ G[pair]) / 2
    np.testing.assert_allclose(W @ G, [0.3, 0.8])
    np.testing.assert_allclose(des_raj_mean, [0.3, 0.8], rtol=1e-12)
    np.testing.assert_allclose(inverse_mean, [0.38214286, 0.72857143], atol=5e-9)


def test_des_raj_over_all_clients_counts_each_first_draw_once() -> None:
    """m = 3 of 3: w_i ((3 - i) + 1 / q^(i)) / 3, the last with chance 1."""
    draw_probabilities = np.array([0.2, 0.5 / 0.8, 1.0])
    np.testing.assert_allclose(
        des_raj_coefficients(W, draw_probabilities), [0.5 * (2 + 5) / 3, 0.3 * (1 + 1.6) / 3, 0.2 * 1 / 3]
    )


@pytest.mark.parametrize("redraw", ["renormalise", "resolve"])
def test_the_advice_is_unbiased_over_rounds(redraw: str) -> None:
    """The mean over 500 seeds of sum weights g, within 4 standard errors of (.3, .8)."""
    selector, sums = feel(agg="unbiased", redraw=redraw), []
    for seed in range(500):
        selection, state = select_clients([2.0, 1.0, 5.0], 2, seed, agg="unbiased", redraw=redraw)
        advice, _ = selector.observe(state, make_outcome(0, selection.clients.tolist()))
        assert advice is not None
        assert advice.weights is not None
        assert advice.absolute
        sums.append(advice.weights @ G[selection.clients])
    error = np.std(sums, axis=0) / np.sqrt(500)
    assert (np.abs(np.mean(sums, axis=0) - [0.3, 0.8]) < 4 * error).all()
    assert (error < 0.04).all()


def test_arrived_clients_replace_failed_ones_in_the_weights() -> None:
    selector = feel(agg="unbiased")
    state = State(np.full(4, NAN), np.array([0.4, 0.0, 0.3, 0.5]))
    advice, _ = selector.observe(state, make_outcome(0, [0, 3], failed=[2]))
    assert isinstance(advice, AggregationOverride)
    np.testing.assert_allclose(not_none(advice.weights), [0.4 * 1.2 / 0.9, 0.5 * 1.2 / 0.9])
    assert selector.observe(state, make_outcome(0, [], failed=[0, 2, 3]))[0] is None


def test_without_positive_weights_there_is_no_advice() -> None:
    # Clients 1 and 3 have no samples: no multiple of their weights has the cohort's sum.
    state = State(np.full(4, NAN), np.array([0.4, 0.0, 0.3, 0.0]))
    assert feel(agg="unbiased").observe(state, make_outcome(0, [1, 3], failed=[0, 2]))[0] is None


def test_only_the_unbiased_option_returns_advice() -> None:
    assert feel(agg="unbiased").advises
    assert not feel().advises
    assert feel().observe(State(np.full(3, NAN), W), make_outcome(0, [0, 1]))[0] is None


@pytest.mark.parametrize("invalid_norm", [NAN, INF, -INF, 0.0, -1.0])
def test_a_non_finite_norm_is_never_preferred(invalid_norm: float) -> None:
    for seed in range(20):
        assert select_clients([1.0, invalid_norm, 1.0], 2, seed)[0].clients.tolist() == [0, 2]
    assert len(select_clients([invalid_norm] * 3, 2)[0].clients) == 2
    np.testing.assert_array_equal(normalise_importance(np.full(3, invalid_norm)), np.full(3, 1 / 3))


@pytest.mark.parametrize("invalid_norm", [NAN, 0.0])
def test_a_non_finite_norm_is_not_preferred_for_its_speed(invalid_norm: float) -> None:
    """rho = .999: client 0 is the fastest by far, and has no norm."""
    for seed in range(20):
        assert 0 not in select_clients([invalid_norm, 1.0, 1.0], 2, seed, rho=0.999)[0].clients


def test_all_clients_or_none_are_queried() -> None:
    world = World(available=lambda t: range(t, 12))
    for step in play_rounds(feel(), world, 3):
        (probe,) = step.probes
        assert probe.signal == "grad_norm"
        assert probe.clients.tolist() == step.ctx.available.tolist()
    lag = World()
    assert all(not step.probes for step in play_rounds(feel(importance="update_lag"), lag, 3))
    assert lag.read_signals == {"n_train", "expected_s", "update_norm"}


def test_the_last_update_stands_in_for_the_gradient() -> None:
    """Norms (2, ?, 5): the unknown is their mean."""
    assert impute_update_norms(np.array([2.0, NAN, 5.0])).tolist() == [2.0, 3.5, 5.0]
    assert impute_update_norms(np.array([0.25, NAN, 0.75])).tolist() == [0.25, 0.5, 0.75]
    assert impute_update_norms(np.full(2, NAN)).tolist() == [1.0, 1.0]
    selector = feel(importance="update_lag")
    state = selector.observe(State(np.full(3, NAN), np.zeros(3)), make_outcome(0, [0, 2], update_norm=[2.0, 5.0]))[1]
    np.testing.assert_array_equal(state.update_norms, [2.0, NAN, 5.0])
    selection, _ = selector.select(state, make_context(1, 1, 3, signals=SIGNALS), {})
    expected = feel_probabilities(normalise_importance(W * [2.0, 3.5, 5.0]), T / (7 / 3), 0.5)
    np.testing.assert_allclose(not_none(selection.probability), expected, rtol=1e-10)


def test_shares_are_relative_to_the_available_clients() -> None:
    """Clients 0 and 2 of n = (50, 30, 20), one drawn: the estimate is of (5/7 g_0 + 2/7 g_2)."""
    answers = {"grad_norm": ProbeResult(ids(0, 2), np.array([2.0, 5.0]))}
    ctx = replace(make_context(0, 1, 3, [0, 2], SIGNALS))
    selection, state = feel().select(State(np.full(3, NAN), np.zeros(3)), ctx, answers)
    (client,) = selection.clients
    assert selection.probability is not None
    assert state.weights[client] == pytest.approx({0: 5 / 7, 2: 2 / 7}[int(client)] / selection.probability[client])


@dataclass
class Slope(UnimplementedAccess):
    """as much of a SignalAccess as the signal uses."""

    def gradient(self, client: int) -> Tensor:
        return torch.tensor([3.0, 4.0]) * client


def test_gradient_norms_by_hand() -> None:
    assert find_computed("grad_norm").compute(Slope(), 0, ids(0, 2), {}).tolist() == [0.0, 10.0]
    assert find_computed("grad_norm").passes == 3
    assert find_reported("update_norm").read(make_update(0, [3.0, -4.0])) == 5.0
