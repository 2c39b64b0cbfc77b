"""AFL's closed forms."""

import numpy as np
import pytest

from agg_harness import collect_updates, make_arrived, make_population, make_update
from config_options import make_component
from fedcohort.agg.afl import State
from fedcohort.component import CLEAN_LABELS
from fedcohort.round.arrivals import replace_update_weights
from loss_weighting_harness import aggregate_losses, loss_weights
from optional_values import not_none


@pytest.mark.parametrize(
    ("before", "losses", "gamma", "expected"),
    [
        ([0.5, 0.5], [1.0, 3.0], 0.1, [0.4, 0.6]),  # (.6, .8), .2 each too much
        ([0.5, 0.5], [1.0, 13.0], 0.1, [0.0, 1.0]),  # (.6, 1.8)
        ([0.2, 0.3, 0.5], [0.0, 0.0, 10.0], 0.1, [0.0, 0.0, 1.0]),
        ([0.2, 0.3, 0.5], [4.0, 1.0, 9.0], 0.0, [0.2, 0.3, 0.5]),
    ],
)
def test_the_mixture_increases_with_the_losses(
    before: list[float], losses: list[float], gamma: float, expected: list[float]
) -> None:
    _, after = aggregate_losses(make_component("agg", "afl", gamma=gamma), losses, state=State(np.array(before)))
    np.testing.assert_allclose(after.mixture, expected, atol=1e-12)


def test_the_round_is_aggregated_with_the_old_mixture() -> None:
    agg = make_component("agg", "afl", gamma=0.1)
    direction, state = aggregate_losses(agg, [1.0, 3.0], [[1.0], [-1.0]])
    assert float(direction.displacement) == 0.0
    assert float(aggregate_losses(agg, [1.0, 3.0], [[1.0], [-1.0]], state=state)[0].displacement) == pytest.approx(-0.2)


def test_only_arrived_clients_update_their_weight() -> None:
    # 1/4 each; + .1 (1, 3) for clients 0 and 2: (.35, .25, .55, .25), .1 each too much
    _, state = aggregate_losses(make_component("agg", "afl", gamma=0.1), [1.0, 3.0], clients=[0, 2], n_clients=4)
    np.testing.assert_allclose(state.mixture, [0.25, 0.15, 0.45, 0.15], atol=1e-12)
    # of clients 1 and 2: .15 : .45
    np.testing.assert_allclose(
        loss_weights(make_component("agg", "afl"), [1.0, 1.0], clients=[1, 2], state=state), [0.25, 0.75]
    )


def test_the_unbiased_option_updates_unselected_clients_too() -> None:
    # N / m = 2: + .2 (1, 3): (.45, .25, .85, .25), .2 each too much
    _, state = aggregate_losses(
        make_component("agg", "afl", gamma=0.1, unbiased=True), [1.0, 3.0], clients=[0, 2], n_clients=4
    )
    np.testing.assert_allclose(state.mixture, [0.25, 0.05, 0.65, 0.05], atol=1e-12)


def test_without_positive_weights_the_direction_is_a_mean() -> None:
    agg = make_component("agg", "afl", gamma=0.1)
    direction, after = aggregate_losses(agg, [1.0, 2.0], [[1.0], [3.0]], state=State(np.array([0.0, 0.0, 1.0])))
    assert float(direction.displacement) == pytest.approx(2.0)
    # (.1, .2, 1): .1 each too much
    np.testing.assert_allclose(after.mixture, [0.0, 0.1, 0.9], atol=1e-12)


@pytest.mark.parametrize(
    ("mixture", "expected"),
    [
        ([0.9e-12, 0.3e-12, 1.0], [0.75, 0.25]),  # together above 1e-12: in their proportions
        ([1e-12, 0.0, 1.0], [0.5, 0.5]),  # 1e-12 is still rounding: a mean
    ],
)
def test_a_mixture_below_rounding_error_counts_as_zero(mixture: list[float], expected: list[float]) -> None:
    np.testing.assert_allclose(
        loss_weights(make_component("agg", "afl"), [1.0, 1.0], state=State(np.array(mixture))), expected
    )


def test_advised_weights_multiply_the_mixture() -> None:
    # lambda (.5, .25, .25), advised shares (.2, .2, .6): (.1, .05, .15) / .3
    agg = make_component("agg", "afl")
    rows = replace_update_weights(
        collect_updates(agg, [make_update(k, [0.0]) for k in range(3)]), np.array([1.0, 1.0, 3.0])
    )
    direction, _ = agg.direction(
        State(np.array([0.5, 0.25, 0.25])), make_arrived(rows, {"loss": np.ones(3)}, agg.needs)
    )
    np.testing.assert_allclose(direction.weights, [1 / 3, 1 / 6, 1 / 2], atol=1e-12)


def test_the_mixture_converges_to_the_worst_client() -> None:
    agg, state = make_component("agg", "afl", gamma=0.5), None
    for _ in range(30):
        _, state = aggregate_losses(agg, [1.0, 1.1, 0.3], state=state)
        assert state.mixture.sum() == pytest.approx(1, abs=1e-12)
    np.testing.assert_allclose(not_none(state).mixture, [0, 1, 0], atol=1e-12)


@pytest.mark.parametrize(("unbiased", "scale"), [(False, 1.0), (True, 2.0)])
def test_the_gain_of_a_false_loss_is_bounded_as_documented(unbiased: bool, scale: float) -> None:
    # honest losses of 2, cap 1.5: .05 * 1.5 * 2 = .15 a round, twice that if unbiased (five of ten arrive)
    state, reported = None, [2.0] * 4 + [1e9]
    agg = make_component("agg", "afl", loss_cap=1.5, unbiased=unbiased)
    for _ in range(4):
        before = 0.1 if state is None else state.mixture[4]
        _, state = aggregate_losses(agg, reported, state=state, n_clients=10)
        assert state.mixture[4] <= before + 0.15 * scale + 1e-12
    _, unbounded = aggregate_losses(make_component("agg", "afl", unbiased=unbiased), reported, n_clients=10)
    assert unbounded.mixture[4] == pytest.approx(1.0)


def test_the_initial_weights_are_equal_and_sum_to_one() -> None:
    (weights,) = vars(make_component("agg", "afl").init(make_population(4), 1)).values()
    assert weights.tolist() == [0.25] * 4


@pytest.mark.parametrize(("gamma", "recommendations"), [(0.0, False), (0.01, True), (2.0, True)])
def test_weights_by_loss_recommend_clean_labels(gamma: float, recommendations: bool) -> None:
    assert (CLEAN_LABELS in make_component("agg", "afl", gamma=gamma).recommendations) == recommendations
