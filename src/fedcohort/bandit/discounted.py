"""Discounted UCB: discounted sums of rewards and their confidence widths (Garivier and Moulines 2011).

Garivier, Moulines, "On Upper-Confidence Bound Policies for Non-Stationary Bandit Problems", ALT 2011, arXiv 0805.3415;
with the constants of UCB-CS (Eq. 4-7).

    each round:  L <- discount L + reward, N <- discount N + 1 for the arms pulled;  T <- discount T + 1
    mean:  L / N
    width:  sqrt(2 sigma^2 ln(max(T, 1)) / N)

The latest round has the weight 1: with the discount after the addition T would be below 1 and its logarithm negative. N
and L of an arm that is never pulled again decay geometrically. At N = 1e-300 (after 1,937 rounds at a discount of .7)
both stop, so that L / N is kept and the width stays finite. Whether an arm was ever pulled is stored separately.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool

from fedcohort.types import Ids, Values

MIN_PULL_COUNT = 1e-300  # smaller numbers lose digits
MAX_CONFIDENCE_WIDTH = 1e300  # sums of two such widths do not overflow


@dataclass(frozen=True)
class DiscountedSums:
    """Discounted sums of each arm's rewards and pulls over the rounds so far.

    Attributes:
        reward_sums: discounted sum of the rewards of each arm, [n_arms].
        pull_counts: discounted number of pulls of each arm, [n_arms].
        n_rounds: discounted number of rounds.
        is_pulled: whether each arm was ever pulled, [n_arms].
    """

    reward_sums: Values
    pull_counts: Values
    n_rounds: float
    is_pulled: Bool[np.ndarray, "_n"]


def initial_sums(n_arms: int) -> DiscountedSums:
    """Return the discounted sums of a bandit with `n_arms` arms before the first round."""
    return DiscountedSums(np.zeros(n_arms), np.zeros(n_arms), 0.0, np.zeros(n_arms, bool))


def add_pulls_to_sums(sums: DiscountedSums, discount: float, pulled_arms: Ids, arm_rewards: Values) -> DiscountedSums:
    """Return the discounted sums after a round in which each of `pulled_arms` was pulled once.

    Args:
        sums: the sums before the round.
        discount: factor of the old sums, in [0, 1].
        pulled_arms: numbers of the pulled arms, [m].
        arm_rewards: reward of each pulled arm, finite, [m].
    """
    decay_lower_bounds = np.divide(
        MIN_PULL_COUNT, sums.pull_counts, out=np.zeros_like(sums.pull_counts), where=sums.is_pulled
    )
    decay_factors = np.minimum(np.maximum(discount, decay_lower_bounds), 1.0)  # no count falls below its lower bound
    reward_sums = decay_factors * sums.reward_sums
    pull_counts = decay_factors * sums.pull_counts
    is_pulled = sums.is_pulled.copy()
    reward_sums[pulled_arms] += arm_rewards
    pull_counts[pulled_arms] += 1.0
    is_pulled[pulled_arms] = True
    return DiscountedSums(reward_sums, pull_counts, discount * sums.n_rounds + 1.0, is_pulled)


def mean_rewards(arm_sums: DiscountedSums) -> Values:
    """Return the discounted mean reward of each arm from `arm_sums`, [n_arms]; 0 for an arm that was never pulled."""
    arm_means = np.zeros_like(arm_sums.reward_sums)
    np.divide(arm_sums.reward_sums, arm_sums.pull_counts, out=arm_means, where=arm_sums.is_pulled)
    return arm_means


def confidence_widths(arm_sums: DiscountedSums, sigma: float) -> Values:
    """Return the confidence width sigma sqrt(2 ln T / N) of each arm, [n_arms]; infinite only for arms never pulled.

    Args:
        arm_sums: discounted sums, with T their number of rounds and N the pulls of an arm.
        sigma: standard deviation of a reward.
    """
    arm_widths = np.full_like(arm_sums.pull_counts, np.inf)
    is_pulled = arm_sums.is_pulled
    np.divide(2 * math.log(max(arm_sums.n_rounds, 1.0)), arm_sums.pull_counts, out=arm_widths, where=is_pulled)
    with np.errstate(over="ignore"):
        # sigma**2 may overflow
        arm_widths[is_pulled] = np.minimum(sigma * np.sqrt(arm_widths[is_pulled]), MAX_CONFIDENCE_WIDTH)
    return arm_widths
