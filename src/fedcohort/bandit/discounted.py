"""Discounted sums of rewards and the index of discounted UCB (Garivier and Moulines 2008; UCB-CS Eq. 4-7).

    L <- discount L + reward,   N <- discount N + 1 for the arms pulled;   T <- discount T + 1 every round
    mean = L / N,   width = sqrt(2 sigma^2 ln(max(T, 1)) / N)

A round enters with weight 1: discounting after the addition would make T < 1 and the logarithm negative.
"""

import math
from dataclasses import dataclass

import numpy as np

from fedcohort.types import Ids, Values

FORGOTTEN = 1e-12  # an arm whose count has decayed below this was never pulled, as far as floats can tell


@dataclass(frozen=True)
class Discounted:
    """total: L, discounted rewards per arm. count: N, discounted pulls per arm. rounds: T, discounted rounds."""

    total: Values
    count: Values
    rounds: float


def nothing(n_arms: int) -> Discounted:
    """Before the first round."""
    return Discounted(np.zeros(n_arms), np.zeros(n_arms), 0.0)


def after(past: Discounted, discount: float, arms: Ids, rewards: Values) -> Discounted:
    """One round later: `arms` were pulled once each and paid `rewards`, which are finite."""
    total, count = discount * past.total, discount * past.count
    total[arms] += rewards
    count[arms] += 1.0
    return Discounted(total, count, discount * past.rounds + 1.0)


def mean(past: Discounted) -> Values:
    """L / N, 0 for an arm without pulls."""
    out = np.zeros_like(past.total)
    np.divide(past.total, past.count, out=out, where=past.count >= FORGOTTEN)
    return out


def width(past: Discounted, sigma: float) -> Values:
    """The confidence width, in sigma's units; infinite for an arm without pulls."""
    out = np.full_like(past.count, np.inf)
    known = past.count >= FORGOTTEN
    np.divide(2 * math.log(max(past.rounds, 1.0)), past.count, out=out, where=known)
    out[known] = sigma * np.sqrt(out[known])  # sigma**2 would overflow first
    return out
