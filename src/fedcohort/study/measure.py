"""What a study keeps of a run: a row of numbers, and its curve."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedcohort.errors import OptionError
from fedcohort.observe.reached import CLOCK, DOWN, UP, find_first
from fedcohort.record import card, provenance
from fedcohort.record.history import read
from fedcohort.types import Values

SPENT = {"client_flops": "comp/client_flops", "server_flops": "comp/server_flops", "probe_bytes": "comm/probe_bytes"}


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
    metrics = read(folder).metrics
    if metric not in metrics:
        raise OptionError(f"metric must be one of {', '.join(map(str, metrics))}, got {metric!r}")
    rows = metrics[metrics[metric].notna()]
    cost = {name: rows[name].ffill().fillna(0.0).to_numpy() for name in (CLOCK, DOWN, UP) if name in rows}
    zero = np.zeros(len(rows))
    load = cost.get(DOWN, zero) + cost.get(UP, zero)
    return Trajectory(rows.index.to_numpy(dtype=float), rows[metric].to_numpy(), cost.get(CLOCK, zero), load)


def summarise(found: Trajectory, late: int, target: float | None) -> dict[str, Any]:
    """Return what follows from the curve: late mean, last and best value, and what it took to the target.

    late: how many evaluated rounds at the end are averaged; where there are fewer, all but the first model's own.
    """
    trained = found.value[found.steps > 0]
    own = trained if len(trained) else found.value
    at = None if target is None else find_first(found.value, target)
    unknown = math.nan
    return {
        "late": float(own[-late:].mean()),
        "last": float(own[-1]),
        "best": float(found.value.max()),
        "target": unknown if target is None else float(target),
        "rounds_to_target": unknown if at is None else float(found.steps[at]),
        "virtual_s_to_target": unknown if at is None else float(found.virtual_s[at]),
        "bytes_to_target": unknown if at is None else float(found.bytes[at]),
    }


def measure(folder: Path, metric: str) -> tuple[dict[str, Any], Trajectory]:
    """Return what the run in `folder` cost and where it comes from, and its curve."""
    found = read_trajectory(folder, metric)
    history = read(folder)
    final = {name: _last(history.metrics, column) for name, column in SPENT.items()}
    start: Mapping[str, Any] = provenance.starts(folder)[-1]
    facts = {
        "commit": start["commit"],
        "dirty": bool(start["dirty"]),
        "sources": start["sources"],
        "versions": json.dumps(start["versions"], sort_keys=True),
        "rounds": int(history.steps[-1]),
        "virtual_s": float(found.virtual_s[-1]),
        "bytes": float(found.bytes[-1]),
        "fingerprint": history.fingerprints[-1],
        "yardstick": card.load(folder).tags.get("yardstick", ""),
        **final,
    }
    return facts, found


def _last(metrics: Any, column: str) -> float:  # noqa: ANN401 - a pandas frame, imported late
    return float(metrics[column].dropna().iloc[-1]) if column in metrics and metrics[column].notna().any() else 0.0
