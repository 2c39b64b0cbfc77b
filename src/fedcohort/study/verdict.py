"""What the judge says of a study: of each row in each cell, of each cell, of all."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fedcohort.study.definition import METHOD
from fedcohort.study.paired import Difference, Mean
from fedcohort.study.ranking import Ranks

COSTS = ("virtual_s", "bytes", "probe_bytes", "client_flops", "server_flops")
TO_TARGET = ("rounds", "virtual_s", "bytes")


@dataclass(frozen=True)
class RowVerdict:
    """A row in a cell.

    Attributes:
        value: late mean over its seeds, in the metric's unit.
        last: mean over its seeds of the last value that was measured.
        diverged: seeds whose late mean is not finite.
        over: to the baseline; None for the baseline itself.
        p: Holm's, over the row's cells; NaN where there is no test.
        p_all: of a method, Holm's over all methods and cells; NaN for others, and where there is no test.
        sign: 1 where it wins, -1 where it loses, 0 where it can't be told from the baseline.
        closed: share of the gap, NaN where there is none.
        rank: among methods and the baseline; None for others.
        costs: means of what a run took, by name.
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
    p: float
    p_all: float
    sign: int
    closed: float
    rank: Mean | None
    costs: Mapping[str, float]
    target: Mapping[str, float]
    reached: int
    early: int
    other_code: int


@dataclass(frozen=True)
class CellVerdict:
    """A cell.

    Attributes:
        rows: those with results, in the study's order.
        best: the yardstick with the largest mean difference; None where no yardstick has a difference.
        gap: it, None likewise.
        pays: whether the gap is clear of 0.
        seeds: how many show a difference of win.worth, None where no spread is known.
        known: the yardsticks with seeds enough to say what there is to win.
    """

    cell: str
    rows: Mapping[str, RowVerdict]
    best: str | None
    gap: Difference | None
    pays: bool
    seeds: int | None
    known: Sequence[str]

    def winners(self, *roles: str) -> list[RowVerdict]:
        """The rows that win, best first."""
        won = [each for each in self.rows.values() if each.sign > 0 and each.role in (roles or (METHOD,))]
        return sorted(won, key=lambda each: -over_of(each).mean)

    def wins_after_all(self, alpha: float) -> bool:
        """Whether a method still wins after one correction over all methods and cells."""
        return any(each.p_all < alpha for each in self.winners())

    def losers(self) -> list[RowVerdict]:
        """The methods that lose, worst first."""
        lost = [each for each in self.rows.values() if each.sign < 0 and each.role == METHOD]
        return sorted(lost, key=lambda each: over_of(each).mean)

    def lost(self, baseline: str) -> list[RowVerdict]:
        """The methods that diverged on more seeds than the baseline, worst first; no test is left of them."""
        least = self.rows[baseline].diverged if baseline in self.rows else 0
        lost = [each for each in self.rows.values() if each.diverged > least and each.role == METHOD]
        return sorted(lost, key=lambda each: -each.diverged)


@dataclass(frozen=True)
class Verdict:
    """All of it.

    Attributes:
        missing: by cell and row, how many of the study's seeds have no result.
    """

    cells: Mapping[str, CellVerdict]
    ranks: Ranks | None
    missing: Mapping[tuple[str, str], int]

    @property
    def tests(self) -> int:
        """How many methods were tested in how many cells: those that `RowVerdict.p_all` is corrected for."""
        return sum(math.isfinite(row.p_all) for cell in self.cells.values() for row in cell.rows.values())


def over_of(row: RowVerdict) -> Mean:
    """The difference to the baseline; nothing where there is none."""
    return row.over.over if row.over is not None else Mean(math.nan, math.nan, 0, math.nan)
