"""The verdicts of a comparison, as data for the sentences of the template `verdict.md.j2`."""

import math
from typing import Any

from fedcohort.report.comparison.tables import COST_NAMES, difference_decimals, show_p
from fedcohort.report.render import render
from fedcohort.results.compare import Cell, Entry
from fedcohort.results.difference import NO_DIFFERENCE
from fedcohort.results.matching.question import Answer
from fedcohort.results.metric import MetricUnit, unit_of
from fedcohort.results.power import POWER
from fedcohort.results.verdict import sign_of

IMPROVING_SLOPE = 0.005 / 20  # slope of an accuracy per round above which the baseline is still improving
EQUAL_COST = 0.005  # relative difference up to which costs count as equal


def list_verdicts(answer: Answer) -> list[str]:
    """Return the verdicts as sentences; none without a baseline."""
    if answer.question.baseline is None:
        return []
    table = answer.headline
    unit, places = unit_of(table.options.metric), difference_decimals(table)
    methods_by_setting = {}

    def quantity(value: float) -> str:
        """Return a value with its unit, such as `1 point`, `2.7 points` or `0.05 nats`; "" for NaN."""
        number, plural = f"{value * unit.factor:.2g}", unit.difference
        name = plural.removesuffix("s") if plural == "points" and number == "1" else plural
        return f"{number} {name}".strip() if math.isfinite(value) else ""

    for name in table.settings:
        entries = {condition: entry for condition, entry in table.in_setting(name).items() if entry.difference}
        if entries:
            methods_by_setting[name] = [_describe(answer, (name, c), e, unit, places) for c, e in entries.items()]
    text = render(
        "verdict.md.j2",
        methods_by_setting=methods_by_setting,
        settings=table.settings,
        baseline=answer.question.baseline,
        rules=table.options.rules,
        quantity=quantity,
        improving_slope=IMPROVING_SLOPE if unit.name == "%" else math.inf,
        power=f"{100 * POWER:g}",
        newest=answer.newest,
    )
    return [line.strip() for line in text.splitlines() if line.strip()]


def _describe(answer: Answer, cell: Cell, entry: Entry, unit: MetricUnit, places: int) -> dict[str, Any]:
    """Return the values that the template needs for one method, with numbers as text.

    `interval` is that of the absolute difference `size`, or of the signed one without a significant difference. `costs`
    are (times the baseline's, name) of each cost that differs. `unlike` are options that differ as well.
    """
    gap = entry.difference or NO_DIFFERENCE
    mean, low, high = (value * unit.factor for value in (gap.mean, gap.low, gap.high))
    ends = sorted((abs(low), abs(high))) if sign_of(entry.verdict) else (low, high)
    times = {COST_NAMES[cost]: by_cell[cell].times for cost, by_cell in answer.costs.items()}
    unit_name = f" {unit.difference}" if unit.difference else ""
    return {
        "name": cell[1],
        "verdict": entry.verdict,
        "size": f"{abs(mean):.{places}f}{unit_name}",
        "signed": f"{mean:+.{places}f}{unit_name}",
        "interval": f"[{ends[0]:.{places}f}, {ends[1]:.{places}f}]" if math.isfinite(gap.half) else "",
        "p": show_p(entry.p),
        "n": gap.n,
        "reason": gap.reason,
        "costs": [(f"{x:.2f}", name) for name, x in times.items() if math.isfinite(x) and abs(x - 1) > EQUAL_COST],
        "knows_costs": any(map(math.isfinite, times.values())),
        "unlike": answer.unlike.get(cell, ()),
        "oracle": entry.untested,
    }
