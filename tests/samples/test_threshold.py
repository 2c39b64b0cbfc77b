"""FedBalancer's loss threshold, and the reports of clients that it needs, by hand."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from case_loop import for_all
from config_options import make_component
from fedcohort.errors import OptionError
from fedcohort.rng import new_generator
from fedcohort.samples.base import SampleRequest
from fedcohort.samples.threshold import compute_loss_threshold, draw_around_threshold
from fedcohort.types import Population, RoundOutcome, Selection

LOSSES = np.arange(1, 11) / 10
POPULATION = Population(3, 6, 3, {"n_train": np.array([10, 10, 10])})


def part(**options: Any) -> Any:
    return make_component("samples", "fedbalancer", **options)


def request(losses: np.ndarray = LOSSES, client: int = 0) -> SampleRequest:
    return SampleRequest(
        client, len(losses), 1.0, 0.0, 9.0, 5, 2, losses, lambda purpose: new_generator(0, purpose, 3, client)
    )


def outcome(low: tuple[float, ...], high: tuple[float, ...], loss_sum: float = 1.0) -> RoundOutcome:
    ids, ones = np.arange(len(low)), np.ones(len(low))
    signals = {"loss_low": np.array(low), "loss_high": np.array(high), "loss_sum": loss_sum * ones, "n_used": ones}
    return RoundOutcome(0, Selection(ids), ids, ids[:0], signals, {}, 9.0, 1.0)


def test_the_threshold_by_hand() -> None:
    """ll = .1 and lh = (1 + 2 + 1.5) / 3 = 1.5: a quarter of the way is .1 + 1.4 / 4."""
    samples = part(w=1, lss=0.25)
    state = samples.init(POPULATION)
    for loss in (2.0, 1.0):
        state = samples.observe(state, outcome((0.2, 0.1, 0.4), (1.0, 2.0, 1.5), loss))
    assert state.pace.ltr == 0.25
    assert state.threshold == pytest.approx(0.45)


@pytest.mark.parametrize(
    ("low", "high", "ltr", "lt"), [(0.5, 2.0, 0.0, 0.0), (-3.0, 1.0, 0.25, 0.0), (0.5, 0.2, 0.5, 0.5), (1, 2, 1.0, 2)]
)
def test_the_threshold_is_never_negative_and_zero_at_first(low: float, high: float, ltr: float, lt: float) -> None:
    assert compute_loss_threshold(low, high, ltr) == lt


def test_the_report_of_a_client_by_hand() -> None:
    """Of .1 to 1 at least .55 are five; .36 + .49 + .64 + .81 + 1 = 3.3; the 80th percentile of ten is .82."""
    samples = part()
    reported = samples.report_losses(0.55, request(np.zeros(10)), LOSSES)
    assert reported == pytest.approx({"loss_low": 0.1, "loss_high": 0.82, "loss_count": 5, "loss_squares": 3.3})


def test_a_loss_at_the_threshold_is_above_it() -> None:
    assert part().report_losses(0.5, request(), LOSSES)["loss_count"] == 6
    assert part(as_released=True).report_losses(0.5, request(), LOSSES)["loss_count"] == 5


def test_as_released_reports_the_losses_before_training() -> None:
    samples = part(as_released=True)
    reported = samples.report_losses(0.0, request(), np.zeros(10))
    assert reported["loss_high"] == pytest.approx(0.82)
    assert (reported["loss_sum"], reported["n_used"]) == pytest.approx((5.5, 10.0))


def test_as_released_keeps_the_reports_of_all_rounds() -> None:
    """ll = min(.4, .2), lh = (1 + 3 + 2) / 3; in the paper's form the second round's .2 and 2 alone."""
    for released, low, high in ((True, 0.2, 2.0), (False, 0.2, 2.0)):
        samples = part(as_released=released)
        state = samples.init(POPULATION)
        for lows, highs in (((0.4, 0.5), (1.0, 3.0)), ((0.2,), (2.0,))):
            state = samples.observe(state, outcome(lows, highs))
        assert (state.lowest_loss, state.high_loss_sum / state.n_high_losses) == pytest.approx((low, high))
    samples = part(as_released=True)
    state = samples.init(POPULATION)
    for lows in ((0.1,), (0.7,)):
        state = samples.observe(state, outcome(lows, (1.0,)))
    assert state.lowest_loss == 0.1
    assert part().observe(state, outcome((0.7,), (1.0,))).lowest_loss == 0.7


def test_noise_is_drawn_per_client_and_number() -> None:
    samples = part(noise=0.5)
    plain = part().report_losses(0.0, request(), LOSSES)
    noise = np.array([samples.report_losses(0.0, request(client=k), LOSSES)["loss_high"] for k in range(1000)]) - 0.82
    assert abs(noise.mean()) < 4 * 0.5 / np.sqrt(1000)
    assert noise.std() == pytest.approx(0.5, rel=4.5 / np.sqrt(2 * 1000))
    drawn = new_generator(0, "metadata", 3, 7).standard_normal(4)
    report = samples.report_losses(0.0, request(client=7), LOSSES)
    np.testing.assert_allclose(list(report.values())[:2], np.array(list(plain.values())[:2]) + 0.5 * drawn[:2])
    repeat = samples.report_losses(0.0, request(client=7), LOSSES)
    assert repeat == samples.report_losses(0.0, request(client=7), LOSSES)
    assert all(repeat[name] != plain[name] for name in plain)


def test_the_privacy_budget_adds_up_over_a_clients_rounds() -> None:
    """Each of two numbers in [0, 2] with noise of 4: rho = 2 x 2^2 / (2 x 4^2) = 1/4 a round; the first told twice."""
    samples = part(noise=4.0, clip=2.0)
    state = samples.init(POPULATION)
    assert samples.describe(state)["rho"] == 0
    for lows, highs in (((0.4, 0.5), (1.0, 3.0)), ((0.2,), (2.0,))):
        state = samples.observe(state, outcome(lows, highs))
    assert samples.describe(state)["rho"] == pytest.approx(0.5)
    assert "rho" not in part(noise=4.0).describe(state), "nothing bounds what is told"
    assert "rho" not in part(clip=2.0).describe(state), "nothing hides it"


def test_noisy_counts_are_not_negative() -> None:
    samples = part(noise=50.0)
    reported = [samples.report_losses(0.0, request(client=k), LOSSES) for k in range(50)]
    assert (
        min(client_report["loss_count"] for client_report in reported)
        == min(client_report["loss_squares"] for client_report in reported)
        == 0
    )


def test_losses_are_clipped_before_they_are_reported() -> None:
    reported = part(clip=0.5).report_losses(0.0, request(), LOSSES)
    assert reported["loss_high"] == 0.5
    assert reported["loss_squares"] == pytest.approx(0.01 + 0.04 + 0.09 + 0.16 + 6 * 0.25)


@pytest.mark.filterwarnings("error")
def test_infinite_losses_are_reported_without_a_warning() -> None:
    """Of a model that diverges; the server hears numbers that are none, and leaves them out."""
    samples = part()
    reported = samples.report_losses(0.0, request(np.zeros(10)), np.where(LOSSES > 0.5, np.inf, LOSSES))
    assert reported["loss_low"] == 0.1
    assert not np.isfinite(reported["loss_high"])


def test_invalid_reports_are_ignored() -> None:
    samples = part(w=1, lss=0.5)
    state = samples.observe(samples.init(POPULATION), outcome((0.2, np.nan), (1.0, np.inf), 2.0))
    assert (state.lowest_loss, state.high_loss_sum, state.n_high_losses) == (0.2, 1.0, 1)
    after = samples.observe(state, outcome((np.nan,), (1.0,), 1.0))
    assert (after.lowest_loss, after.high_loss_sum, after.n_high_losses) == (0.2, 1.0, 1)
    assert after.threshold == pytest.approx(0.6)
    assert samples.observe(samples.init(POPULATION), outcome((np.nan,), (np.nan,))).threshold == 0


@for_all(
    "n_above, count, p, drawn",
    [
        (5, 5, 1.0, (5, 0)),
        (5, 5, 0.75, (4, 1)),  # floor(1.25) from below
        (5, 8, 1.0, (5, 3)),
        (5, 8, 0.75, (5, 3)),  # 2 from below, 6 of 5 from above: one more from below
        (0, 4, 1.0, (0, 4)),
        (10, 3, 0.75, (3, 0)),
        (9, 8, 0.5, (7, 1)),  # 4 of 1 from below: the rest from above
    ],
)
def test_the_number_of_samples_of_each_group(n_above: int, count: int, p: float, drawn: tuple[int, int]) -> None:
    is_above = np.arange(10) >= 10 - n_above
    chosen = draw_around_threshold(is_above, count, p, np.random.default_rng(0))
    assert (int(is_above[chosen].sum()), int((~is_above[chosen]).sum())) == drawn
    assert len(set(chosen.tolist())) == count


def test_every_sample_of_a_group_has_the_same_probability() -> None:
    is_above = np.arange(10) >= 5
    drawn = [draw_around_threshold(is_above, 4, 0.5, np.random.default_rng(i)) for i in range(2000)]
    counts = np.bincount(np.concatenate(drawn), minlength=10)
    assert np.abs(counts - 800).max() < 4.5 * np.sqrt(2000 * 0.4 * 0.6)


@pytest.mark.parametrize(("option", "wrong"), [("p", 1.5), ("noise", -1.0), ("clip", 0.0), ("lss", 2.0), ("w", 0)])
def test_threshold_options_out_of_range_are_rejected(option: str, wrong: float) -> None:
    with pytest.raises(OptionError, match=option):
        replace(part(), **{option: wrong})
