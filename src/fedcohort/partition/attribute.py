"""Clients by their samples of each class and attribute: FedDiverse's federations (Nemeth et al., Sec. V-A), or yours.

A table says how many samples of class y with attribute a client k has, N_k[y, a]. It is `counts`, or a rule makes it,
with s = `share`, C classes and A attributes (those that samples have), and clients of three kinds:

    ci       round(ci K) clients    mainly class c           P(y) = s if y = c, else (1 - s) / (C - 1)
    ai       round(ai K) clients    mainly attribute b       P(a) = s if a = b, else (1 - s) / (A - 1)
    others   spurious correlation   P(a | y) = s if a is the attribute paired with y, a = y + d mod A, else the same

    margins=even   what isn't skewed is even: P(a | y) = 1 / A, P(y | a) = 1 / C. Everybody has n samples, N_k = n P to
                   within one a pair, n the largest for which the data have sum_k n P as well as sum_k N_k (these
                   alone might fit for a larger one); what is over is nobody's.
    margins=data   what isn't skewed is as in the data; N / K samples each. The others get what those leave, in equal
                   parts: they have the data's own correlation, and no sample is left over.

c, b and d go round the classes and attributes from client to client of a kind, so that all data together lose what the
clients have; `left` names the kind for which they don't: its skew alone is left in all data together, where the others
are multiples of C and A in number and C of A. Which client is of which kind is drawn.

Where partition=quantity draws the sizes n_k: margins=even gives t n_k samples with the largest such t,
margins=data n_k to each, the others' still of what the skewed clients leave.

Departures from the paper: it prints neither tables nor numbers of their six metrics (its Fig. 3 is a picture). Of
Spawrious it says which metric is above zero in all data together, of WaterBirds how many clients have mainly which; the
rule's federations have that. How many clients of Spawrious are of which kind, and the shares, are ours.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int64

from fedcohort import ranges
from fedcohort.errors import DataError, OptionError
from fedcohort.partition.base import Partition, Stock
from fedcohort.partition.sizes import even, require
from fedcohort.partition.tables import apportion, deal_cards, deal_pairs
from fedcohort.types import Ids, Values

Counts = Int64[np.ndarray, "clients classes attributes"]
Pools = Int64[np.ndarray, "classes attributes"]
Shares = Float64[np.ndarray, "classes attributes"]
LEAST = 3  # samples that a client needs in a run


@dataclass(frozen=True)
class Attribute(Partition):
    """The partition, with its options.

    Attributes:
        counts: a table of each client, samples by class and attribute; empty: the rule makes them.
        ci, ai: shares of the clients with mainly that imbalance.
        share: of such a client's samples that are of its class, of its attribute, or paired.
        left: the kind whose skew all data together have, "ci", "ai" or "sc".
        margins: "even" or "data", see above.
    """

    counts: Sequence[Sequence[Sequence[int]]]
    ci: float
    ai: float
    share: float
    left: str
    margins: str

    def __post_init__(self) -> None:
        if self.counts:
            self._check_counts()
        ranges.number("ci", self.ci, "[0, 1]")
        ranges.number("ai", self.ai, "[0, 1]")
        if self.ci + self.ai > 1:
            raise ranges.refuse("ai", f"at most 1 - ci = {1 - self.ci:.6g}", self.ai)
        ranges.number("share", self.share, "[0.5, 1]")
        ranges.choice("left", self.left, "ci", "ai", "sc")
        ranges.choice("margins", self.margins, "even", "data")

    @property
    def takes_all(self) -> bool:
        return self.margins == "data" and not self.counts and self.ci + self.ai < 1

    @property
    def takes_sizes(self) -> bool:
        return not self.counts

    def split(self, stock: Stock, n_clients: int | None, rng: np.random.Generator) -> list[Ids]:
        """Deal the samples: sorted positions of each client; disjoint, and as many of each pair as its table says.

        Raises `DataError` where nobody knows attributes, `OptionError` naming what is short.
        """
        pair, pools = _pairs(stock)
        if self.counts:
            table = self._given(pools, n_clients)
        else:
            K = require("attribute", n_clients, len(stock))
            table = self._made(pools, self.own_sizes(len(stock), K), rng.permutation(K))
        return deal_pairs(pair, table, rng)

    def deal(self, stock: Stock, sizes: Ids, rng: np.random.Generator) -> list[Ids]:
        """Return sorted positions of each client's samples: sizes[k] for client k, or a part of it (margins=even).

        Raises `DataError` where nobody knows attributes, `OptionError` naming what is short.
        """
        pair, pools = _pairs(stock)
        clients = rng.permutation(len(sizes))
        return deal_pairs(pair, self._made(pools, sizes[clients], clients), rng)

    def own_sizes(self, n_samples: int, n_clients: int) -> Ids:
        """The sizes that clients have where nobody tells them, int64 [n_clients], ordered by kind; or proportions."""
        if self.margins == "even":
            return np.ones(n_clients, dtype=np.int64)
        skewed = sum(self.kinds(n_clients))
        size, others = n_samples // n_clients, n_clients - skewed
        rest = even(n_samples - size * skewed, others) if others else np.empty(0, dtype=np.int64)
        return np.concatenate([np.full(skewed, size), rest])

    def _given(self, pools: Pools, n_clients: int | None) -> Counts:
        """The tables of the option `counts`."""
        table = np.array(self.counts, dtype=np.int64)
        if n_clients not in (None, len(table)):
            raise OptionError(
                f"clients={n_clients}, and partition.counts has a table for each of {len(table)}; feasible: "
                f"clients={len(table)}"
            )
        if table.shape[1:] != pools.shape:
            raise OptionError(
                f"partition.counts has tables of {_by(table.shape[1:])}, and the data have {_by(pools.shape)}"
            )
        every = (np.arange(pools.shape[0]), np.arange(pools.shape[1]))
        check_pools(table.sum(0), pools, "fewer of them in partition.counts", every)
        return table

    def _made(self, pools: Pools, sizes: Ids, clients: Ids) -> Counts:
        """The tables of the rule. sizes: ordered by kind, as `clients`, whose each of them is."""
        there = (np.flatnonzero(pools.sum(1)), np.flatnonzero(pools.sum(0)))
        made = (even_tables if self.margins == "even" else data_tables)(pools[np.ix_(*there)], sizes, self, there)
        table: Counts = np.zeros((len(sizes), *pools.shape), dtype=np.int64)
        table[np.ix_(clients, *there)] = made
        return table

    def kinds(self, n_clients: int) -> tuple[int, int]:
        """How many clients have mainly one class, and how many mainly one attribute."""
        n_ci = round(self.ci * n_clients)
        return n_ci, min(round(self.ai * n_clients), n_clients - n_ci)

    def turn(self, kind: str, n: int, among: int) -> list[int]:
        """What the n clients of a kind have mainly, a number below `among` each."""
        return [0 if self.left == kind else j % among for j in range(n)]

    def _check_counts(self) -> None:
        """Raise `OptionError` for tables that differ in shape, or hold what is no number of samples."""
        allowed = "a list of tables, one a client, each a list of rows by class of whole numbers, as [[[9,1],[5,5]]]"
        try:
            table = np.array(self.counts)
        except ValueError as error:
            raise ranges.refuse("counts", allowed, self.counts) from error
        if table.ndim != 3 or table.dtype.kind != "i" or (table < 0).any():
            raise ranges.refuse("counts", allowed, self.counts)


def _pairs(stock: Stock) -> tuple[Ids, Pools]:
    """The pair of class and attribute of each sample, and how many there are. Raises `DataError` without attributes."""
    if stock.attribute is None:
        raise DataError(
            "partition=attribute deals samples by class and attribute, and these data have no attributes; choose "
            "dataset=waterbirds, dataset=spawrious or dataset=celeba (dataset.attribute=Male), or another partition"
        )
    shape = (stock.n_classes, stock.n_attributes)
    pair = stock.labels * stock.n_attributes + stock.attribute
    return pair, np.bincount(pair, minlength=shape[0] * shape[1]).reshape(shape)


def even_tables(pools: Pools, sizes: Ids, rule: Attribute, there: tuple[Ids, Ids]) -> Counts:
    """Clients of sizes in these proportions, [K, C, A], ordered by kind; there: what `pools` are of, for messages.

    Raises `OptionError` where a pair of the data is too rare.
    """
    (C, A), n_clients, shares = pools.shape, len(sizes), sizes / sizes.max()
    n_ci, n_ai = rule.kinds(n_clients)
    ci = [np.outer(peak(C, c, rule.share), np.full(A, 1 / A)) for c in rule.turn("ci", n_ci, C)]
    ai = [np.outer(np.full(C, 1 / C), peak(A, b, rule.share)) for b in rule.turn("ai", n_ai, A)]
    shifts = rule.turn("sc", n_clients - n_ci - n_ai, A)
    sc = [np.stack([peak(A, (y + d) % A, rule.share) for y in range(C)]) / C for d in shifts]
    P = np.stack([*ci, *ai, *sc])
    need = (shares[:, None, None] * P).sum(0)
    served = np.divide(pools, need, out=np.full(pools.shape, np.inf), where=need > 0)
    size = int(served.min())
    while size > 0 and ((table := apportion(np.floor(size * shares + 1e-9), P)).sum(0) > pools).any():
        size -= 1
    if size == 0:
        y, a = divmod(int(served.argmin()), A)
        fewer = f"clients<={most}, or " if (most := int(n_clients * served.min() / LEAST)) else ""
        raise OptionError(
            f"clients={n_clients} is more than partition.margins=even can serve: there are {pools[y, a]} training "
            f"samples of class {there[0][y]} with attribute {there[1][a]}; feasible: {fewer}"
            f"partition.margins=data with clients<={pools.sum() // LEAST}"
        )
    return table


def data_tables(pools: Pools, sizes: Ids, rule: Attribute, there: tuple[Ids, Ids]) -> Counts:
    """Skewed clients of their sizes, and what they leave for the others, [K, C, A], ordered by kind.

    there: the classes and attributes of `pools`, for messages. Raises `OptionError` where they ask for more than that.
    """
    n_ci, n_ai = rule.kinds(len(sizes))
    shares, n_skewed = pools / pools.sum(), n_ci + n_ai
    ci = [_skewed(shares, c, rule.share) for c in rule.turn("ci", n_ci, len(pools))]
    ai = [_skewed(shares.T, b, rule.share).T for b in rule.turn("ai", n_ai, pools.shape[1])]
    none: Counts = np.zeros((0, *pools.shape), dtype=np.int64)
    skewed = apportion(sizes[:n_skewed], np.stack([*ci, *ai])) if n_skewed else none
    check_pools(skewed.sum(0), pools, "a smaller partition.share, partition.ci or partition.ai", there)
    rest = np.repeat(np.arange(pools.size), (pools - skewed.sum(0)).ravel())
    if n_skewed == len(sizes):
        return skewed
    larger_first = np.argsort(-sizes[n_skewed:], kind="stable")
    dealt: Counts = np.zeros((len(larger_first), *pools.shape), dtype=np.int64)
    for k, cards in zip(larger_first, deal_cards(sizes[n_skewed:][larger_first]), strict=True):
        dealt[k] = np.bincount(rest[cards], minlength=pools.size).reshape(pools.shape)
    return np.concatenate([skewed, dealt])


def _skewed(shares: Shares, at: int, share: float) -> Shares:
    """Row `at` with a weight of `share`, the other rows in their proportions; within a row as they are."""
    rows = shares.sum(1)
    others = np.where(np.arange(len(rows)) == at, 0.0, rows)
    weights = (1 - share) * others / others.sum() if others.any() else np.zeros(len(rows))
    weights[at] = 1 - weights.sum()
    found: Shares = shares * (weights / rows)[:, None]
    return found


def peak(n: int, at: int, share: float) -> Values:
    """`share` at one of n places, the rest evenly on the others."""
    weights = np.full(n, (1 - share) / max(1, n - 1))
    weights[at] = 1 - weights.sum() + weights[at]
    return weights


def check_pools(asked: Pools, pools: Pools, feasible: str, there: tuple[Ids, Ids]) -> None:
    """Raise `OptionError` where more samples of a pair are asked for than there are. there: what the pairs are of."""
    if (asked > pools).any():
        y, a = (int(at[0]) for at in np.nonzero(asked > pools))
        raise OptionError(
            f"clients are to have {asked[y, a]} training samples of class {there[0][y]} with attribute {there[1][a]}, "
            f"and there are {pools[y, a]} besides server_val; feasible: {feasible}"
        )


def _by(shape: Sequence[int]) -> str:
    return f"{shape[0]} classes and {shape[1]} attributes"
