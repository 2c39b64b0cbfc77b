"""What a comparison says of each setting, as data for the sentences of the templates."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fedcohort.report.comparison.tables import COST_NAMES, difference_decimals, show_p
from fedcohort.report.render import render
from fedcohort.results.compare import Cell, Entry
from fedcohort.results.difference import NO_DIFFERENCE
from fedcohort.results.matching.question import Answer
from fedcohort.results.metric import MetricUnit, unit_of
from fedcohort.results.verdict import sign_of

STEADY = 0.005 / 20  # slope of an accuracy per round, above which the baseline is still improving
EQUAL = 0.005  # relative difference of costs below which they count as equal


@dataclass(frozen=True)
class Method:
    """One method beside the baseline, with numbers as they are shown.

    Attributes:
        verdict: as `results.verdict` names it.
        size: absolute mean difference, with its unit.
        signed: mean difference with its sign and unit.
        interval: `[0.6, 4.1]` of the size, signed where it spans zero; "" where there is none.
        p: after the correction.
        n: paired seeds.
        reason: why there is no interval.
        costs: (times the baseline's, name of the cost) of each cost that differs.
        knows_costs: whether a cost of both is known.
        unlike: options that differ beside what is compared.
        oracle: whether the method reads what no server can know.
    """

    name: str
    verdict: str
    size: str
    signed: str
    interval: str
    p: str
    n: int
    reason: str
    costs: Sequence[tuple[str, str]]
    knows_costs: bool
    unlike: Sequence[str]
    oracle: bool


@dataclass(frozen=True)
class SettingVerdict:
    """What is said of one setting.

    Attributes:
        name: "" where there is one setting only.
        methods: the best first.
        family: tests that the correction covers.
        seeds_needed: that show the difference `worth`; None if not known.
        shown: difference that the present seeds show; "" if not known.
        improving: whether the baseline still improves over the window of its result.
    """

    name: str
    methods: Sequence[Method]
    family: int
    seeds_needed: int | None
    shown: str
    improving: bool


def list_verdicts(answer: Answer) -> list[str]:
    """Return the verdict in sentences, one a line; none without a baseline."""
    if answer.question.baseline is None:
        return []
    table = answer.headline
    unit = unit_of(table.options.metric)
    rules, factor = table.options.rules, unit.factor
    text = render(
        "verdict.md.j2",
        settings=describe_settings(answer),
        baseline=answer.question.baseline,
        correction=table.options.correction.capitalize(),
        worth=_quantity(rules.worth * factor, unit) if rules.worth else "",
        least=_quantity(rules.least * factor, unit),
        margin=_quantity(rules.margin * factor, unit),
        least_seeds=rules.seeds,
        newest=answer.newest,
    )
    return [line.strip() for line in text.splitlines() if line.strip()]


def describe_settings(answer: Answer) -> list[SettingVerdict]:
    """Return what is said of each setting that has a method to compare."""
    table, described = answer.headline, []
    unit, places = unit_of(table.options.metric), difference_decimals(table)
    for name, setting in table.settings.items():
        entries = {c: entry for c, entry in table.in_setting(name).items() if entry.difference is not None}
        if not entries:
            continue
        methods = [_describe(answer, (name, condition), entry, unit, places) for condition, entry in entries.items()]
        shown = _quantity(setting.detectable * unit.factor, unit) if math.isfinite(setting.detectable) else ""
        improving = unit.name == "%" and setting.slope > STEADY
        described.append(SettingVerdict(name, methods, setting.family, setting.seeds_needed, shown, improving))
    return described


def _describe(answer: Answer, cell: Cell, entry: Entry, unit: MetricUnit, places: int) -> Method:
    gap = entry.difference or NO_DIFFERENCE
    mean, low, high = (value * unit.factor for value in (gap.mean, gap.low, gap.high))
    ends = sorted((abs(low), abs(high))) if sign_of(entry.verdict) else (low, high)
    interval = f"[{ends[0]:.{places}f}, {ends[1]:.{places}f}]" if math.isfinite(gap.half) else ""
    times = {COST_NAMES[cost]: by_cell[cell].times for cost, by_cell in answer.costs.items()}
    costs = [(f"{x:.2f}", name) for name, x in times.items() if math.isfinite(x) and abs(x - 1) > EQUAL]
    unit_name = f" {unit.difference}" if unit.difference else ""
    return Method(
        name=cell[1],
        verdict=entry.verdict,
        size=f"{abs(mean):.{places}f}{unit_name}",
        signed=f"{mean:+.{places}f}{unit_name}",
        interval=interval,
        p=show_p(entry.p),
        n=gap.n,
        reason=gap.reason,
        costs=costs,
        knows_costs=any(map(math.isfinite, times.values())),
        unlike=answer.unlike.get(cell, ()),
        oracle=entry.oracle,
    )


def _quantity(value: float, unit: MetricUnit) -> str:
    """Return `1 point`, `2.7 points` or `0.05 nats`."""
    number = f"{value:.2g}"
    name = unit.difference.removesuffix("s") if unit.difference == "points" and number == "1" else unit.difference
    return f"{number} {name}".strip()
