"""All numbers of a study's page with all digits: `tables/numbers.csv`."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from fedcohort.study.definition import Study
from fedcohort.study.verdict import COSTS, TO_TARGET, CellVerdict, RowVerdict, Verdict, over_of

if TYPE_CHECKING:
    import pandas as pd


def numbers_frame(study: Study, verdict: Verdict, metrics: Mapping[str, str] | None = None) -> "pd.DataFrame":
    """Return all numbers in the metric's own unit, one line a setting and row; what is not finite is empty.

    metrics: of each setting, where it isn't the study's.
    """
    import pandas as pd

    lines = [
        _line(study, cell, row, (metrics or {}).get(cell.cell, study.metric))
        for cell in verdict.cells.values()
        for row in cell.rows.values()
    ]
    return pd.DataFrame(lines, dtype=object)


def _line(study: Study, cell: CellVerdict, row: RowVerdict, metric: str) -> dict[str, object]:
    over, closed = over_of(row), row.closed
    line: dict[str, object] = {
        "cell": cell.cell,
        "selector": row.row,
        "role": row.role,
        "metric": metric,
        "n": row.value.n,
        "late_mean": row.value.mean,
        "late_std": row.value.std,
        "diff": over.mean,
        "diff_ci95_low": over.low,
        "diff_ci95_high": over.high,
        "diff_std": over.std,
        "diff_median": over.median,
        "diff_min": over.worst,
        "diff_max": over.best,
        "diff_p": over.p,
        "diff_n": over.n,
        "holm_p": row.ps.in_setting,
        "holm_p_of_method": row.ps.of_method,
        "holm_p_all": row.ps.anywhere,
        "verdict": row.verdict,
        "sign": row.sign,
        "gap_closed": closed.share if closed else None,
        "gap_closed_ci95_low": closed.low if closed else None,
        "gap_closed_ci95_high": closed.high if closed else None,
        "rank": row.rank,
        **{name: row.costs[name] for name in COSTS},
        "last": row.last,
        **{f"{axis}_to_target": row.target[axis] for axis in TO_TARGET},
        "reached": row.reached if study.cells[cell.cell].target is not None else None,
        "ended_by_rounds": row.early,
        "other_code": row.other_code,
    }
    return {name: None if isinstance(x, float) and not math.isfinite(x) else x for name, x in line.items()}
