"""Dirichlet label skew (Li et al. 2022, NIID-Bench, "distribution-based label imbalance"; Yurochkin et al. 2019).

    for each class c:  p_c ~ Dir_K(alpha, ..., alpha),  client k gets the share p_{c,k} of the samples of class c

Small alpha: few classes a client, and unequal sizes; large alpha: alike clients. (Hsu et al. 2019 draw the other way
round, a Dirichlet over classes for each client, with equal sizes.)

Departures from the paper:
- one draw, and then clients below `min_samples` get random samples of the largest clients. The released codes draw
  again until every client has 10, which for small alpha or many clients never ends.
- no share is set to zero because a client has N/K samples already, which those codes do and the paper doesn't say.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedcohort import ranges
from fedcohort.errors import OptionError
from fedcohort.part import CLASSES, Want
from fedcohort.partition.base import Partition, Stock
from fedcohort.partition.sizes import require
from fedcohort.types import Ids, Values


def dirichlet(alpha: float, size: int, rng: np.random.Generator) -> Values:
    """Draw from Dir(alpha, ..., alpha), [size], for any alpha > 0.

    In logarithms, by Gamma(alpha) = Gamma(alpha + 1) U^(1/alpha): for small alpha every Gamma(alpha) underflows to 0.
    """
    log_u = np.log(1 - rng.random(size))
    with np.errstate(over="ignore"):
        log_gamma = np.log(rng.standard_gamma(alpha + 1, size)) + log_u / alpha
    top = log_gamma.max()
    if np.isinf(top):  # alpha so small that even the logarithms overflow: the limit is one client for all
        winner: Values = (np.arange(size) == log_u.argmax()).astype(np.float64)
        return winner
    weight = np.exp(log_gamma - top)
    share: Values = weight / weight.sum()
    return share


def top_up(parts: list[Ids], least: int) -> list[Ids]:
    """Move the last samples of the largest parts to those below `least`; needs sum of sizes >= least * len(parts).

    While any part is below, the largest is above the mean and so above `least`: a giver never falls short itself.
    """
    sizes = np.array([len(part) for part in parts])
    kept, gifts = sizes.copy(), []
    for poor in np.flatnonzero(sizes < least):
        while sizes[poor] < least:
            rich = int(sizes.argmax())
            sizes[rich] -= 1
            kept[rich] -= 1
            sizes[poor] += 1
            gifts.append((poor, parts[rich][kept[rich]]))
    extra: list[list[int]] = [[] for _ in parts]
    for poor, sample in gifts:
        extra[poor].append(sample)
    return [np.concatenate([parts[k][: kept[k]], np.array(extra[k], dtype=np.int64)]) for k in range(len(parts))]


@dataclass(frozen=True)
class Dirichlet(Partition):
    """The partition, with its options.

    Attributes:
        alpha: concentration.
        min_samples: every client gets at least so many, of training and validation together.
    """

    alpha: float
    min_samples: int

    wants: ClassVar[frozenset[Want]] = frozenset({CLASSES})

    def __post_init__(self) -> None:
        ranges.number("alpha", self.alpha, "(0, inf)")
        ranges.integer("min_samples", self.min_samples, "[1, inf)")

    def split(self, stock: Stock, n_clients: int | None, rng: np.random.Generator) -> list[Ids]:
        """Deal the samples: sorted positions of each client; disjoint and exhaustive.

        Raises `OptionError` without enough samples.
        """
        K, N = require("dirichlet", n_clients, len(stock)), len(stock)
        if self.min_samples > N // K:
            raise OptionError(
                f"partition.min_samples={self.min_samples} is more than {N} training samples give each of {K} clients; "
                f"feasible: partition.min_samples<={N // K}"
            )
        pieces: list[list[Ids]] = [[] for _ in range(K)]
        for c in range(stock.n_classes):
            of_class = rng.permutation(np.flatnonzero(stock.labels == c))
            cuts = np.rint(np.cumsum(dirichlet(self.alpha, K, rng))[:-1] * len(of_class)).astype(np.int64)
            for k, piece in enumerate(np.split(of_class, np.minimum(cuts, len(of_class)))):
                pieces[k].append(piece)
        parts = [rng.permutation(np.concatenate(own)) for own in pieces]
        return [np.sort(part) for part in top_up(parts, self.min_samples)]
