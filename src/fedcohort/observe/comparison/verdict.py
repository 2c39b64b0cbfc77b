"""What a comparison comes to, in words: who is ahead of the baseline, who behind, and of whom that can't be said.

A row is ahead where the 95 % interval of its paired differences to the baseline is all on the better side of zero,
behind where it is all on the other. Anything else is no proof that the two are equal: these seeds can't tell. Where two
seeds or more have the very same difference there is no interval, and the sentence says that.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fedcohort.observe.comparison.cells import Cell, spell
from fedcohort.observe.comparison.shown import number, unit
from fedcohort.observe.comparison.table import Difference, Table, counterpart

MOST = 4  # on each side, that a sentence names where there are more
NAMED = 4  # of the options in which runs differ, that a sentence names
WORDS = {1: "ahead of", 0: "not distinguishable from", -1: "behind"}
TOO_FEW = {0: "without a seed in common with", 1: "of one seed in common with"}  # which say nothing


@dataclass(frozen=True)
class Gap:
    """The paired difference of a cell to its baseline, in the unit that is shown.

    Attributes:
        cell: whose it is.
        base: the cell that it is compared with.
        mean: of the differences.
        low: where the 95 % interval begins; NaN for fewer than two common seeds, or where all differ by the same.
        high: where it ends.
        n: common seeds.
        side: 1 where the cell is ahead, -1 where it is behind, 0 where that can't be told.
        unlike: the options in which the two differ beside what is compared.
    """

    cell: Cell
    base: Cell
    mean: float
    low: float
    high: float
    n: int
    side: int
    unlike: tuple[str, ...] = ()

    @property
    def word(self) -> str:
        """What stands before the baseline's name."""
        return word_of(self.n, self.side)


def word_of(n: int, side: int) -> str:
    """What `n` common seeds say, where their differences are on this side of zero."""
    return TOO_FEW.get(n) or WORDS[side]


def list_gaps(table: Table) -> list[Gap]:
    """Return the differences that are known, the best first."""
    factor, sign = unit(table).factor, table.sign
    gaps = []
    for cell, entry in table.entries.items():
        gap = entry.difference
        if gap is not None and gap.over.n and table.baseline is not None and math.isfinite(gap.over.mean):
            base = counterpart(cell, table.baseline, table.rows)
            ends = (gap.over.mean * factor, gap.over.low * factor, gap.over.high * factor)
            gaps.append(Gap(cell, base, *ends, gap.over.n, sign * _side(gap), tuple(entry.unlike)))
    return sorted(gaps, key=lambda gap: (-sign * gap.mean, gap.cell))


def tell(table: Table) -> list[str]:
    """Return the verdict, a sentence a column, or a row where the baseline is a column; none without a baseline."""
    found, unknown = list_gaps(table), _list_unknown(table)
    bases = dict.fromkeys((*(gap.base for gap in found), *unknown))
    of = {base: [gap for gap in found if gap.base == base] for base in bases}
    return [_sentence(of[base], unknown.get(base, ()), base, table) for base in bases]


def _list_unknown(table: Table) -> dict[Cell, list[Cell]]:
    """Return, by the cell that they are compared with, those whose difference is no number."""
    found: dict[Cell, list[Cell]] = {}
    for cell, entry in table.entries.items():
        gap = entry.difference
        if gap is not None and gap.over.n and table.baseline is not None and not math.isfinite(gap.over.mean):
            found.setdefault(counterpart(cell, table.baseline, table.rows), []).append(cell)
    return found


def points(table: Table) -> str:
    """Return the unit of a difference: points between two percentages."""
    name = unit(table).name
    return "points" if name == "%" else name


def _side(gap: Difference) -> int:
    """Return the side of zero on which all of the interval, or all equal differences, are; 0 where it has both."""
    over = gap.over
    if over.n < 2:
        return 0
    low, high = (over.low, over.high) if math.isfinite(over.half) else (over.mean, over.mean)
    return 1 if low > 0 else -1 if high < 0 else 0


def _sentence(gaps: Sequence[Gap], unknown: Sequence[Cell], base: Cell, table: Table) -> str:
    name, places = spell(base), _places(gaps)
    parts = []
    for unlike in sorted({gap.unlike for gap in gaps if gap.n > 1}):  # who is compared like with like comes first
        same = [gap for gap in gaps if gap.n > 1 and gap.unlike == unlike]
        parts += [f"{part}{_caution(unlike)}" for part in _say_sides(same, name, points(table), places)]
    if single := [spell(gap.cell) for gap in gaps if gap.n < 2]:
        parts.append(f"of {', '.join(single)} nothing can be said: one seed in common with {name}")
    if unknown:
        parts.append(f"of {', '.join(map(spell, unknown))} nothing can be said: a value is not finite")
    if table.newest is not None and any(gap.unlike for gap in gaps):
        parts.append(f"the runs are of several sweeps: sweep={table.newest} compares those of the newest alone")
    return f"{table.metric}: {'; '.join(parts)}."


def _say_sides(gaps: Sequence[Gap], name: str, what: str, places: int) -> list[str]:
    """Say who of `gaps` is ahead, who behind, and of whom that can't be told."""
    parts = []
    for side in (1, -1):
        same = [gap for gap in gaps if gap.side == side]
        named = same if len(same) <= MOST else same[:MOST] if side > 0 else same[-MOST:]
        for gap in named:
            by = number(abs(gap.mean), places)
            how = f"{spell(gap.cell)} is {WORDS[side]} {name} by {f'{by} {what}'.strip()}"
            parts.append(f"{how} {_sure(gap, places)}")
        if len(named) < len(same):
            parts.append(f"{len(same) - len(named)} more are {WORDS[side]} {name}, by less")
    if untold := [spell(gap.cell) for gap in gaps if gap.side == 0]:
        parts.append(f"{', '.join(untold)} {WORDS[0]} {name}")
    return parts


def _caution(unlike: Sequence[str]) -> str:
    """What is said of a comparison that isn't of like with like, which names the options that differ; else nothing."""
    if not unlike:
        return ""
    more = f" and {len(unlike) - NAMED} more" if len(unlike) > NAMED else ""
    return f", but not like with like: {', '.join(unlike[:NAMED])}{more} differ{'s' if len(unlike) == 1 else ''}"


def _sure(gap: Gap, places: int) -> str:
    if not math.isfinite(gap.low):
        return f"on each of {gap.n} seeds, without an interval"
    low, high = sorted((abs(gap.low), abs(gap.high)))
    return f"[{number(low, places)}, {number(high, places)}], {gap.n} seeds"


def _places(gaps: Sequence[Gap]) -> int:
    """Return the decimals that show the middle one of the intervals' halves in two digits; one at least."""
    known = [((gap.high - gap.low) / 2, abs(gap.mean)) for gap in gaps if math.isfinite(gap.low)]
    halves = sorted(half for half, mean in known if half > 1e-9 * mean)  # less is rounding
    return min(max(1 - math.floor(math.log10(halves[len(halves) // 2])), 1), 6) if halves else 1
