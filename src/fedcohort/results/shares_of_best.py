"""What a run had spent when its first evaluation had a share of its own best accuracy."""

from typing import Any

import numpy as np

from fedcohort import units
from fedcohort.record.history import HEADLINE, History
from fedcohort.results.target import find_crossing

CLOCK, DOWN, UP = "time/virtual_s", "comm/down_bytes", "comm/up_bytes"
SHARES = (0.8, 0.9, 0.95)  # of the best accuracy


def shares_of_best(history: History) -> list[dict[str, Any]]:
    """Return, for each of `SHARES`, the first round with that share of the run's best headline, and what it had cost.

    [] if the headline was never measured. virtual_s is None if no time passes in the run, bytes if they were not
    logged.
    """
    metrics = history.metrics
    values = metrics[HEADLINE].to_numpy() if HEADLINE in metrics else np.empty(0)
    if not np.isfinite(values).any() or np.nanmax(values) <= 0:
        return []
    timed = CLOCK in metrics and bool((metrics[CLOCK] > 0).any())
    found = []
    for share in SHARES:
        target = share * float(np.nanmax(values))
        at = find_crossing(history.steps, values, target)
        if at is None:  # the untrained model, which never counts, is the best
            continue
        row = metrics.iloc[at]
        traffic = float(row[DOWN] + row[UP]) if {DOWN, UP} <= set(metrics.columns) else float("nan")
        clock = float(row[CLOCK]) if timed else float("nan")
        cost = {"virtual_s": clock, "bytes": traffic}
        known = {name: value if np.isfinite(value) else None for name, value in cost.items()}
        found.append({"share": share, "target": target, "round": history.steps[at], **known})
    return found


def describe(found: dict[str, Any]) -> tuple[str, str]:
    """`to 90 % of its best, 78.1 %` and `round 12, 20 min 34 s, 31 MB`, of one that `shares_of_best` returns."""
    clock = "no clock" if found["virtual_s"] is None else units.seconds(found["virtual_s"])
    traffic = "bytes unknown" if found["bytes"] is None else units.bytes_(found["bytes"])
    label = f"to {100 * found['share']:.0f} % of its best, {units.percent(found['target'])}"
    return label, f"round {found['round']}, {clock}, {traffic}"
