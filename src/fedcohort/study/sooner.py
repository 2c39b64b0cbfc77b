"""Who is sooner at the target than the baseline: a table a unit, and what the pages say of them."""

import math
from collections.abc import Mapping, Sequence

from fedcohort import units
from fedcohort.report.sheet import NONE, Sheet
from fedcohort.results.speed_up import RESTRICTED
from fedcohort.results.verdict import UNREACHED, Rules
from fedcohort.study.definition import METHOD, Study
from fedcohort.study.sheets import MARK, call_row, spell_few
from fedcohort.study.speed import Speed, Speeds
from fedcohort.study.verdict import CellVerdict, RowVerdict, Verdict
from fedcohort.study.wording import count

NAMES = {"virtual_s": "virtual time", "bytes": "bytes", "rounds": "rounds"}
SHOWN = 2  # methods of a unit that a line names
LEGEND = (
    "Times as fast to the target: the baseline's cost over the row's, the geometric mean over seeds of the cost until "
    "the target is met, restricted where a run never met it to the smaller cost of the pair. *>=*: only the baseline "
    "never met it on some seed, *<=*: only the row, *restricted*: both. In brackets, the client FLOPs and the bytes of "
    "the row's whole runs over those of the baseline's: a method may be sooner and spend more. \u25b2 and \u25bc: p of "
    "the paired t-test on the logs is below the level after Holm over the methods of the regime, and the ratio is "
    f"{Rules().ratio:g} or more, or its inverse or less. Each unit is corrected separately."
)


def list_sheets(study: Study, verdict: Verdict, speeds: Speeds) -> list[Sheet]:
    """Return the tables, selectors down, cells across; none where no cell has a target that anybody met."""
    sheets = []
    for unit, of in speeds.items():
        cells = [cell for cell in verdict.cells if any(place[0] == cell for place in of)]
        if not cells:
            continue
        base = (_spell_target(verdict.cells[cell].rows[study.baseline], unit) for cell in cells)
        rows: list[tuple[str, ...]] = [(study.baseline, *base)]
        for row in dict.fromkeys(row for cell in cells for row in verdict.cells[cell].rows):
            if any((cell, row) in of for cell in cells):
                shown = (_spell(of.get((cell, row)), verdict.cells[cell], study.baseline) for cell in cells)
                rows.append((call_row(study, row), *shown))
        head = ("selector", *(study.cells[cell].label for cell in cells))
        title = f"times as fast as {study.baseline} to the target, by {NAMES[unit]}"
        sheets.append(Sheet(f"speed_{unit}", title, head, rows))
    return sheets


def _spell_target(row: RowVerdict, unit: str) -> str:
    """`45 rounds`, `98 min 20 s`, or, where half of the seeds never met it, `4 of 10`."""
    value = row.target[unit]
    if not math.isfinite(value):
        return f"{row.reached} of {row.value.n}"
    return {"virtual_s": units.seconds, "bytes": units.bytes_, "rounds": "{:.0f} rounds".format}[unit](value)


def _spell(speed: Speed | None, cell: CellVerdict, baseline: str) -> str:
    return (
        NONE if speed is None else f"{spell_speed(speed)} {spell_costs(speed)}{spell_few(speed.up.n, cell, baseline)}"
    )


def spell_speed(speed: Speed) -> str:
    """Return `1.91▲`, `>=1.91▲`, `1.10 (restricted)` or, where most pairs never met it, `not reached`."""
    if speed.verdict == UNREACHED:
        return "not reached"
    bound = speed.up.bound
    if bound == RESTRICTED:
        return f"{speed.up.ratio:.2f}{MARK[speed.sign]} ({bound})"
    return f"{bound}{speed.up.ratio:.2f}{MARK[speed.sign]}"


def spell_costs(speed: Speed) -> str:
    """`(7.6, 2.8)`: client FLOPs and bytes by the end of the runs, over the baseline's."""
    return f"({', '.join(f'{cost:.1f}' if math.isfinite(cost) else NONE for cost in speed.costs.values())})"


def tell_legend(speeds: Speeds) -> list[str]:
    """Say how the tables are read; nothing where there are none."""
    return [LEGEND] if any(speeds.values()) else []


def list_sooner(study: Study, cell: str, speeds: Speeds) -> dict[str, list[str]]:
    """Return by unit the methods that are sooner in the cell, the soonest first, as `fedcbs 1.91 (1.0, 1.2)`."""
    found = {}
    for unit, of in speeds.items():
        sooner = [(row, of[where, row]) for where, row in of if where == cell and of[where, row].sign > 0]
        methods = sorted(
            (each for each in sooner if study.role_of(each[0]) == METHOD), key=lambda each: -each[1].up.ratio
        )
        found[unit] = [
            f"{row} {spell_speed(speed).replace(MARK[1], '')} {spell_costs(speed)}" for row, speed in methods
        ]
    return found


def spell_sooner(study: Study, cell: str, speeds: Speeds) -> str:
    """`virtual time: fedcbs 1.86 (1.0, 1.2), oort 1.68 (1.6, 1.1); bytes: fedcbs 1.30 (1.0, 1.2)`."""
    parts = []
    for unit, methods in list_sooner(study, cell, speeds).items():
        more = f" and {len(methods) - SHOWN} more" if len(methods) > SHOWN else ""
        parts += [f"{NAMES[unit]}: {', '.join(methods[:SHOWN])}{more}"] if methods else []
    return "; ".join(parts) or NONE


def count_sooner(study: Study, speeds: Speeds) -> list[str]:
    """Say in how many regimes a method is sooner, by each unit; nothing where no target was met."""
    met: Mapping[str, None] = dict.fromkeys(cell for of in speeds.values() for cell, _ in of)
    if not met:
        return []
    sooner: Sequence[dict[str, list[str]]] = [list_sooner(study, cell, speeds) for cell in met]
    counts = [sum(bool(of[unit]) for of in sooner) for unit in NAMES]
    where = (
        f"of the {count(len(met), 'regime')} where it was met" if len(met) > 1 else "in the one regime where it was met"
    )
    if not any(counts):
        return [f"**To the target**: {where}, no method is shown to be sooner there than {study.baseline}."]
    if len(met) > 1:
        said = [f"in {n} by {name}" for n, name in zip(counts, NAMES.values(), strict=True)]
    else:
        said = [f"by {name}" for n, name in zip(counts, NAMES.values(), strict=True) if n]
    listed = " and ".join([*([", ".join(said[:-1])] if said[1:] else []), said[-1]])
    return [f"**To the target**: {where}, a method is sooner there than {study.baseline} {listed}."]
