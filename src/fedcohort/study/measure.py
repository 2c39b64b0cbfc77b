"""What a study keeps of a run: a row of numbers, and its curve."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedcohort.errors import OptionError
from fedcohort.record import card, provenance
from fedcohort.record.history import History, read
from fedcohort.results.shares_of_best import CLOCK, DOWN, UP, find_first
from fedcohort.round.score_correlation import split_name
from fedcohort.study import behaviour
from fedcohort.types import Values

SPENT = {  # by the run's end, evaluated there or not: the sum of these metrics
    "virtual_s": (CLOCK,),
    "bytes": (DOWN, UP),
    "client_flops": ("comp/client_flops",),
    "server_flops": ("comp/server_flops",),
    "probe_bytes": ("comm/probe_bytes",),
}

LATE_SHARE = 1 / 6  # of a clock's time, as 10 rounds are of 60


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


def summarise(found: Trajectory, late: int, target: float | None, clock_s: float | None = None) -> dict[str, Any]:
    """Return what follows from the curve: late mean, last and best value, and what it took to the target.

    late: how many evaluated rounds at the end are averaged; where there are fewer, all but the first model's own.
    clock_s: where the run ends by a clock (`until.virtual_s`), that: the late mean is over its last sixth then. As many
        rounds would be most of a slow run, and the end of a fast one.
    target: met in single precision, as curves are kept: 0.9 is below 0.9 there. What a round brought that ended after
        the clock came too late for it.
    """
    trained = found.value[found.steps > 0]
    own = trained if len(trained) else found.value
    in_time = found.virtual_s <= (math.inf if clock_s is None else clock_s)
    kept = np.where(in_time, found.value.astype(np.float32).astype(np.float64), -math.inf)
    at = None if target is None else find_first(kept, float(np.float32(target)))
    unknown = math.nan
    return {
        "late": float(own[-late:].mean()) if clock_s is None else mean_over_time(found, clock_s),
        "last": float(own[-1]),
        "best": float(found.value.max()),
        "target": unknown if target is None else float(target),
        "rounds_to_target": unknown if at is None else float(found.steps[at]),
        "virtual_s_to_target": unknown if at is None else float(found.virtual_s[at]),
        "bytes_to_target": unknown if at is None else float(found.bytes[at]),
    }


def mean_over_time(found: Trajectory, clock_s: float) -> float:
    """Return the mean over the last sixth of `clock_s` virtual seconds, in which the newest model counts.

    A model is there from the end of its round, in time, until that of the next one; what came after `clock_s` is too
    late, and a run that ended before by its number of rounds stays as good as it was.
    """
    since, begin = (1 - LATE_SHARE) * clock_s, found.virtual_s.copy()
    begin[:1] = -math.inf  # before the first evaluation there was that model, too
    end = np.append(begin[1:], math.inf)
    seconds = np.minimum(end, clock_s) - np.maximum(begin, since)
    there = seconds > 0
    return float(np.average(found.value[there], weights=seconds[there]))


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
    spent = {name: sum(history.final.get(each, 0.0) for each in metrics) for name, metrics in SPENT.items()}
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
