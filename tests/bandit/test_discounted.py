"""DiscountedSums sums against their definition, and UCB1 as the undiscounted case."""

import numpy as np
import pytest

from fedcohort.bandit import discounted
from fedcohort.bandit.discounted import DiscountedSums


def play_history(discount: float, history: list[tuple[list[int], list[float]]], n_arms: int = 3) -> DiscountedSums:
    sums = discounted.initial_sums(n_arms)
    for arms, rewards in history:
        sums = discounted.add_pulls_to_sums(sums, discount, np.array(arms, np.int64), np.array(rewards))
    return sums


ONE_PULL_EACH = [([0], [2.0]), ([1], [1.0]), ([2], [3.0])]


def test_discounted_sums_of_three_rounds_by_hand() -> None:
    """.7^2 * 2, .7 * 1, 3; the same with ones; T = 1 + .7 + .49."""
    sums = play_history(0.7, ONE_PULL_EACH)
    np.testing.assert_allclose(sums.reward_sums, [0.98, 0.7, 3.0], rtol=1e-14)
    np.testing.assert_allclose(sums.pull_counts, [0.49, 0.7, 1.0], rtol=1e-14)
    assert sums.n_rounds == pytest.approx(2.19, rel=1e-14)
    np.testing.assert_allclose(discounted.mean_rewards(sums), [2.0, 1.0, 3.0], rtol=1e-14)
    # .5 sqrt(2 ln 2.19 / N)
    np.testing.assert_allclose(discounted.confidence_widths(sums, 0.5), [0.89437103, 0.74828449, 0.62605972], atol=1e-8)


def test_sums_are_powers_of_the_discount() -> None:
    """L = sum over rounds of discount^(last - round) reward, against an explicit sum."""
    rng = np.random.default_rng(3)
    history = [(sorted(rng.choice(5, 2, replace=False).tolist()), rng.random(2).tolist()) for _ in range(20)]
    sums = play_history(0.9, history, 5)
    power = 0.9 ** np.arange(19, -1, -1)
    for arm in range(5):
        arm_rewards = [dict(zip(arms, rewards, strict=True)).get(arm, 0.0) for arms, rewards in history]
        arm_pulls = [float(arm in arms) for arms, _ in history]
        assert sums.reward_sums[arm] == pytest.approx(power @ arm_rewards, rel=1e-12)
        assert sums.pull_counts[arm] == pytest.approx(power @ arm_pulls, rel=1e-12)
    assert sums.n_rounds == pytest.approx((1 - 0.9**20) / (1 - 0.9), rel=1e-12)


def test_without_discount_the_widths_equal_ucb1() -> None:
    """discount = 1: the plain mean, and Auer's sqrt(2 ln n / n_j) for sigma = 1."""
    sums = play_history(1.0, [([0, 1], [1.0, 4.0]), ([0], [2.0]), ([0], [6.0])])
    np.testing.assert_allclose(discounted.mean_rewards(sums)[:2], [3.0, 4.0], rtol=1e-15)
    np.testing.assert_allclose(
        discounted.confidence_widths(sums, 1.0)[:2], np.sqrt(2 * np.log(3) / np.array([3, 1])), rtol=1e-14
    )


def test_without_memory_only_the_last_round_counts() -> None:
    sums = play_history(0.0, ONE_PULL_EACH)
    np.testing.assert_allclose(sums.reward_sums, [0.0, 0.0, 3.0], atol=1e-290)
    np.testing.assert_allclose(sums.pull_counts, [0.0, 0.0, 1.0], atol=1e-290)
    np.testing.assert_allclose(
        discounted.mean_rewards(sums), [2.0, 1.0, 3.0]
    )  # what they were worth when they were pulled
    assert discounted.confidence_widths(sums, 0.5).tolist() == [0.0, 0.0, 0.0]  # T = 1, ln T = 0


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_forgotten_arm_differs_from_an_unpulled_one() -> None:
    """However small its count, its mean stays and its width is finite, wider than all that were pulled since."""
    for rounds in (13, 300, 5000):
        sums = play_history(0.1, [([0], [5.0])] + [([1], [1.0])] * rounds)
        assert sums.pull_counts[0] == pytest.approx(max(0.1**rounds, 1e-300))
        assert discounted.mean_rewards(sums)[0] == pytest.approx(5.0, rel=1e-12)
        forgotten, recent, unpulled = discounted.confidence_widths(sums, 1.0)
        assert recent < forgotten < np.inf == unpulled
        assert discounted.confidence_widths(sums, 1e300)[0] < np.inf


def test_a_forgotten_arm_restarts_when_pulled_again() -> None:
    sums = play_history(0.1, [([0], [5.0])] + [([1], [1.0])] * 400 + [([0], [7.0])])
    assert sums.pull_counts[0] == pytest.approx(1.0)
    assert discounted.mean_rewards(sums)[0] == pytest.approx(7.0)


def test_every_arm_is_pulled_once_before_any_is_pulled_twice() -> None:
    """By the widest width, one a round: 400 arms at a discount of .7, where N falls to 1e-62 within a lap."""
    sums, order = discounted.initial_sums(400), []
    for _ in range(3 * 400):
        index = discounted.mean_rewards(sums) + discounted.confidence_widths(sums, 1.0)
        order.append(int(np.argmax(index)))
        sums = discounted.add_pulls_to_sums(sums, 0.7, np.array(order[-1:]), np.ones(1))
    assert order == 3 * list(range(400))


def test_the_argument_of_the_logarithm_is_at_least_one() -> None:
    assert np.isfinite(
        discounted.confidence_widths(DiscountedSums(np.ones(1), np.ones(1), 0.7, np.ones(1, bool)), 1.0)
    ).all()
