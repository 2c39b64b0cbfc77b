"""All numbers of a study's page with all digits: `tables/numbers.csv`."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from fedcohort.study.definition import Study
from fedcohort.study.verdict import TO_TARGET, MethodVerdict, Verdict

if TYPE_CHECKING:
    import pandas as pd


def numbers_frame(study: Study, verdict: Verdict, metrics: Mapping[str, str] | None = None) -> "pd.DataFrame":
    """Return all numbers in the metric's own unit, one line a setting and method; infinite numbers and NaN are empty.

    metrics: metrics of each setting, where it is not the study's.
    """
    import pandas as pd

    return pd.DataFrame([_line(study, method, metrics or {}) for method in verdict.methods], dtype=object)


def _line(study: Study, method: MethodVerdict, metrics: Mapping[str, str]) -> dict[str, object]:
    difference, closed = method.over, method.closed
    line: dict[str, object] = {
        "cell": method.setting,
        "selector": method.method,
        "role": method.role,
        "metric": metrics.get(method.setting, study.metric),
        "n": method.value.n,
        "late_mean": method.value.mean,
        "late_std": method.value.std,
        "diff": difference.mean,
        "diff_ci95_low": difference.low,
        "diff_ci95_high": difference.high,
        "diff_std": difference.std,
        "diff_median": difference.median,
        "diff_min": difference.worst,
        "diff_max": difference.best,
        "diff_p": difference.p,
        "diff_n": difference.n,
        "holm_p": method.ps.in_setting,
        "holm_p_of_method": method.ps.of_method,
        "holm_p_all": method.ps.anywhere,
        "verdict": method.verdict,
        "sign": method.sign,
        "gap_closed": closed.share if closed else None,
        "gap_closed_ci95_low": closed.low if closed else None,
        "gap_closed_ci95_high": closed.high if closed else None,
        "rank": method.rank,
        **method.costs,
        "last": method.last,
        **{f"{axis}_to_target": method.target[axis] for axis in TO_TARGET},
        "reached": method.reached if study.settings[method.setting].target is not None else None,
        "ended_by_rounds": method.ended_by_rounds,
        "other_code": method.other_code,
    }
    return {name: None if isinstance(x, float) and not math.isfinite(x) else x for name, x in line.items()}
