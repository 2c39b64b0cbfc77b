"""What a study keeps of a run: a row of numbers, and its curve."""

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
    """A run's metric, and what it had cost by then, at the rounds that evaluated it.

    Attributes:
        steps: rounds, 0 for the model that it began with.
        value: the metric.
        virtual_s: seconds on the simulated clock.
        bytes: down and up, of all clients.
    """

    steps: Values
    value: Values
    virtual_s: Values
    bytes: Values


def read_trajectory(folder: Path, metric: str) -> Trajectory:
    """Read the curve of the run in `folder`. Raises `OptionError` where it has no such metric."""
    history = read(folder)
    if metric not in history.measured:
        raise OptionError(f"metric must be one of {', '.join(history.measured)}, got {metric!r}")
    rows = history.metrics[history.metrics.index.isin(history.measured[metric])]
    cost = {name: rows[name].ffill().fillna(0.0).to_numpy() for name in (CLOCK, DOWN, UP) if name in rows}
    zero = np.zeros(len(rows))
    load = cost.get(DOWN, zero) + cost.get(UP, zero)
    return Trajectory(rows.index.to_numpy(dtype=float), rows[metric].to_numpy(), cost.get(CLOCK, zero), load)


def summarise(
    curve: Trajectory,
    late: int | None,
    target: float | None,
    clock_s: float | None = None,
    crossing: Crossing = "mean",
) -> dict[str, Any]:
    """Return what follows from the curve: late mean, last and best value, and the cost to the target.

    Args:
        curve: of the run.
        late: number of evaluations at the end whose mean is the result; None for those of the last sixth, three at
            least (`results.run`).
        target: of the metric; None for none.
        clock_s: virtual seconds after which the run ends (`until.virtual_s`). The late mean is then over the last sixth
            of this time, whatever `late` says, and evaluations after it do not meet the target.
        crossing: mean, for a target that the mean of as many evaluations as the late mean has must meet; first, for one
            evaluation, as in papers' tables.
    """
    trained = curve.steps > 0
    values = curve.value[trained] if trained.any() else curve.value
    if clock_s is not None:
        result = mean_over_time(curve.virtual_s, curve.value, clock_s)
        window = int((newest_for(curve.virtual_s, clock_s) > 0).sum())
    elif late is None:
        result, window = run_result(curve.steps, curve.value), int(late_window(curve.steps).sum())
    else:
        result, window = float(values[-late:].mean()), min(late, len(values))
    in_time = curve.virtual_s <= (math.inf if clock_s is None else clock_s)
    steps, measured = curve.steps[in_time], curve.value[in_time]
    window = window if crossing == "mean" else 1
    index = None if target is None else find_crossing(steps, measured, target, max(window, 1))
    return {
        "late": result,
        "last": float(values[-1]),
        "best": float(curve.value.max()),
        "target": math.nan if target is None else float(target),
        "rounds_to_target": math.nan if index is None else float(steps[index]),
        "virtual_s_to_target": math.nan if index is None else float(curve.virtual_s[in_time][index]),
        "bytes_to_target": math.nan if index is None else float(curve.bytes[in_time][index]),
    }


def correlations(history: History) -> dict[str, float]:
    """Return what scores, their parts and rewards follow, by `<part>_<fact>`: means over rounds of rank correlations.

    They are those of `round/score_correlation.py`, over all evaluated rounds; none for a selector without scores.
    """
    names = {str(name): split_name(str(name)) for name in history.metrics}
    means = {"_".join(of): float(history.metrics[name].mean()) for name, of in names.items() if of is not None}
    return {name: round(rho, 4) for name, rho in means.items() if math.isfinite(rho)}


def measure(folder: Path, metric: str) -> tuple[dict[str, Any], Trajectory]:
    """Return what the run in `folder` cost and where it comes from, and its curve."""
    found = read_trajectory(folder, metric)
    history = read(folder)
    spent = {name: sum(history.final.get(each, 0.0) for each in metrics) for name, metrics in COSTS.items()}
    start: Mapping[str, Any] = provenance.starts(folder)[-1]
    facts = {
        "commit": start["commit"],
        "dirty": bool(start["dirty"]),
        "sources": start["sources"],
        "versions": json.dumps(start["versions"], sort_keys=True),
        "rounds": int(history.steps[-1]),
        "fingerprint": history.fingerprints[-1],
        "behaviour": behaviour.fingerprint(history),
        "yardstick": card.load(folder).tags.get("yardstick", ""),
        "follows": json.dumps(correlations(history), sort_keys=True),
        **spent,
    }
    return facts, found
