"""N = 100 samples, alpha = 1, lambda = 10: T = 100 (1 + 10 X) has mean 1100 and standard deviation 1000."""

import math

import numpy as np
import pytest

from fedcohort.device.base import Workload
from fedcohort.device.shifted_exponential import ShiftedExponential
from fedcohort.errors import OptionError
from fedcohort.rng import Draws
from fedcohort.types import Ids, Values

N, LAM = 100, 10.0
FLASH = ShiftedExponential(alpha=1.0, lam=LAM, unit_s=1.0, persistent=False, class_share=0.0)


def job(clients: Ids, epochs: int = 1, n: int = N) -> Workload:
    """E epochs over n samples, n sample-times in all, after one forward pass."""
    size = len(clients)
    none = np.zeros(size)
    return Workload(np.full(size, n / epochs), np.full(size, n / epochs / 3), epochs, none, none)


class FixedDraws(Draws):
    """Every exponential is the seed."""

    def exponential(self, purpose: str) -> Values:
        return np.full(self.n_clients, float(self.seed))


@pytest.mark.parametrize(
    ("x", "seconds"),
    [(0.0, 100.0), (math.log(2), 793.1471805599453), (math.log(10), 2402.585092994046), (1.0, 1100.0)],
    ids=["least", "median", "quantile .9", "mean"],
)
def test_the_quantiles_of_the_specification(x: float, seconds: float) -> None:
    timing = FLASH.sample(np.array([0]), job(np.array([0])), FixedDraws(x, 1, 0))  # type: ignore[arg-type]
    assert timing.unit_s[0] == pytest.approx(seconds, rel=1e-12)


def test_moments_over_many_clients() -> None:
    clients = np.arange(90_000)
    t = FLASH.sample(clients, job(clients), Draws(3, len(clients), 0)).unit_s
    assert t.min() >= N
    assert t.mean() == pytest.approx(1100, abs=4 * 1000 / 300)
    assert t.std() == pytest.approx(1000, abs=4 * 1000 * math.sqrt(8) / 600)  # kurtosis 9
    slowest_of_3 = t.reshape(-1, 3).max(1)  # 100 + 1000 (1 + 1/2 + 1/3)
    assert slowest_of_3.mean() == pytest.approx(1933.3333, abs=4 * 1167 / math.sqrt(30_000))


def test_expected_is_the_mean_and_ignores_the_round() -> None:
    clients = np.array([2, 5])
    for round_ in (0, 7):
        assert FLASH.expect(clients, job(clients), Draws(0, 9, round_)).unit_s.tolist() == [1100.0, 1100.0]


@pytest.mark.parametrize("epochs", [1, 2, 5])
def test_a_whole_job_takes_the_same_time_however_many_epochs_it_has(epochs: int) -> None:
    clients, draws = np.arange(4), Draws(1, 4, 3)
    all_epochs = FLASH.sample(clients, job(clients, epochs), draws)
    one_epoch = FLASH.sample(clients, job(clients, 1), draws)
    np.testing.assert_allclose(epochs * all_epochs.unit_s, one_epoch.unit_s)


def test_a_forward_pass_has_the_speed_of_the_round() -> None:
    clients = np.arange(50)
    timing = FLASH.sample(clients, job(clients), Draws(0, 50, 1))
    np.testing.assert_allclose(3 * timing.infer_s, timing.unit_s)
    assert timing.down_s.tolist() == timing.up_s.tolist() == [0.0] * 50


def test_unit_s_is_the_length_of_a_sample_time() -> None:
    clients, draws = np.arange(5), Draws(0, 5, 1)
    slow = ShiftedExponential(alpha=1.0, lam=LAM, unit_s=0.25, persistent=False, class_share=0.0).sample(
        clients, job(clients), draws
    )
    np.testing.assert_allclose(slow.unit_s, FLASH.sample(clients, job(clients), draws).unit_s / 4)


def test_without_persistence_no_client_is_slow_for_good() -> None:
    clients = np.arange(200)
    rounds = np.stack([FLASH.sample(clients, job(clients), Draws(0, 200, t)).unit_s for t in range(200)])
    # Client means over 200 rounds differ by 1000 / sqrt(200) = 71 around 1100, no more.
    assert rounds.mean(0).std() == pytest.approx(71, rel=0.25)


def test_persistent_clients_keep_their_own_lambda() -> None:
    device = ShiftedExponential(alpha=1.0, lam=LAM, unit_s=1.0, persistent=True, class_share=0.0)
    clients = np.arange(300)
    mean = device.expect(clients, job(clients), Draws(0, 300)).unit_s
    np.testing.assert_array_equal(mean, device.expect(clients, job(clients), Draws(0, 300, 17)).unit_s)
    lambda_i = mean / N - 1
    assert lambda_i.mean() == pytest.approx(LAM, abs=4 * LAM / math.sqrt(300))
    t = np.stack([device.sample(clients, job(clients), Draws(0, 300, t)).unit_s for t in range(400)]) / N - 1
    np.testing.assert_allclose(
        t.mean(0), lambda_i, rtol=5 / math.sqrt(400)
    )  # mean of lambda_i Exp(1), 5 standard errors


def test_options_without_any_duration_are_rejected() -> None:
    with pytest.raises(OptionError, match="device=instant"):
        ShiftedExponential(alpha=0.0, lam=0.0, unit_s=1.0, persistent=False, class_share=0.0)
    assert FLASH.timed


def test_permanent_speeds_may_depend_on_the_main_class() -> None:
    """A draw of ln 2 is the median. Tied to class 0 and 1 of two, it is the quantile .25 and .75: -ln .75 and ln 4."""
    draws = FixedDraws(math.log(2), 2, main_classes=np.array([0, 1]), n_classes=2)  # type: ignore[arg-type]
    device = ShiftedExponential(alpha=1.0, lam=LAM, unit_s=1.0, persistent=True, class_share=1.0)
    clients = np.arange(2)
    expected = [N * (1 - LAM * math.log(0.75)), N * (1 + LAM * math.log(4))]
    assert device.expect(clients, job(clients), draws).unit_s == pytest.approx(expected)


def test_only_permanent_speeds_may_depend_on_the_class() -> None:
    with pytest.raises(OptionError, match=r"class_share=0\.5 needs persistent"):
        ShiftedExponential(alpha=1.0, lam=LAM, unit_s=1.0, persistent=False, class_share=0.5)
