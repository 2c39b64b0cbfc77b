"""How the numbers of a study's pages are written: with unit, sign and interval."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from fedcohort.results.difference import Difference, Mean
from fedcohort.results.headroom import ShareClosed
from fedcohort.results.metric import unit_of
from fedcohort.study.definition import Study
from fedcohort.study.verdict import CellVerdict, RowVerdict

EMPTY = "–"
SIGNS = {1: "▲", -1: "▼", 0: ""}
COSTS = {"bytes": "bytes", "client_flops": "client FLOPs", "virtual_s": "virtual time"}


@dataclass(frozen=True)
class Format:
    """How the values of a study's metric are written.

    Attributes:
        factor: by which values are multiplied.
        unit: of a difference, as "points".
        enough: seeds below which no interval is shown: that of two reaches beyond all that is possible.
    """

    factor: float
    unit: str
    enough: int

    def mean(self, value: Mean | Difference) -> str:
        """Return `40.2 [36.8, 43.6]`."""
        return self._with_interval(value, ".1f")

    def difference(self, value: Mean | Difference) -> str:
        """Return `+1.2 [-0.3, 2.1]`."""
        return self._with_interval(value, "+.1f")

    def signed(self, value: float) -> str:
        """Return `+1.2`."""
        return f"{self._round(value):+.1f}" if math.isfinite(value) else EMPTY

    def size(self, value: float) -> str:
        """Return `1 point` or `2.5 points`."""
        size = round(value * self.factor, 6)
        return f"{size:g} {self.unit.removesuffix('s') if size == 1 else self.unit}"

    def _with_interval(self, value: Mean | Difference, form: str) -> str:
        if not math.isfinite(value.mean):
            return EMPTY
        middle = f"{self._round(value.mean):{form}}"
        if not math.isfinite(value.half) or value.n < self.enough:
            return middle
        return f"{middle} [{self._round(value.low):.1f}, {self._round(value.high):.1f}]"

    def _round(self, value: float) -> float:
        return round(value * self.factor, 1) + 0.0  # no -0.0


def format_of(study: Study, metric: str) -> Format:
    """Return the format of a study; values without a unit are shown in hundredths."""
    unit = unit_of(metric)
    return (
        Format(unit.factor, unit.difference, study.enough) if unit.name else Format(100.0, "hundredths", study.enough)
    )


def write_p(p: float) -> str:
    """Return `0.012`, and `< 0.001` where three places would be zeros."""
    return EMPTY if not math.isfinite(p) else "< 0.001" if p < 0.0005 else f"{p:.3f}"


def write_share(share: ShareClosed | None) -> str:
    """Return `31 % [12, 45]`: a share of the headroom with its interval."""
    return f"{100 * share.share:.0f} % [{100 * share.low:.0f}, {100 * share.high:.0f}]" if share else EMPTY


def write_rank(rank: float) -> str:
    """Return `3.2`, and `3` for a whole number."""
    return f"{rank:.1f}".removesuffix(".0") if math.isfinite(rank) else EMPTY


def count(n: int, noun: str) -> str:
    """Return `1 seed`, `2 seeds`."""
    return f"{n} {noun}{'s' * (n != 1)}"


def span(numbers: Iterable[int]) -> str:
    """Return `3 to 5`, or `5` where all are equal."""
    ordered = sorted(set(numbers))
    return " to ".join(dict.fromkeys((str(ordered[0]), str(ordered[-1])))) if ordered else "no"


def relative_costs(row: RowVerdict, base: RowVerdict | None) -> list[tuple[str, str]]:
    """Return the mean costs of a run over the baseline's that differ from 1.00, as `("3.07", "bytes")`."""
    if base is None:
        return []
    ratios = {name: row.costs[cost] / base.costs[cost] for cost, name in COSTS.items() if base.costs[cost] > 0}
    return [(text, name) for name, ratio in ratios.items() if (text := f"{ratio:.2f}") != "1.00"]


@dataclass(frozen=True)
class Power:
    """What the seeds of some settings can show, with a chance of 80 % in one t-test.

    Attributes:
        needed: seeds that show the difference `win.worth`, in the median setting.
        n: seeds that there are.
        shows: difference that they show, in the metric's own unit.
        fewest: seeds needed in the easiest setting.
        most: seeds needed in the hardest one.
        hardest: its label; "" for one setting.
    """

    needed: int
    n: int
    shows: float
    fewest: int
    most: int
    hardest: str


def power_of(study: Study, cells: Sequence[CellVerdict]) -> Power | None:
    """Return what the seeds can show; None where no spread is known."""
    seeds = {cell.cell: cell.seeds for cell in cells if cell.seeds}
    if not seeds:
        return None
    hardest = max(seeds, key=lambda name: seeds[name])
    return Power(
        needed=math.ceil(median(seeds.values())),
        n=math.ceil(median(cell.n for cell in cells if cell.seeds)),
        shows=median(cell.shows for cell in cells if cell.seeds),
        fewest=min(seeds.values()),
        most=seeds[hardest],
        hardest=study.cells[hardest].label if len(cells) > 1 else "",
    )
