"""Tables of the speed-ups to the target, one an axis, and the methods that are faster in a setting."""

import math

from fedcohort import units
from fedcohort.report.table import Table
from fedcohort.results.speed_up import RESTRICTED
from fedcohort.results.verdict import UNREACHED
from fedcohort.study.definition import METHOD, Study
from fedcohort.study.formats import EMPTY, SIGNS
from fedcohort.study.page_tables import make_table, name_row, split_settings, write_few
from fedcohort.study.speed import Speed, Speeds
from fedcohort.study.verdict import CellVerdict, RowVerdict, Verdict

AXES = {"virtual_s": "virtual time", "bytes": "bytes", "rounds": "rounds"}
NAMED = 2  # methods of an axis that a cell names


def speed_tables(study: Study, verdict: Verdict, speeds: Speeds) -> list[tuple[str, str, Table]]:
    """Return axis, title and table, methods down, settings across, of settings whose target some run of a pair met."""
    tables = []
    for axis, by_place in speeds.items():
        met = [cell for cell in verdict.cells if any(place[0] == cell for place in by_place)]
        for title, cells in split_settings(study, met):
            base = [_write_target(verdict.cells[cell].rows[study.baseline], axis) for cell in cells]
            labels = [study.cells[cell].label for cell in cells]
            lines = [{"method": f"{study.baseline} (cost)", **dict(zip(labels, base, strict=True))}]
            for row in dict.fromkeys(row for cell in cells for row in verdict.cells[cell].rows):
                if any((cell, row) in by_place for cell in cells):
                    shown = [
                        _write_cell(by_place.get((cell, row)), verdict.cells[cell], study.baseline) for cell in cells
                    ]
                    lines.append({"method": name_row(study, row), **dict(zip(labels, shown, strict=True))})
            caption = f"Speed-up to the target over {study.baseline}, by {AXES[axis]}{f': {title}' if title else ''}"
            tables.append((axis, title, make_table(lines, caption)))
    return tables


def _write_target(row: RowVerdict, axis: str) -> str:
    """Return `45 rounds`, `98 min 20 s`, or, where half of the seeds never met it, `4 of 10`."""
    value = row.target[axis]
    if not math.isfinite(value):
        return f"{row.reached} of {row.value.n}"
    return {"virtual_s": units.seconds, "bytes": units.bytes_, "rounds": "{:.0f} rounds".format}[axis](value)


def _write_cell(speed: Speed | None, cell: CellVerdict, baseline: str) -> str:
    if speed is None:
        return EMPTY
    return f"{write_speed(speed)} {write_costs(speed)}{write_few(speed.up.n, cell, baseline)}"


def write_speed(speed: Speed) -> str:
    """Return `1.91▲`, `>=1.91▲`, `1.10 (restricted)` or, where most pairs never met the target, `not reached`."""
    if speed.verdict == UNREACHED:
        return "not reached"
    bound, ratio = speed.up.bound, f"{speed.up.ratio:.2f}{SIGNS[speed.sign]}"
    return f"{ratio} ({bound})" if bound == RESTRICTED else f"{bound}{ratio}"


def write_costs(speed: Speed) -> str:
    """Return `(7.6, 2.8)`: client FLOPs and bytes of whole runs over the baseline's."""
    return f"({', '.join(f'{cost:.1f}' if math.isfinite(cost) else EMPTY for cost in speed.costs.values())})"


def name_faster(study: Study, cell: str, speeds: Speeds) -> str:
    """Return `virtual time: fedcbs 1.86 (1.0, 1.2); bytes: ...`, the fastest first; "" where no method is faster."""
    parts = []
    for axis, by_place in speeds.items():
        faster = [
            (row, speed)
            for (where, row), speed in by_place.items()
            if where == cell and speed.sign > 0 and study.role_of(row) == METHOD
        ]
        faster.sort(key=lambda named: -named[1].up.ratio)
        names = [f"{row} {write_speed(speed).replace(SIGNS[1], '')} {write_costs(speed)}" for row, speed in faster]
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        parts += [f"{AXES[axis]}: {', '.join(names[:NAMED])}{more}"] if names else []
    return "; ".join(parts)
