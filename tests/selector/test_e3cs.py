"""E3CS: the capped probabilities by hand, weights after a round, and a draw with exactly these probabilities."""

from typing import Any

import numpy as np
import pytest

from config_options import make_typed
from fedcohort.selector.e3cs import E3cs, State, capped_probabilities, draw_systematically
from fedcohort.types import Population
from optional_values import not_none
from selector_harness import World, make_context, make_outcome, play_rounds

W = np.array([1.0, 1.0, 20.0, 1.0])
CAPPED = np.array([1 / 3, 1 / 3, 1.0, 1 / 3])


def e3cs(**changes: Any) -> E3cs:
    return make_typed(E3cs, "selector", "e3cs", **changes)


def state_of(w: np.ndarray) -> State:
    return State(np.log(w / w.max()), np.zeros(len(w)))


@pytest.mark.parametrize(
    ("w", "m", "sigma", "p", "capped"),
    [
        ([1, 2, 10, 1], 2, 0.25, [0.32142857, 0.39285714, 0.96428571, 0.32142857], []),  # .25 + w / 14
        ([1, 1, 20, 1], 2, 0.25, [1 / 3, 1 / 3, 1, 1 / 3], [2]),  # .25 + 20 / 23 > 1; the others share 1 - 3 .25
        ([1, 30, 20, 1, 1], 3, 0.1, [1 / 3, 1, 1, 1 / 3, 1 / 3], [1, 2]),  # with client 1 alone, client 2 has 1.37
        ([1, 2, 3, 4], 2, 0.5, [0.5] * 4, []),
        ([1, 2, 3], 3, 0.2, [1, 1, 1], [0, 1, 2]),
    ],
)
def test_probabilities_by_hand(w: list[float], m: int, sigma: float, p: list[float], capped: list[int]) -> None:
    probability, is_capped = capped_probabilities(np.array(w, float), m, sigma)
    np.testing.assert_allclose(probability, p, atol=5e-9)
    assert np.flatnonzero(is_capped).tolist() == capped


def test_probabilities_sum_to_m_and_are_those_of_a_capped_weight() -> None:
    """For random weights: sigma <= p <= 1, and p = sigma + (m - n sigma) min(w, a) / sum min(w, a) for one a."""
    rng = np.random.default_rng(0)
    for _ in range(100):
        n = int(rng.integers(2, 12))
        m = int(rng.integers(1, n))
        w, sigma = np.exp(5 * rng.standard_normal(n)), float(rng.random() * m / n)
        p, is_capped = capped_probabilities(w, m, sigma)
        assert p.sum() == pytest.approx(m)
        assert (p >= sigma - 1e-12).all()
        assert (p <= 1).all()
        k = int(np.argmin(w))
        a = w[k] * (1 - sigma) / (p[k] - sigma) if is_capped.any() else np.inf
        assert (w[is_capped] >= a * (1 - 1e-6)).all()
        capped = np.minimum(w, a)
        np.testing.assert_allclose(p, sigma + (m - n * sigma) * capped / capped.sum(), rtol=1e-6)


def test_log_weights_after_a_round_by_hand() -> None:
    """sigma = .25, so that (m - K sigma) eta / (K p_0) = 1 .5 3 / 4: w_0 = e^.375. Client 2 is capped."""
    selector = e3cs()
    rounds = [selector.select(state_of(W), make_context(cohort=2, n_clients=4, seed=seed), {}) for seed in range(20)]
    selection, state = next((chosen, after) for chosen, after in rounds if chosen.clients.tolist() == [0, 2])
    np.testing.assert_allclose(not_none(selection.probability), CAPPED, rtol=1e-12)
    after = selector.observe(state, make_outcome(0, [0, 2]))[1]
    np.testing.assert_allclose(20 * np.exp(after.log_weights), [1.45499141, 1, 20, 1], atol=1e-8)
    after_failure = selector.observe(state, make_outcome(0, [2], failed=[0]))[1]
    np.testing.assert_allclose(20 * np.exp(after_failure.log_weights), W, rtol=1e-12)


