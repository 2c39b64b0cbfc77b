"""Measure a run for a study: the curve of its metric, its result, its costs and its origin."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from fedcohort.errors import OptionError
from fedcohort.record import card, provenance
from fedcohort.record.history import History, read
from fedcohort.results.frame import COSTS
from fedcohort.results.run import late_window, mean_over_time, newest_for, run_result
from fedcohort.results.shares_of_best import CLOCK, DOWN, UP
from fedcohort.results.target import find_crossing
from fedcohort.round.score_correlation import split_name
from fedcohort.study import behaviour
from fedcohort.types import Values

Crossing = Literal["mean", "first"]


@dataclass(frozen=True)
class Trajectory:
    """The metric of a run and its cumulative costs, at the rounds that evaluated the metric.

    Attributes:
        steps: rounds; 0 is the untrained model.
        value: the metric.
        virtual_s: seconds on the simulated clock.
        bytes: down and up, of all clients.
    """

    steps: Values
    value: Values
    virtual_s: Values
    bytes: Values


def summarise(
    curve: Trajectory,
    n_late: int | None,
    target: float | None,
    clock_s: float | None = None,
    crossing: Crossing = "mean",
) -> dict[str, Any]:
    """Return the columns of `results.parquet` that follow from the curve: result, last and best value, cost to target.

    Args:
        curve: curve of the run.
        n_late: number of last evaluations whose mean is the result; None for those of the last sixth, three at least
            (`results.run`).
        target: value of the metric; None for none.
        clock_s: virtual seconds at which the run ends (`until.virtual_s`). The result is then the mean over the last
            sixth of this time, and evaluations after it do not meet the target.
        crossing: `mean`: the mean of as many evaluations as the result averages must meet the target. `first`: one
            evaluation must meet it, as in tables of papers.
    """
    trained = curve.steps > 0
    values = curve.value[trained] if trained.any() else curve.value
    if clock_s is not None:
        result = mean_over_time(curve.virtual_s, curve.value, clock_s)
        window = int((newest_for(curve.virtual_s, clock_s) > 0).sum())
    elif n_late is None:
        result, window = run_result(curve.steps, curve.value), int(late_window(curve.steps).sum())
    else:
        result, window = float(values[-n_late:].mean()), min(n_late, len(values))
    index = None
    if target is not None:
        in_time = curve.virtual_s <= (math.inf if clock_s is None else clock_s)
        window = max(window, 1) if crossing == "mean" else 1
        index = find_crossing(curve.steps[in_time], curve.value[in_time], target, window)
    costs_at_target = {"rounds": curve.steps, "virtual_s": curve.virtual_s, "bytes": curve.bytes}
    return {
        "late": result,
        "last": float(values[-1]),
        "best": float(curve.value.max()),
        "target": math.nan if target is None else float(target),
        **{
            f"{axis}_to_target": math.nan if index is None else float(costs[index])
            for axis, costs in costs_at_target.items()
        },
    }


def measure(folder: Path, metric: str) -> tuple[dict[str, Any], Trajectory]:
    """Return the costs and the origin of the run in `folder`, as columns of `results.parquet`, and its curve.

    Raises `OptionError` if the run has no such metric.
    """
    history = read(folder)
    if metric not in history.measured:
        raise OptionError(f"metric must be one of {', '.join(history.measured)}, got {metric!r}")
    rows = history.metrics[history.metrics.index.isin(history.measured[metric])]
    zero = np.zeros(len(rows))
    clock, down, up = (
        rows[name].ffill().fillna(0.0).to_numpy() if name in rows else zero for name in (CLOCK, DOWN, UP)
    )
    curve = Trajectory(rows.index.to_numpy(dtype=float), rows[metric].to_numpy(), clock, down + up)
    start: Mapping[str, Any] = provenance.read_starts(folder)[-1]
    facts = {
        "commit": start["commit"],
        "dirty": bool(start["dirty"]),
        "sources": start["sources"],
        "versions": json.dumps(start["versions"], sort_keys=True),
        "rounds": int(history.steps[-1]),
        "fingerprint": history.fingerprints[-1],
        "behaviour": behaviour.fingerprint(history),
        "yardstick": card.load_info(folder).tags.get("yardstick", ""),
        "follows": json.dumps(mean_correlations(history), sort_keys=True),
        **{cost: sum(history.final.get(name, 0.0) for name in names) for cost, names in COSTS.items()},
    }
    return facts, curve


def mean_correlations(history: History) -> dict[str, float]:
    """Return the mean over rounds of each rank correlation in the journal, by `<part>_<fact>`.

    They are those of `round/score_correlation.py`; a selector without scores has none.
    """
    names = {str(name): split_name(str(name)) for name in history.metrics}
    means = {"_".join(pair): float(history.metrics[name].mean()) for name, pair in names.items() if pair is not None}
    return {name: round(rho, 4) for name, rho in means.items() if math.isfinite(rho)}
