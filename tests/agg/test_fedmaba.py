"""FedMABA's closed forms; the root itself is tested with `maths/kl_ball.py`."""

import numpy as np
import pytest

from config_options import make_component
from fedcohort.agg.fedmaba import FULL_PARTICIPATION_REQUIREMENT, State
from fedcohort.component import CLEAN_LABELS, UNADVISED_WEIGHTS
from loss_weighting_harness import aggregate_losses, loss_weights
from optional_values import not_none
from round_harness import run_without_files

LN9 = float(np.log(9))


def test_inside_the_ball_weights_are_exponential() -> None:
    # e^(F/2) for F = 1, 2, 3, 4, normalised: KL from equal weights is .15 < rho = 1
    w = loss_weights(make_component("agg", "fedmaba", alpha=1.0), [1.0, 2.0, 3.0, 4.0])
    np.testing.assert_allclose(w, [0.1015363, 0.1674051, 0.2760043, 0.4550542], atol=1e-7)


def test_a_small_ball_limits_the_weights() -> None:
    w = loss_weights(make_component("agg", "fedmaba", eta=1.0, alpha=1.0, rho=0.5), [0.0, 0.0, 0.0, 10.0])
    np.testing.assert_allclose(w, [0.0910245886] * 3 + [0.7269262342], atol=1e-9)
    assert (w * np.log(4 * w)).sum() == pytest.approx(0.5, abs=1e-9)


def test_half_of_the_direction_is_a_mean() -> None:
    # F = (0, ln 9): p^ = (.1, .9); .5 p^ + .25 = (.3, .7); D = (1, -1) moves by -.4
    agg = make_component("agg", "fedmaba", eta=1.0, alpha=0.5)
    direction, _ = aggregate_losses(agg, [0.0, LN9], [[1.0], [-1.0]])
    np.testing.assert_allclose(not_none(direction.weights), [0.3, 0.7], atol=1e-12)
    assert float(direction.displacement) == pytest.approx(-0.4, abs=1e-12)


def test_the_mean_can_be_weighted_by_samples() -> None:
    # by samples 1 and 3: .5 (.1, .9) + .5 (.25, .75)
    agg = make_component("agg", "fedmaba", eta=1.0, alpha=0.5, weighting="samples")
    np.testing.assert_allclose(loss_weights(agg, [0.0, LN9], samples=[1, 3]), [0.175, 0.825], atol=1e-12)


@pytest.mark.parametrize(
    ("sync", "p", "later"),
    [
        # those who arrived had .5 together, and keep it; next clients 1 and 2 stand .45 : .25
        ("mass", [0.05, 0.45, 0.25, 0.25], [0.45 / 0.7, 0.25 / 0.7]),
        ("literal", [0.1, 0.9, 0.25, 0.25], [0.9 / 1.15, 0.25 / 1.15]),
    ],
)
def test_the_state_after_a_round_by_hand(sync: str, p: list[float], later: list[float]) -> None:
    agg = make_component("agg", "fedmaba", eta=1.0, alpha=1.0, sync=sync)
    _, state = aggregate_losses(agg, [0.0, LN9], n_clients=4)
    np.testing.assert_allclose(state.p, p, atol=1e-12)
    direction, after = aggregate_losses(agg, [1.0, 1.0], clients=[1, 2], state=state)
    np.testing.assert_allclose(not_none(direction.weights), later, atol=1e-12)
    mass = p[1] + p[2] if sync == "mass" else 1.0
    np.testing.assert_allclose(after.p, [p[0], later[0] * mass, later[1] * mass, p[3]], atol=1e-12)


def test_losses_accumulate_over_rounds() -> None:
    # twice eta F = ln 3 is ln 9
    agg = make_component("agg", "fedmaba", eta=1.0, alpha=1.0)
    _, state = aggregate_losses(agg, [0.0, LN9 / 2])
    np.testing.assert_allclose(loss_weights(agg, [0.0, LN9 / 2], state=state), [0.1, 0.9], atol=1e-12)


def test_with_radius_zero_the_direction_is_a_mean() -> None:
    np.testing.assert_allclose(
        loss_weights(make_component("agg", "fedmaba", rho=0), [1.0, 9.0, 4.0]), np.full(3, 1 / 3), atol=1e-12
    )


