"""The verdict on a study: of each row in each setting, of each setting, of all."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fedcohort.results.difference import NO_DIFFERENCE, Difference, Mean
from fedcohort.results.headroom import ShareClosed
from fedcohort.results.verdict import sign_of
from fedcohort.results.winner import Winner
from fedcohort.study.definition import METHOD
from fedcohort.study.ranking import Ranks

COSTS = ("virtual_s", "bytes", "probe_bytes", "client_flops", "server_flops")
TO_TARGET = ("rounds", "virtual_s", "bytes")


@dataclass(frozen=True)
class Ps:
    """The p-value of a difference after Holm, by the family of the claim; NaN where there is no test.

    Attributes:
        in_setting: over all methods of the setting; of a row that is no method, as tested.
        of_method: over all settings of the method; likewise.
        anywhere: over all methods in all settings; NaN for a row that is no method.
    """

    in_setting: float
    of_method: float
    anywhere: float


@dataclass(frozen=True)
class RowVerdict:
    """A row in a setting.

    Attributes:
        value: mean result over its seeds, in the metric's unit.
        last: mean over its seeds of the last value that was measured.
        diverged: seeds whose result is not finite.
        over: difference to the baseline; None for the baseline itself.
        ps: p-values of the difference.
        verdict: of `results.verdict`, by the correction within the setting; "" for the baseline.
        closed: share of the headroom; None where there is none.
        rank: among methods and the baseline; NaN for others.
        costs: mean costs of a run, by name.
        target: median seconds and bytes and rounds to the target over seeds, infinite where half of them never met it.
        reached: seeds that met it.
        early: seeds that had all of their rounds before the clock that was to end them.
        other_code: seeds computed by code that behaves differently (`behaviour.py`).
    """

    row: str
    role: str
    value: Mean
    last: float
    diverged: int
    over: Difference | None
    ps: Ps
    verdict: str
    closed: ShareClosed | None
    rank: float
    costs: Mapping[str, float]
    target: Mapping[str, float]
    reached: int
    early: int
    other_code: int

    @property
    def sign(self) -> int:
        """1 where it is better than the baseline, -1 where it is worse, else 0."""
        return sign_of(self.verdict)


@dataclass(frozen=True)
class Headroom:
    """What an oracle gains in a setting.

    Attributes:
        oracle: the one with the largest mean difference; None where no oracle has a difference.
        difference: its difference, of several oracles that of choosing one on the other seeds; None likewise.
        pays: whether the interval is above 0, and the mean at or above the minimum effect.
        oracles: those with enough seeds.
    """

    oracle: str | None
    difference: Difference | None
    pays: bool
    oracles: Sequence[str]


@dataclass(frozen=True)
class CellVerdict:
    """A setting.

    Attributes:
        rows: those with results, in the study's order.
        headroom: of its oracle.
        seeds: number that shows a difference of win.worth, None where no spread is known.
        n: seeds of the median method.
        shows: difference that these seeds show.
        winner: best method and its cross-fitted value; None where no method is better.
    """

    cell: str
    rows: Mapping[str, RowVerdict]
    headroom: Headroom
    seeds: int | None
    n: int
    shows: float
    winner: tuple[str, Winner] | None

    def winners(self, *roles: str) -> list[RowVerdict]:
        """Return the rows that are better than the baseline, best first."""
        better = [row for row in self.rows.values() if row.sign > 0 and row.role in (roles or (METHOD,))]
        return sorted(better, key=lambda row: -over_of(row).mean)

    def wins_after_all(self, alpha: float) -> bool:
        """Return whether a method is still better after one correction over all methods and settings."""
        return any(row.ps.anywhere < alpha for row in self.winners())

    def losers(self) -> list[RowVerdict]:
        """Return the methods that are worse, worst first."""
        worse = [row for row in self.rows.values() if row.sign < 0 and row.role == METHOD]
        return sorted(worse, key=lambda row: over_of(row).mean)

    def lost(self, baseline: str) -> list[RowVerdict]:
        """Return the methods that diverged on more seeds than the baseline, worst first; they have no test."""
        least = self.rows[baseline].diverged if baseline in self.rows else 0
        diverged = [row for row in self.rows.values() if row.diverged > least and row.role == METHOD]
        return sorted(diverged, key=lambda row: -row.diverged)


@dataclass(frozen=True)
class Verdict:
    """The verdict on a study.

    Attributes:
        cells: by setting.
        ranks: over settings, None where too little is there to rank.
        missing: by setting and row, how many of the study's seeds have no result.
        collapsing: methods whose wins in single settings are not safe (`results.skew`).
    """

    cells: Mapping[str, CellVerdict]
    ranks: Ranks | None
    missing: Mapping[tuple[str, str], int]
    collapsing: frozenset[str] = frozenset()

    @property
    def tests(self) -> int:
        """Number of tests of methods over all settings, which `Ps.anywhere` is corrected for."""
        return sum(math.isfinite(row.ps.anywhere) for cell in self.cells.values() for row in cell.rows.values())


def over_of(row: RowVerdict) -> Difference:
    """Return the difference to the baseline; an empty one where there is none."""
    return row.over if row.over is not None else NO_DIFFERENCE
