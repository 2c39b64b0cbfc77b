"""What numbers of a comparison are shown in: their unit, and how many decimals."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fedcohort import units
from fedcohort.observe.comparison.table import Table


@dataclass(frozen=True)
class MetricUnit:
    """What a metric's values are shown in: value * factor, `name` after them."""

    factor: float
    name: str


def unit_of(metric: str, largest: float = 0.0) -> MetricUnit:
    """largest: the largest value shown; seconds, bytes and operations take a prefix by it."""
    last = metric.rpartition("/")[2]
    if last.startswith("acc") and last != "acc_var":
        return MetricUnit(100.0, "%")
    if last == "acc_var":
        return MetricUnit(1.0, "%²")
    if "loss" in last:
        return MetricUnit(1.0, "nats")
    for prefix, name in (("time/", "s"), ("comm/", "B"), ("comp/", "FLOP")):
        if metric.startswith(prefix):
            if name == "s":
                return MetricUnit(1.0, "s")
            power = min(max(int(math.log10(largest) // 3), 0), 5) if largest > 0 else 0
            return MetricUnit(1000.0**-power, units.PREFIXES[power] + name)
    return MetricUnit(1.0, "")


def unit(table: Table) -> MetricUnit:
    return unit_of(table.metric, max(abs(entry.value.mean) for entry in table.entries.values()))


def number(value: float, digits: int) -> str:
    return f"{value:.{digits}f}" if math.isfinite(value) else "–"


def digits(table: Table) -> int:
    """Decimals that show the middle one of the spreads in two digits; one at least."""
    return _digits([entry.value.std * unit(table).factor for entry in table.entries.values()])


def digits_of_gaps(table: Table) -> int:
    """Decimals that show the middle one of the differences' intervals in two digits; one at least."""
    gaps = [entry.difference.over for entry in table.entries.values() if entry.difference is not None]
    known = [gap for gap in gaps if gap.half > 1e-9 * abs(gap.mean)]  # less is rounding
    return _digits([gap.half * unit(table).factor for gap in known])


def _digits(spreads: Sequence[float]) -> int:
    known = sorted(spread for spread in spreads if math.isfinite(spread) and spread > 0)
    return min(max(1 - math.floor(math.log10(known[len(known) // 2])), 1), 6) if known else 3
