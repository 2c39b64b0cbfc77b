"""Discounted sums of rewards and the index of discounted UCB (Garivier and Moulines 2008; UCB-CS Eq. 4-7).

    L <- discount L + reward,   N <- discount N + 1 for the arms pulled;   T <- discount T + 1 every round
    mean = L / N,   width = sqrt(2 sigma^2 ln(max(T, 1)) / N)

A round enters with weight 1: discounting after the addition would make T < 1 and the logarithm negative.

N of an arm that is left alone decays geometrically, and L with it. At 1e-300 (after 1,937 rounds
at a discount of .7) both stop, so that L / N stays what it was and the width finite; those there have equal widths.
Whether an arm was ever pulled is noted apart.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool

from fedcohort.types import Ids, Values

LEAST = 1e-300  # of a count: smaller ones lose their digits, and then vanish
WIDEST = 1e300  # sums of two such don't overflow


@dataclass(frozen=True)
class Discounted:
    """Discounted sums over rounds.

    Attributes:
        total: L, discounted rewards per arm.
        count: N, discounted pulls per arm.
        rounds: T, discounted rounds.
        pulled: whether an arm ever was, however long ago.
    """

    total: Values
    count: Values
    rounds: float
    pulled: Bool[np.ndarray, "_n"]


def nothing(n_arms: int) -> Discounted:
    """Make the counts before the first round."""
    return Discounted(np.zeros(n_arms), np.zeros(n_arms), 0.0, np.zeros(n_arms, bool))


def after(past: Discounted, discount: float, arms: Ids, rewards: Values) -> Discounted:
    """Move on by one round, in which `arms` were pulled once each and paid `rewards`, which are finite."""
    least = np.divide(LEAST, past.count, out=np.zeros_like(past.count), where=past.pulled)
    kept = np.minimum(np.maximum(discount, least), 1.0)  # the discount, unless the count would pass its floor
    total, count, pulled = kept * past.total, kept * past.count, past.pulled.copy()
    total[arms] += rewards
    count[arms] += 1.0
    pulled[arms] = True
    return Discounted(total, count, discount * past.rounds + 1.0, pulled)


def mean(past: Discounted) -> Values:
    """L / N, 0 for an arm that was never pulled."""
    out = np.zeros_like(past.total)
    np.divide(past.total, past.count, out=out, where=past.pulled)
    return out


def width(past: Discounted, sigma: float) -> Values:
    """The confidence width, in sigma's units; infinite for an arm that was never pulled, and for no other."""
    out = np.full_like(past.count, np.inf)
    known = past.pulled
    np.divide(2 * math.log(max(past.rounds, 1.0)), past.count, out=out, where=known)
    with np.errstate(over="ignore"):
        out[known] = np.minimum(sigma * np.sqrt(out[known]), WIDEST)  # sigma**2 would overflow first
    return out