@pytest.mark.parametrize(("start", "chosen"), [(0.1, [0, 2]), (0.5, [1, 2]), (0.9, [2, 3]), (1.0, [2, 3])])
def test_a_systematic_draw_by_hand(start: float, chosen: list[int]) -> None:
    """The clients' ends on the line are 1/3, 2/3, 5/3 and 2."""
    assert draw_systematically(CAPPED, 2, start).tolist() == chosen


def test_systematic_draws_are_distinct_whatever_the_rounding() -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        n = int(rng.integers(1, 30))
        m = int(rng.integers(1, n + 1))
        p, _ = capped_probabilities(np.exp(9 * rng.standard_normal(n)), m, 0.0)
        for start in (1e-300, float(rng.random()), 1.0):
            chosen = draw_systematically(p, m, start)
            assert len(np.unique(chosen)) == m
            assert 0 <= chosen.min() <= chosen.max() < n


@pytest.mark.parametrize(
    ("draw", "inclusion"),
    [("exact", [0.25, 0.25, 0.5, 1.0]), ("multinomial", [0.30952381, 0.30952381, 0.57142857, 0.80952381])],
)
def test_draws_have_the_stated_inclusion_probabilities(draw: str, inclusion: list[float]) -> None:
    """Of p = (.25, .25, .5, 1), with quota 0: a successive draw leaves the certain client out at times. 4 sigma."""
    selector, state = e3cs(draw=draw, quota=0.0), state_of(np.array([0.25, 0.25, 0.5, 1.0]))
    chosen = [
        selector.select(state, make_context(cohort=2, n_clients=4, seed=seed), {})[0].clients for seed in range(1500)
    ]
    share = np.bincount(np.concatenate(chosen), minlength=4) / 1500
    p = np.array(inclusion)
    assert (np.abs(share - p) <= 4 * np.sqrt(p * (1 - p) / 1500)).all()


@pytest.mark.parametrize("options", [{"quota": 1.0}, {"quota": 0.0, "uniform_from": 0}])
def test_a_full_quota_is_uniform_and_learns_nothing(options: dict[str, Any]) -> None:
    steps = play_rounds(e3cs(**options), World(find_failing=lambda t, cohort: cohort[:1]), 30)
    for step in steps:
        np.testing.assert_allclose(not_none(step.selection.probability), 3 / 12, rtol=1e-12)
    assert not steps[-1].after.log_weights.any()


def test_the_quota_may_begin_later() -> None:
    selector = e3cs(quota=0.0, uniform_from=5)
    for round, expected in ((4, [0.25, 0.25, 0.5, 1.0]), (5, [0.5] * 4)):
        ctx = make_context(round, cohort=2, n_clients=4)
        p = selector.select(state_of(np.array([1.0, 1.0, 2.0, 4.0])), ctx, {})[0].probability
        np.testing.assert_allclose(not_none(p), expected, rtol=1e-12)


def test_probabilities_are_of_the_available_clients() -> None:
    """m = 2 of clients 0, 1 and 3, with equal weights: sigma = 1/3, and the rest is shared equally."""
    selection, state = e3cs().select(state_of(W), make_context(cohort=2, n_clients=4, available=[0, 1, 3]), {})
    np.testing.assert_allclose(not_none(selection.probability), [2 / 3, 2 / 3, 0, 2 / 3], rtol=1e-12)
    np.testing.assert_allclose(state.log_weight_gain[selection.clients], 0.25, rtol=1e-12)  # (2 - 1) .5 / (3 2/3)


def test_reliable_clients_are_selected_more_often() -> None:
    """Half of the clients never return; the quota leaves each at least .5 x 3 / 12 of the rounds."""
    steps = play_rounds(e3cs(), World(find_failing=lambda t, cohort: cohort[cohort < 6]), 200)
    p = not_none(steps[-1].selection.probability)
    assert p[6:].sum() > 2 * p[:6].sum()
    assert p.min() >= 0.125 - 1e-12


def test_extreme_weights_leave_every_client_a_probability() -> None:
    state = State(np.array([0.0, -1e6, -1e6, -3.0]), np.zeros(4))
    selection, after = e3cs(quota=0.0).select(state, make_context(cohort=2, n_clients=4), {})
    assert not_none(selection.probability).min() > 0
    assert np.isfinite(after.log_weight_gain).all()
    assert e3cs().init(Population(3, 2, 2, {})).log_weights.tolist() == [0, 0, 0]
