"""The words of a study's pages: units, differences, counts."""

import math
from collections.abc import Sequence
from statistics import median

from fedcohort.report.sheet import NONE
from fedcohort.results.difference import Mean
from fedcohort.results.metric import MetricUnit, unit_of
from fedcohort.study.definition import Study
from fedcohort.study.verdict import CellVerdict, RowVerdict, over_of


def unit_of_study(metric: str) -> MetricUnit:
    """Return what a study's numbers are shown in, of which pages have one digit behind the point."""
    u = unit_of(metric)
    return u if u.name else MetricUnit(100.0, "hundredths")


def spell_mean(value: Mean, u: MetricUnit, *, sign: bool = False) -> str:
    """`+1.2 [+0.3, +2.1]`, without an interval where there is one value."""
    form = "+.1f" if sign else ".1f"
    if not math.isfinite(value.mean):
        return NONE
    middle = f"{value.mean * u.factor:{form}}"
    if not math.isfinite(value.half):
        return middle
    return f"{middle} [{value.low * u.factor:{form}}, {value.high * u.factor:{form}}]"


def spell_gap(cell: CellVerdict, u: MetricUnit) -> str:
    """`+1.2 [+0.3, +2.1] (oracle_fast)`: what the best yardstick wins."""
    gain = cell.headroom.difference
    return f"{spell_mean(gain, u, sign=True)} ({cell.headroom.oracle})" if gain else NONE


def spell_win(row: RowVerdict, u: MetricUnit) -> str:
    """`oort +2.4`: a row and its mean difference to the baseline."""
    return f"{row.row} {over_of(row).mean * u.factor:+.1f}"


def spell_p(p: float) -> str:
    """As in `0.012`, and `< 0.001` where three places would be noughts."""
    return "< 0.001" if p < 0.0005 else f"{p:.3f}"


def spell_worth(study: Study, u: MetricUnit) -> str:
    """`1 point`: the difference that the number of seeds is told for."""
    return f"{study.worth * u.factor:g} {points(u, study.worth * u.factor)}"


def points(u: MetricUnit, count: float = 2) -> str:
    """How a difference of `count` is called: of percentages it is points."""
    name = "points" if u.name == "%" else u.name
    return name.removesuffix("s") if count == 1 and len(name) > 1 else name


def count(n: int, noun: str) -> str:
    """`1 seed`, `2 seeds`."""
    return f"{n} {noun}{'s' * (n != 1)}"


def tell_power(study: Study, cells: Sequence[CellVerdict], u: MetricUnit) -> str:
    """Return `Some 60 seeds would show 1 point; these 10 show 2.7.`; "" where no spread is known."""
    seeds = {cell.cell: cell.seeds for cell in cells if cell.seeds}
    if not seeds:
        return ""
    most = max(seeds, key=lambda cell: seeds[cell])
    n = math.ceil(median(cell.n for cell in cells if cell.seeds))
    shows = median(cell.shows for cell in cells if cell.seeds) * u.factor
    middle = math.ceil(median(seeds.values()))
    line = f"Some {middle} seeds would show {spell_worth(study, u)}; these {n} show {shows:.1f}"
    if len(cells) == 1:
        return f"{line}."
    span = (
        f"{min(seeds.values())} to {seeds[most]} seeds for {spell_worth(study, u)}, {study.cells[most].label} the most"
    )
    return f"{line} in the median regime ({span})."
