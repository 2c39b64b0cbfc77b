"""Dirichlet label skew (Li et al. 2022, NIID-Bench, "distribution-based label imbalance"; Yurochkin et al. 2019).

    for each class c:  p_c ~ Dir_K(alpha, ..., alpha),  client k gets the share p_{c,k} of the samples of class c

Small alpha: few classes a client, and unequal sizes; large alpha: alike clients. (Hsu et al. 2019 draw the other way
round, a Dirichlet over classes for each client, with equal sizes.)

Where partition=quantity draws the sizes n_k:   g_{k,c} ~ Gamma(alpha),   N_{k,c} = r_k g_{k,c} s_c, with the r and s
for which sum_c N_{k,c} = n_k and sum_k N_{k,c} is all of class c. Without r, s alone makes the p_c above of g; without
s, r alone makes Hsu et al.'s client of it: both draws are this one with one of its margins free.

Departures from the paper:
- one draw, and then clients below `min_samples` get random samples of the largest clients. The released codes draw
  again until every client has 10, which for small alpha or many clients never ends.
- no share is set to zero because a client has N/K samples already, which those codes do and the paper doesn't say.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float64

from fedcohort import ranges
from fedcohort.component import CLASSES, Requirement
from fedcohort.errors import OptionError
from fedcohort.partition.base import Partition, Stock
from fedcohort.partition.sizes import require
from fedcohort.partition.tables import deal_pairs, fit, in_whole_samples
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


def log_gamma(alpha: float, shape: tuple[int, int], rng: np.random.Generator) -> Float64[np.ndarray, "clients classes"]:
    """Logarithms of draws from Gamma(alpha), for any alpha > 0, as in `dirichlet`; no less than the least number."""
    with np.errstate(over="ignore"):
        drawn = np.log(rng.standard_gamma(alpha + 1, shape)) + np.log(1 - rng.random(shape)) / alpha
    found: Float64[np.ndarray, "clients classes"] = np.maximum(drawn, np.finfo(np.float64).min)
    return found


@dataclass(frozen=True)
class Dirichlet(Partition):
    """The partition, with its options.

    Attributes:
        alpha: concentration.
        min_samples: every client gets at least so many, of training and validation together.
    """

    takes_sizes: ClassVar[bool] = True

    alpha: float
    min_samples: int

    requirements: ClassVar[frozenset[Requirement]] = frozenset({CLASSES})

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

    def deal(self, stock: Stock, sizes: Ids, rng: np.random.Generator) -> list[Ids]:
        """Return sorted positions of each client's samples: sizes[k] for client k, of classes as they were drawn.

        Raises `OptionError` where a client has fewer than `min_samples`.
        """
        K, least = len(sizes), int(sizes.min())
        if self.min_samples > least:
            raise OptionError(
                f"partition.min_samples={self.min_samples} is more than the {least} samples of the smallest of {K} "
                f"clients; feasible: partition.min_samples<={least}"
            )
        pools = np.bincount(stock.labels, minlength=stock.n_classes)
        there = np.flatnonzero(pools)
        wanted = fit(log_gamma(self.alpha, (K, len(there)), rng), sizes, pools[there])
        return deal_pairs(np.searchsorted(there, stock.labels), in_whole_samples(wanted, sizes, pools[there]), rng)
