"""Some clients with a dominant class, the others uniform (FLASH, Sec. IV-A; Ortego et al. 2021).

    round(fraction K) clients, drawn at random:  round(share n_k) samples of one class, the rest uniform over the others
    all other clients:                           the classes in the proportions of what remains

"30% non-IIDness" is fraction = .3 and share = .8. Sizes n_k are N/K, one more for the first N mod K clients, unless
partition=quantity draws them. Dominant
classes are dealt round robin in a random order, past a class whose samples are used up.

Departures from the paper: it doesn't say which class dominates nor what is left for the uniform clients. A pool that
runs short makes the rest of a skewed client, and the uniform clients, only as uniform as the pools allow; the number
of skewed clients and their shares are always exact, or the split is refused.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Int64

from fedcohort import ranges
from fedcohort.component import CLASSES, Requirement
from fedcohort.errors import OptionError
from fedcohort.partition.base import Partition, Stock
from fedcohort.partition.sizes import even, require
from fedcohort.partition.tables import deal_cards
from fedcohort.types import Ids

Counts = Int64[np.ndarray, "clients classes"]
UNIFORM = -1  # the "dominant class" of a client that has none


@dataclass(frozen=True)
class Plan:
    """The pools and the random orders that a split is made from; `pools` [C] and `sizes` [K] have the same sum."""

    sizes: Ids
    pools: Ids
    clients: Ids
    classes: Ids

    def own(self, share: float) -> Ids:
        """Samples of the dominant class that each client would have, [K]."""
        return np.rint(share * self.sizes).astype(np.int64)

    def dominants(self, n_skewed: int, share: float) -> Ids | None:
        """The dominant class of each client, [K], UNIFORM for the others; None where the pools don't suffice."""
        left, own = self.pools.copy(), self.own(share)
        dominant = np.full(len(self.sizes), UNIFORM)
        turn = 0
        for k in self.clients[:n_skewed]:
            order = np.roll(self.classes, -turn)
            fits = np.flatnonzero(left[order] >= own[k])
            if len(fits) == 0:
                return None
            dominant[k] = order[fits[0]]
            left[dominant[k]] -= own[k]
            turn = (turn + int(fits[0]) + 1) % len(self.classes)
        return dominant if (self.rests(dominant, share) <= left.sum() - left).all() else None

    def rests(self, dominant: Ids, share: float) -> Ids:
        """For each class c, [C]: samples of other classes that the clients dominated by c still need."""
        skewed = dominant != UNIFORM
        rest = (self.sizes - self.own(share))[skewed]
        return np.bincount(dominant[skewed], rest, len(self.pools)).astype(np.int64)

    def counts(self, dominant: Ids, share: float, rng: np.random.Generator) -> Counts:
        """Samples of each class for each skewed client; zero rows for the others."""
        out = np.zeros((len(self.sizes), len(self.pools)), dtype=np.int64)
        skewed, own = np.flatnonzero(dominant != UNIFORM), self.own(share)
        out[skewed, dominant[skewed]] = own[skewed]
        left, rests = self.pools - out.sum(0), self.rests(dominant, share)
        for k in rng.permutation(skewed):
            rest, c = self.sizes[k] - own[k], dominant[k]
            # Who is dominated by another class d can't take d: enough of the other classes must be left for them.
            low = np.maximum(rests + left + rest - left.sum(), 0)
            high = left.copy()
            low[c] = high[c] = 0
            draws = level(rest, low, high, rng.random(len(left)))
            out[k] += draws
            left -= draws
            rests[c] -= rest
        return out


def level(total: int, low: Ids, high: Ids, tie: np.ndarray) -> Ids:
    """Return integers in [low, high] that sum to `total`, as equal as possible.

    `tie` in [0, 1) says who gets the odd ones.
    """
    out = low.copy()
    for _ in range(total - int(low.sum())):
        out[np.where(out < high, out + tie, np.inf).argmin()] += 1
    return out


@dataclass(frozen=True)
class DominantClass(Partition):
    """The partition, with its options.

    Attributes:
        fraction: of the clients that are skewed.
        share: of a skewed client's samples that are of its dominant class.
    """

    takes_sizes: ClassVar[bool] = True
    requirements: ClassVar[frozenset[Requirement]] = frozenset({CLASSES})

    fraction: float
    share: float

    def __post_init__(self) -> None:
        ranges.number("fraction", self.fraction, "[0, 1]")
        ranges.number("share", self.share, "(0, 1]")

    def split(self, stock: Stock, n_clients: int | None, rng: np.random.Generator) -> list[Ids]:
        """Deal the samples: sorted positions of each client; disjoint and exhaustive.

        Raises `OptionError` naming a feasible value.
        """
        K = require("dominant_class", n_clients, len(stock))
        return self.deal(stock, even(len(stock), K), rng)

    def deal(self, stock: Stock, sizes: Ids, rng: np.random.Generator) -> list[Ids]:
        """Return sorted positions of each client's samples, sizes[k] for client k.

        Raises `OptionError` naming a feasible value.
        """
        K, pools = len(sizes), np.bincount(stock.labels, minlength=stock.n_classes)
        plan = Plan(sizes, pools, rng.permutation(K), rng.permutation(stock.n_classes))
        dominant = plan.dominants(round(self.fraction * K), self.share)
        if dominant is None:
            raise self._refusal(plan)
        counts = plan.counts(dominant, self.share, rng)
        return [np.sort(part) for part in _deal(stock.labels, counts, plan, dominant == UNIFORM, rng)]

    def _refusal(self, plan: Plan) -> OptionError:
        n_skewed, K = round(self.fraction * len(plan.sizes)), len(plan.sizes)
        shares = sorted(np.arange(1, 101) / 100, key=lambda share: abs(share - self.share))
        share = next((share for share in shares if plan.dominants(n_skewed, share) is not None), None)
        fewer = next(count for count in range(n_skewed - 1, -1, -1) if plan.dominants(count, self.share) is not None)
        feasible = f"partition.fraction={fewer / K:.6g}" + (f" or partition.share={share:.6g}" if share else "")
        return OptionError(
            f"partition.fraction={self.fraction} partition.share={self.share}: the classes have "
            f"{plan.pools.min()} to {plan.pools.max()} samples, too few for {n_skewed} clients of about "
            f"{plan.sizes.sum() // K} samples with such a share of one class; feasible: {feasible}"
        )


def _deal(labels: Ids, counts: Counts, plan: Plan, uniform: np.ndarray, rng: np.random.Generator) -> list[Ids]:
    """Return the positions of each client: `counts` of each class, and for the `uniform` ones [K] what remains."""
    K, C = counts.shape
    rows = [rng.permutation(np.flatnonzero(labels == c)) for c in range(C)]
    ends = counts.cumsum(0)
    starts = ends - counts
    parts = [np.concatenate([rows[c][starts[k, c] : ends[k, c]] for c in range(C)]) for k in range(K)]
    remaining = np.concatenate([rows[c][ends[-1, c] :] for c in range(C)])
    # Dealt like cards, class after class, everybody has his share of each class; the larger hands come first.
    plain = plan.clients[uniform[plan.clients]]
    plain = plain[np.argsort(-plan.sizes[plain], kind="stable")]
    for k, cards in zip(plain, deal_cards(plan.sizes[plain]), strict=True):
        parts[k] = remaining[cards]
    return parts