def test_a_weight_that_underflows_is_no_error() -> None:
    agg = make_component("agg", "fedmaba", alpha=1.0, rho=5.0)
    w = loss_weights(agg, [1.0, 1.0], state=State(np.array([0.0, 1.0])))
    assert np.isfinite(w).all()
    assert w.sum() == pytest.approx(1)
    w = loss_weights(agg, [1.0, 1.0], state=State(np.array([0.0, 0.0, 1.0])))
    np.testing.assert_allclose(w, [0.5, 0.5])


@pytest.mark.parametrize("claim", [10.0, 1e3, 1e12])
def test_the_gain_of_a_false_loss_is_bounded_as_documented(claim: float) -> None:
    # n = 10, nine honest losses of 2: x = eta cap median = .5 * 2 * 2 = 2
    reported = [2.0] * 9 + [claim]
    x, alpha, n = 2.0, 0.8, 10
    limit = alpha * np.exp(x) / (np.exp(x) + n - 1) + (1 - alpha) / n
    capped = loss_weights(make_component("agg", "fedmaba", alpha=alpha, loss_cap=2.0), reported)
    assert capped[-1] <= limit
    # gains e^(eta (4 - 2)) only, since the honest lose too
    assert capped[-1] == pytest.approx(alpha * np.e / (np.e + 9) + 0.02, abs=1e-12)
    assert loss_weights(make_component("agg", "fedmaba", alpha=alpha), reported)[-1] > limit


def test_a_false_loss_changes_the_odds_by_at_most_the_bound_per_round() -> None:
    agg = make_component("agg", "fedmaba", alpha=1.0, rho=0.7, loss_cap=1.5)
    rng = np.random.default_rng(0)
    state = None
    before = np.zeros(6)
    for _ in range(8):
        honest = rng.uniform(0.5, 2, 6)
        _, state = aggregate_losses(agg, [*honest, 10 ** rng.uniform(0, 9)], state=state)
        x = 0.5 * 1.5 * np.median([*honest, np.inf])
        odds = np.log(state.p[-1] / state.p[:-1])
        assert (odds <= np.maximum(0, before + x) + 1e-9).all()
        before = odds


def test_without_a_finite_loss_a_round_is_a_plain_mean() -> None:
    agg, before = make_component("agg", "fedmaba", weighting="samples"), State(np.array([0.3, 0.7]))
    direction, after = aggregate_losses(agg, [np.nan, np.inf], [[1.0], [3.0]], samples=[1, 3], state=before)
    assert direction.displacement.tolist() == [2.5]  # (1 * 1 + 3 * 3) / 4
    assert after is before


def test_the_signal_of_the_weights_is_declared() -> None:
    assert make_component("agg", "fedmaba").needs == {"loss"}
    assert make_component("agg", "fedmaba", loss="train_loss").needs == {"train_loss"}
    run = run_without_files("agg=fedmaba", "agg.loss=train_loss", "selector=full", "rounds=1")
    losses, weight = run.last.clients["train_loss"], run.last.clients["weight"]
    q = np.exp(0.5 * (losses - losses.max()))  # one round from equal weights: KL is far below 1
    np.testing.assert_allclose(weight, 0.5 * q / q.sum() + 0.5 / 12, atol=1e-9)
    default_run = run_without_files("agg=fedmaba", "selector=full", "rounds=1")
    F = default_run.reports[0].clients["loss"]
    q = np.exp(0.5 * (F - F.max()))
    np.testing.assert_allclose(default_run.last.clients["weight"], 0.5 * q / q.sum() + 0.5 / 12, atol=1e-7)


@pytest.mark.parametrize(
    ("alpha", "sync", "recommendations"),
    [
        (0.5, "mass", {CLEAN_LABELS, UNADVISED_WEIGHTS}),
        (0.5, "literal", {CLEAN_LABELS, FULL_PARTICIPATION_REQUIREMENT, UNADVISED_WEIGHTS}),
        (0.0, "mass", set()),
        (0.0, "literal", set()),
    ],
)
def test_options_decide_the_recommendations(alpha: float, sync: str, recommendations: set[str]) -> None:
    """At alpha = 0 losses have no effect; with sync=literal, the weights need all clients in every round."""
    assert make_component("agg", "fedmaba", alpha=alpha, sync=sync).recommendations == recommendations
