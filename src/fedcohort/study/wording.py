"""The words of a study's pages: units, differences, counts."""

import math
from collections.abc import Sequence
from statistics import median

from fedcohort.report.sheet import NONE
from fedcohort.results.metric import MetricUnit, unit_of
from fedcohort.study.definition import Study
from fedcohort.study.paired import Mean
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
    return f"{spell_mean(cell.gap.over, u, sign=True)} ({cell.best})" if cell.gap else NONE


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
    """Say how many seeds a small difference needs; "" where no spread is known."""
    known = {cell.cell: cell.seeds for cell in cells if cell.seeds}
    if not known:
        return ""
    most = max(known, key=lambda cell: known[cell])
    needs = f"Seeds that show a true difference of {spell_worth(study, u)} with a chance of 80 %: "
    if len(cells) == 1:
        return f"{needs}{known[most]}."
    middle = math.ceil(median(known.values()))
    return f"{needs}{min(known.values())} to {known[most]} ({study.cells[most].label}), {middle} in the median regime."
