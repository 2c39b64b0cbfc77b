"""FLASH whose exploration is as wide as its rewards are noisy; the estimate is in tests/bandit/test_calibrated.py."""

from dataclasses import replace

import numpy as np
import pytest

from config_options import make_typed
from fedcohort.bandit import calibrated
from fedcohort.errors import OptionError
from fedcohort.selector.flash import Flash
from flash_harness import LOSSES, SECONDS, make_flash, play_losses, theta
from optional_values import not_none
from selector_harness import World, play_rounds

FIRST = {"scale": "first_round"}  # as the toy's RAW, in units that don't change after the first round


def make_calibrated(**changes: object) -> Flash:
    return make_typed(Flash, "selector", "flash_calibrated", **changes)


def test_the_estimated_noise_by_hand() -> None:
    """Rewards .1, .25 and .4 of flash_harness's story on (1, 1, 0, 0) twice and (.5, .6, 2, .25), over .175 and 1.5 s.

    Those are the means of the first round's. sum r^2 = .2325 / .175^2; sigma^2 = (1 + sum r^2 - b'theta) / 4 with the
    posterior that FLASH has.
    """
    state = play_losses(make_calibrated(context="fresh", **FIRST), LOSSES, SECONDS)[-1]
    uncalibrated = play_losses(make_flash(context="fresh", **FIRST), LOSSES, SECONDS)[-1]
    belief = state.posterior
    assert isinstance(belief, calibrated.NoisyRidge)
    x = np.array([0.5, 0.6, 2.0 / 1.5, 0.25 / 0.175])
    b = (np.array([0.35, 0.35, 0.0, 0.0]) + 0.4 * x) / 0.175
    squares = 0.2325 / 0.175**2
    assert belief.squared_rewards == pytest.approx(squares, rel=1e-12)
    assert calibrated.estimate_noise_deviation(belief) ** 2 == pytest.approx(
        (1 + squares - b @ theta(uncalibrated)) / 4, rel=1e-12
    )


def test_the_calibrated_bandit_requires_scaled_rewards() -> None:
    """With raw ones of 1e-3 nats per second the prior's residual of 1 is all that the bandit would see."""
    message = "scale must be running or first_round with bandit=calibrated, whose prior noise .* size 1, got 'none'"
    with pytest.raises(OptionError, match=message):
        replace(make_calibrated(), scale="none")
    for scale in ("running", "first_round"):
        assert make_calibrated(scale=scale).scale == scale
    assert make_flash(scale="none").scale == "none"


@pytest.mark.parametrize("gamma_scale", [1.0, 0.5])
def test_the_width_of_a_draw_is_sigma_for_every_gamma(gamma_scale: float) -> None:
    """score = x'theta_hat + gamma_scale sigma x'C^-T z; FLASH's own gamma_t is 6 and more times as wide."""
    world = World()
    for step in play_rounds(make_calibrated(gamma_scale=gamma_scale, delta=1e-9), world, 6)[1:]:
        belief = step.before.posterior
        z = world.context(step.ctx.round, frozenset()).rng.standard_normal(4)
        width = gamma_scale * calibrated.estimate_noise_deviation(belief)
        C = np.linalg.cholesky(belief.ridge.V)
        expected = step.before.X @ (np.linalg.solve(belief.ridge.V, belief.ridge.b) + width * np.linalg.solve(C.T, z))
        np.testing.assert_allclose(not_none(step.selection.scores), expected, rtol=1e-9)
    assert calibrated.estimate_noise_deviation(belief) < 1.5


def test_trace_is_theta_with_the_estimated_deviation() -> None:
    selector = make_calibrated(context="fresh", **FIRST)
    state = play_losses(selector, LOSSES, SECONDS)[-1]
    plain = make_flash(context="fresh", **FIRST)
    unit = plain.trace(play_losses(plain, LOSSES, SECONDS)[-1])
    for name, (mean, sd) in selector.trace(state).items():
        assert mean == pytest.approx(unit[name][0], rel=1e-12)
        assert sd == pytest.approx(calibrated.estimate_noise_deviation(state.posterior) * unit[name][1], rel=1e-12)  # type: ignore[arg-type]
