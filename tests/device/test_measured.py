"""Means of what is drawn and cut off below, against closed forms and against a second quadrature."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from case_loop import for_all
from fedcohort.device.base import Workload
from fedcohort.device.measured import MOMENT_PAIRS_PER_BLOCK, DeviceSpeeds, LinkSpeeds, compute_bounded_moment
from fedcohort.rng import Draws


@for_all("least", [0.0, 0.1, 0.9])
@for_all("deviation", [1e-3, 0.3, 1.0, 3.0])
def test_the_mean_of_a_truncated_normal(deviation: float, least: float) -> None:
    """With a = (1 - l) / d: E max(l, 1 + d Z) = l + E (1 - l + d Z)^+ = l + (1 - l) Phi(a) + d phi(a)."""
    a = (1 - least) / deviation
    exact = least + (1 - least) * norm.cdf(a) + deviation * norm.pdf(a)
    assert compute_bounded_moment(np.array([deviation]), np.array([least]), 1)[0] == pytest.approx(exact, rel=1e-5)


@pytest.mark.parametrize("deviation", [0.01, 0.3, 1.0, 3.0])
def test_the_mean_of_the_reciprocal(deviation: float) -> None:
    """Below z = (l - 1) / d it is 1 / l, above 1 / (1 + d z)."""
    least = 0.1
    z = (least - 1) / deviation
    integral, _ = quad(lambda y: norm.pdf(y) / (1 + deviation * y), max(z, -9), 9, epsabs=1e-12, limit=500)
    exact = norm.cdf(z) / least + integral
    assert compute_bounded_moment(np.array([deviation]), np.array([least]), -1)[0] == pytest.approx(exact, rel=1e-4)


def test_without_deviation_the_mean_is_the_constant() -> None:
    assert compute_bounded_moment(np.zeros(3), np.array([0.0, 0.1, 2.0]), 1) == pytest.approx([1, 1, 2], abs=1e-12)
    assert compute_bounded_moment(np.empty(0), np.empty(0), -1).shape == (0,)


def test_each_client_has_its_own_mean() -> None:
    deviation = np.random.default_rng(0).uniform(0, 1, 2 * MOMENT_PAIRS_PER_BLOCK + 7)
    deviation[5] = deviation[-1]
    least = np.full(len(deviation), 0.1)
    means = compute_bounded_moment(deviation, least, 1)
    assert means[5] == means[-1]
    np.testing.assert_array_equal(means[::-1], compute_bounded_moment(deviation[::-1], least, 1))
    assert (np.diff(means[np.argsort(deviation)]) >= -1e-12).all()  # what is cut off grows with the deviation


class FixedDraws(Draws):
    """Every normal is the seed."""

    def generator(self, purpose: str, client: int = 0) -> np.random.Generator:
        class ConstantGenerator(np.random.Generator):
            def standard_normal(inner, size: int) -> np.ndarray:  # type: ignore[override]
                return np.full(size, float(self.seed))

        return ConstantGenerator(np.random.PCG64(0))


@pytest.mark.parametrize(
    ("z", "sample_s", "share"), [(0.0, 2.0, 1.0), (1.0, 2.5, 1.5), (-1.0, 1.5, 0.5), (-9.0, 1.0, 0.1)]
)
def test_the_durations_of_a_round_by_hand(z: int, sample_s: float, share: float) -> None:
    """2 +- .5 s a sample and 1 at least; 100 +- 50 bytes a second down, 10 +- 5 up, a tenth of it at least.

    A unit of 6 sample-times of 5 epochs each is 30 trainings of a sample; 4 sample-times of forward passes are 20.
    """
    ones = np.ones(1)
    speeds = DeviceSpeeds.from_moments(
        2 * ones,
        0.5 * ones,
        ones,
        LinkSpeeds.from_moments(100 * ones, 50 * ones),
        LinkSpeeds.from_moments(10 * ones, 5 * ones),
    )
    work = Workload(6 * ones, 4 * ones, 3, 1000 * ones, 20 * ones, epochs=5)
    timing = speeds.sample(np.array([2]), work, FixedDraws(z, 4, 0))
    assert timing.unit_s[0] == pytest.approx(30 * sample_s)
    assert timing.infer_s[0] == pytest.approx(20 * sample_s)
    assert timing.down_s[0] == pytest.approx(10 / share)
    assert timing.up_s[0] == pytest.approx(2 / share)


def test_training_and_both_links_are_drawn_independently() -> None:
    ones = np.ones(20_000)
    speeds = DeviceSpeeds.from_moments(
        ones, 0.1 * ones, 0 * ones, LinkSpeeds.from_moments(ones, 0.1 * ones), LinkSpeeds.from_moments(ones, 0.1 * ones)
    )
    clients = np.arange(len(ones))
    timing = speeds.sample(clients, Workload(ones, 0 * ones, 1, ones, ones), Draws(0, len(ones), 3))
    correlation = np.corrcoef([timing.unit_s, timing.down_s, timing.up_s])
    assert np.abs(correlation[np.triu_indices(3, 1)]).max() < 5 / math.sqrt(len(ones))
    assert timing.unit_s.std() == pytest.approx(0.1, rel=0.05)


def truncated_mean(least: float, deviation: float) -> float:
    """E max(least, 1 + deviation Z) = l + (1 - l) Phi(a) + d phi(a), a = (1 - l) / d."""
    a = (1 - least) / deviation
    return float(least + (1 - least) * norm.cdf(a) + deviation * norm.pdf(a))


def test_expected_seconds_by_hand() -> None:
    """2 +- 2 s a sample and 1 at least are 1.1978 times the mean, 2 s; a unit is 30 trainings of a sample.

    Links have no deviation: 1000 bytes at 100 a second, 20 at 10.
    """
    ones, zeros = np.ones(1), np.zeros(1)
    speeds = DeviceSpeeds.from_moments(
        2 * ones, 2 * ones, ones, LinkSpeeds.from_moments(100 * ones, zeros), LinkSpeeds.from_moments(10 * ones, zeros)
    )
    timing = speeds.expect(Workload(6 * ones, 4 * ones, 3, 1000 * ones, 20 * ones, epochs=5))
    sample_s = 2 * truncated_mean(0.5, 1.0)
    assert sample_s == pytest.approx(2 * 1.197797, rel=1e-6)
    assert timing.unit_s[0] == pytest.approx(30 * sample_s, rel=1e-5)
    assert timing.infer_s[0] == pytest.approx(20 * sample_s, rel=1e-5)
    assert (timing.down_s[0], timing.up_s[0]) == pytest.approx((10, 2))


def test_expected_seconds_of_a_link_by_hand() -> None:
    """Speeds of 100 +- 50: the mean seconds of 1000 bytes are 10 E[1 / max(.1, 1 + Z / 2)], and half for 500."""
    low = (0.1 - 1) / 0.5
    inverse, _ = quad(lambda z: norm.pdf(z) / (1 + 0.5 * z), low, 9, epsabs=1e-12, limit=500)
    link = LinkSpeeds.from_moments(np.full(2, 100.0), np.full(2, 50.0))
    seconds = 10 * (norm.cdf(low) / 0.1 + inverse)
    assert link.expect(np.array([1000.0, 500.0])) == pytest.approx([seconds, seconds / 2], rel=1e-4)
    assert seconds > 13


def test_selecting_rows_applies_to_all_columns() -> None:
    """Device k has k + 1 seconds, a deviation of a half, a tenth at least, and links of 10 and 20 times k + 1."""
    k = np.arange(3) + 1.0
    speeds = DeviceSpeeds.from_moments(
        k, 0.5 * k, 0.1 * k, LinkSpeeds.from_moments(10 * k, 5 * k), LinkSpeeds.from_moments(20 * k, 0 * k)
    )
    selected = speeds.select_rows(np.array([2, 0]))
    work = Workload(np.ones(2), np.ones(2), 1, np.full(2, 60.0), np.full(2, 60.0))
    timing = selected.expect(work)
    sample_s = truncated_mean(0.1, 0.5)
    assert timing.unit_s == pytest.approx([3 * sample_s, sample_s], rel=1e-5)
    assert timing.up_s == pytest.approx([1, 3])
    assert timing.down_s[1] == pytest.approx(3 * timing.down_s[0])
    drawn = selected.sample(np.array([0, 1]), work, FixedDraws(-9, 2, 0))
    assert drawn.unit_s == pytest.approx([0.3, 0.1])
    assert drawn.down_s == pytest.approx([20, 60])
    assert drawn.up_s == pytest.approx([1, 3])
