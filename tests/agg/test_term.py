"""TERM's closed forms."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from config_options import make_component
from fedcohort.agg.term import State
from fedcohort.errors import OptionError
from loss_weighting_harness import aggregate_losses, loss_weights
from optional_values import not_none
from run_harness import run_training

LN3 = float(np.log(3))


@pytest.mark.parametrize(
    ("tilt", "losses", "samples", "expected"),
    [
        (1.0, [0.0, LN3], [1, 1], [0.25, 0.75]),  # 1 : 3
        (1.0, [0.0, LN3], [3, 1], [0.5, 0.5]),  # 3 * 1 : 1 * 3
        (-1.0, [0.0, LN3], [1, 1], [0.75, 0.25]),
        (1.0, [1000.0, 1001.0], [1, 1], [1 / (1 + np.e), np.e / (1 + np.e)]),
        (2.0, [7.0, 7.0], [3, 1], [0.75, 0.25]),  # equal losses: the weights of FedAvg
        (0.0, [1.0, 9.0], [3, 1], [0.75, 0.25]),
    ],
)
def test_the_tilted_weights_by_hand(
    tilt: float, losses: list[float], samples: list[int], expected: list[float]
) -> None:
    weights = loss_weights(make_component("agg", "term", tilt=tilt, weighting="samples"), losses, samples=samples)
    np.testing.assert_allclose(weights, expected, atol=1e-12)


def test_clients_have_equal_base_weights_by_default() -> None:
    np.testing.assert_allclose(
        loss_weights(make_component("agg", "term", tilt=1.0), [0.0, LN3], samples=[9, 1]), [0.25, 0.75]
    )


@pytest.mark.parametrize("claim", [10.0, 1e3, 1e12])
def test_the_gain_of_a_false_loss_is_bounded_as_documented(claim: float) -> None:
    # honest losses of 1, 2, 3, 2, cap 2, t = .5: e^(.5 * 2 * 2) times any honest weight
    reported = [1.0, 2.0, 3.0, 2.0, claim]
    capped = loss_weights(make_component("agg", "term", tilt=0.5, loss_cap=2.0), reported)
    assert (capped[-1] / capped[:-1] <= np.exp(2.0)).all()
    uncapped_weights = loss_weights(make_component("agg", "term", tilt=0.5), reported)
    assert uncapped_weights[-1] > np.exp(2.0) * uncapped_weights[0]


def test_with_a_negative_tilt_negative_losses_count_as_zero() -> None:
    agg = make_component("agg", "term", tilt=-1.0)
    np.testing.assert_array_equal(loss_weights(agg, [-1e9, 1.0, 2.0]), loss_weights(agg, [0.0, 1.0, 2.0]))


def rounds(agg: Any, *losses_of_rounds: list[float], **options: Any) -> tuple[np.ndarray, State]:
    """The last round's weights, and the state after it."""
    state = None
    for claims in losses_of_rounds:
        direction, state = aggregate_losses(agg, claims, state=state, **options)
    return not_none(direction.weights), not_none(state)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("s", [0.001, 0.5, 0.999])
def test_smoothing_does_not_change_the_first_round(s: float) -> None:
    plain, smooth = (make_component("agg", "term", tilt=1.0, smoothing=smoothing) for smoothing in (None, s))
    np.testing.assert_array_equal(loss_weights(smooth, [0.0, LN3, 700.0]), loss_weights(plain, [0.0, LN3, 700.0]))


@pytest.mark.parametrize(
    ("s", "expected"),
    [
        # Z = (1 + 3) / 2 = 2, then (1 + 7) / 2 = 4; c = 1 / (1 + s), so that Z^ = (2 s + 4) / (1 + s)
        (0.5, [0.15, 1.05]),  # Z^ = 10/3, and p e^F = 1/2, 7/2
        (0.25, [0.5 / 3.6, 3.5 / 3.6]),  # Z^ = 4.5 / 1.25
    ],
)
def test_the_running_normaliser_of_two_rounds_by_hand(s: float, expected: list[float]) -> None:
    displacement, state = rounds(make_component("agg", "term", tilt=1.0, smoothing=s), [0.0, LN3], [0.0, np.log(7)])
    np.testing.assert_allclose(displacement, expected, atol=1e-12)
    assert (np.exp(state.log_mean), state.n_rounds) == (pytest.approx(3.5 / expected[1]), 2)


