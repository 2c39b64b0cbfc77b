"""The cost of a run until its accuracy first reached given shares of the run's best accuracy."""

from typing import Any

import numpy as np

from fedcohort import units
from fedcohort.record.history import MAIN_METRIC, History
from fedcohort.results.target import find_crossing

CLOCK, DOWN, UP = "time/virtual_s", "comm/down_bytes", "comm/up_bytes"
SHARES = (0.8, 0.9, 0.95)  # shares of the best accuracy


def shares_of_best(history: History) -> list[dict[str, Any]]:
    """Return, for each of `SHARES`, the first round with that share of the run's best test accuracy, and its cost.

    The list is empty if the test accuracy was never measured. `virtual_s` is None if no time passes in the run, and
    `bytes` is None if they were not logged.
    """
    metrics = history.metrics
    values = metrics[MAIN_METRIC].to_numpy() if MAIN_METRIC in metrics else np.empty(0)
    if not np.isfinite(values).any() or np.nanmax(values) <= 0:
        return []
    timed = CLOCK in metrics and bool((metrics[CLOCK] > 0).any())
    reached = []
    for share in SHARES:
        target = share * float(np.nanmax(values))
        index = find_crossing(history.steps, values, target)
        if index is None:  # the untrained model, which never counts, is the best
            continue
        row = metrics.iloc[index]
        traffic = float(row[DOWN] + row[UP]) if {DOWN, UP} <= set(metrics.columns) else float("nan")
        clock = float(row[CLOCK]) if timed else float("nan")
        cost = {"virtual_s": clock, "bytes": traffic}
        finite = {name: value if np.isfinite(value) else None for name, value in cost.items()}
        reached.append({"share": share, "target": target, "round": history.steps[index], **finite})
    return reached


def describe(entry: dict[str, Any]) -> tuple[str, str]:
    """Return label and text of an entry of `shares_of_best`.

    These are `to 90 % of its best, 78.1 %` and `round 12, 20 min 34 s, 31 MB`.
    """
    clock = "no clock" if entry["virtual_s"] is None else units.seconds(entry["virtual_s"])
    traffic = "bytes unknown" if entry["bytes"] is None else units.bytes_(entry["bytes"])
    label = f"to {100 * entry['share']:.0f} % of its best, {units.percent(entry['target'])}"
    return label, f"round {entry['round']}, {clock}, {traffic}"
