"""q-FedAvg's closed forms."""

from pathlib import Path

import numpy as np
import pytest

from agg_harness import collect_updates, make_arrived, make_update
from config_options import make_component
from fedcohort.errors import IncompatibleConfig
from loss_weighting_harness import LR, aggregate_losses, loss_weights
from round_harness import run_without_files
from run_harness import run_training

D = [[-0.1, 0.0], [0.0, -0.2]]


@pytest.mark.parametrize(
    ("q", "expected"),
    [
        # L = 10: g = (1, 0), (0, 2), |g|^2 = 1, 4; F = 1, 2
        (0.0, [-0.05, -0.1]),  # h = (10, 10)
        (1.0, [-1 / 35, -4 / 35]),  # h = 1 + 10, 4 + 20 (not squared: 11, 22); sum F g = (1, 4)
        (2.0, [-1 / 68, -8 / 68]),  # h = 2 + 10, 2 * 2 * 4 + 40; sum F^2 g = (1, 8)
    ],
)
@pytest.mark.parametrize("lipschitz", [None, 1 / LR])
def test_the_direction_of_q_ffl_by_hand(q: float, expected: list[float], lipschitz: float | None) -> None:
    direction, _ = aggregate_losses(make_component("agg", "qffl", q=q, lipschitz=lipschitz), [1.0, 2.0], D)
    np.testing.assert_allclose(direction.displacement, expected, rtol=1e-8)


def test_the_weights_are_those_of_the_direction() -> None:
    direction, _ = aggregate_losses(make_component("agg", "qffl", q=1.0), [1.0, 2.0], D)
    np.testing.assert_allclose(direction.weights @ np.array(D), direction.displacement, rtol=1e-12)


@pytest.mark.parametrize("rates", [[0.1, 0.05], [0.05, 0.1]])
def test_late_updates_have_the_learning_rate_of_the_newest(rates: list[float]) -> None:
    """L = 20 whichever client is late: g = (2, 0), (0, 4); h = 4 + 20, 16 + 40; sum F g = (2, 8)."""
    agg = make_component("agg", "qffl", q=1.0)
    collected = collect_updates(agg, [make_update(k, delta) for k, delta in enumerate(D)])
    signals = {"loss": np.array([1.0, 2.0]), "lr": np.array(rates)}
    direction, _ = agg.direction(None, make_arrived(collected, signals, agg.needs))
    np.testing.assert_allclose(direction.displacement, [-2 / 80, -8 / 80], rtol=1e-8)


def test_weights_can_be_multiplied_by_sample_counts() -> None:
    # p = 1/4, 3/4: sum p F g = (1/4, 3), sum p h = 11/4 + 72/4
    direction, _ = aggregate_losses(
        make_component("agg", "qffl", q=1.0, weighting="samples"), [1.0, 2.0], D, samples=[1, 3]
    )
    np.testing.assert_allclose(direction.displacement, [-0.25 / 20.75, -3 / 20.75], rtol=1e-8)


def test_large_powers_do_not_overflow() -> None:
    # F^8 = 1e320: the first term of h is 1e-40 of the second, so the weights are 1 : 2^8
    w = loss_weights(make_component("agg", "qffl", q=8.0), [1e40, 2e40], deltas=D)
    np.testing.assert_allclose(w, [1 / 257, 256 / 257], rtol=1e-9)


def test_losses_of_zero_give_a_vanishing_step() -> None:
    # F = 1e-10 each: h = g^2 + L F, with q = 1; the step all but vanishes, as printed
    direction, _ = aggregate_losses(make_component("agg", "qffl", q=1.0), [0.0, 0.0], [[1.0], [1.0]])
    assert float(direction.displacement) == pytest.approx(2 * 1e-10 * 10 / (2 * (100 + 1e-9)), rel=1e-9)
    result, _ = aggregate_losses(make_component("agg", "qffl", q=0.005), [0.0, 0.0], [[0.0], [0.0]])
    assert float(result.displacement) == 0


@pytest.mark.parametrize("claim", [10.0, 1e3, 1e12])
def test_the_gain_of_a_false_loss_is_bounded_as_documented(claim: float) -> None:
    # honest losses of 2, q = 2, cap 3: (3 * 2 / 2)^2 = 9 times an honest weight
    reported = [2.0] * 4 + [claim]
    capped = loss_weights(make_component("agg", "qffl", q=2.0, loss_cap=3.0), reported)
    assert (capped[-1] / capped[:-1] <= 9 + 1e-8).all()
    uncapped_weights = loss_weights(make_component("agg", "qffl", q=2.0), reported)
    assert uncapped_weights[-1] / uncapped_weights[0] > 9


def test_the_constant_must_be_set_with_adam(tmp_path: Path) -> None:
    with pytest.raises(IncompatibleConfig, match=r"agg=qffl uses 1 / client.lr .* set agg.lipschitz"):
        run_training(tmp_path, "agg=qffl", "client=adam")
    assert make_component("agg", "qffl").needs == {"loss", "lr"}
    assert make_component("agg", "qffl", lipschitz=1.0).needs == {"loss"}
    run = run_without_files("agg=qffl", "client=adam", "agg.lipschitz=100", "rounds=1")
    assert np.isfinite(run.weights()).all()


def test_the_learning_rate_of_the_round_is_used() -> None:
    overrides = ("agg=qffl", "agg.q=1", "client.lr=0.1", "client.milestones=[1]", "client.factor=0.1", "rounds=2")
    assert run_without_files(*overrides).last.clients["signal_lr"][
        run_without_files(*overrides).last.arrived
    ] == pytest.approx(0.01)


def test_weights_use_cross_entropy_for_every_objective() -> None:
    # q = 1: weights are as F_i to F_j
    run = run_without_files("agg=qffl", "agg.q=1", "rounds=1", "selector=full", "objective=propfair")
    weight, F = run.last.clients["weight"], run.reports[0].clients["loss"]
    np.testing.assert_allclose(weight / weight.sum(), F / F.sum(), rtol=1e-6)


def test_very_different_losses_do_not_overflow() -> None:
    """(1e90)^5 is no float64; as shares of the largest loss their powers are 0 and 1."""
    weights = loss_weights(make_component("agg", "qffl", q=5.0), [0.0, 1e90])
    assert np.isfinite(weights).all()
    assert weights[0] == pytest.approx(0.0, abs=1e-12)
    assert weights[1] > 0