def test_the_running_normaliser_is_bias_corrected() -> None:
    # A <- s A + (1 - s) Z from A = 0, and Z^ = A / (1 - s^r)
    agg, s, A, state = make_component("agg", "term", tilt=2.0, smoothing=0.8), 0.8, 0.0, None
    rng = np.random.default_rng(0)
    for r in range(1, 12):
        F = rng.uniform(0, 3, 4)
        direction, state = aggregate_losses(agg, F.tolist(), state=state)
        A = s * A + (1 - s) * np.exp(2 * F).mean()
        np.testing.assert_allclose(not_none(direction.weights), np.exp(2 * F) / 4 / (A / (1 - s**r)), rtol=1e-10)


def test_rising_losses_lengthen_a_step_by_at_most_the_bound() -> None:
    # r = 3: (1 - s^3) / (1 - s) = 1.75, and 1 / (1 - s) = 2 in the end
    agg = make_component("agg", "term", tilt=1.0, smoothing=0.5)
    displacement, state = rounds(agg, [1.0, 1.0], [1.0, 1.0], [1e6, 1e6])
    assert displacement.sum() == pytest.approx(1.75, abs=1e-9)
    assert np.isfinite(state.log_mean)
    # and those that fall shorten it: e^-1000 of 1
    assert rounds(agg, [1000.0, 1000.0], [0.0, 0.0])[0].sum() < 1e-300


def test_smoothing_has_no_effect_with_constant_losses_or_no_tilt() -> None:
    smoothed = make_component("agg", "term", tilt=1.0, smoothing=0.9)
    assert rounds(smoothed, [1.0, 2.0], [1.0, 2.0], [2.0, 1.0])[0].sum() == pytest.approx(1.0, abs=1e-12)
    mean = make_component("agg", "term", tilt=0.0, smoothing=0.9)
    np.testing.assert_allclose(rounds(mean, [1.0, 2.0], [9.0, 0.0])[0], [0.5, 0.5], atol=1e-12)


def test_a_round_without_finite_losses_keeps_the_normaliser() -> None:
    agg = make_component("agg", "term", tilt=1.0, smoothing=0.5)
    _, before = aggregate_losses(agg, [0.0, LN3])
    _, after = aggregate_losses(agg, [np.nan, np.inf], state=before)
    assert after == before
    assert (before.log_mean, before.n_rounds) == (pytest.approx(np.log(2)), 1)


def test_without_smoothing_there_is_no_state() -> None:
    agg = make_component("agg", "term", tilt=1.0)
    displacement, state = rounds(agg, [5.0, 9.0], [0.0, LN3])
    np.testing.assert_allclose(displacement, [0.25, 0.75], atol=1e-12)
    assert state == State(0.0, 0)


def test_a_resumed_run_keeps_its_normaliser(tmp_path: Path) -> None:
    overrides = ("agg=term", "agg.tilt=1", "agg.smoothing=0.5", "client.lr=0.02")
    uninterrupted = run_training(tmp_path / "whole", *overrides, "rounds=3")
    run_training(tmp_path / "parts", *overrides, "rounds=2")
    resumed = run_training(tmp_path / "parts", *overrides, "rounds=3", "resume=true")
    assert resumed.last.fingerprint == uninterrupted.last.fingerprint
    weight = uninterrupted.last.clients["weight"][uninterrupted.last.arrived]
    assert weight.sum() < 0.999  # losses fall, and the normaliser remembers them higher


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("name", "option"), [("term", "tilt"), ("fedmaba", "eta")])
def test_the_largest_step_of_a_loss_gives_finite_weights(name: str, option: str) -> None:
    """A larger factor of the losses overflows, which made all weights NaN in every round."""
    weights = loss_weights(make_component("agg", name, **{option: 1e30}), [1.0, 20.0])
    assert np.isfinite(weights).all()
    with pytest.raises(OptionError, match=f"{option} must be a number in .*1e30.*got 1e[+]?300"):
        make_component("agg", name, **{option: 1e300})
