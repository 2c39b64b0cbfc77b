"""A run's metric over its rounds, and what they had cost by then."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float64

from fedcohort.observe.comparison.runs import Cell, Sorted
from fedcohort.observe.comparison.tracked import Run
from fedcohort.observe.reached import CLOCK, DOWN, UP
from fedcohort.observe.tracking import server

if TYPE_CHECKING:
    from mlflow import MlflowClient

Curve = Float64[np.ndarray, "_n"]
FLOPS = "comp/client_flops"
AXES = ("virtual_s", "bytes", "client_flops", "rounds")


@dataclass(frozen=True)
class Series:
    """A run's curve: the metric at the rounds that measured it, each [n].

    Attributes:
        rounds: that were done.
        value: of the metric.
        virtual_s, bytes, client_flops: seconds on the simulated clock, bytes down and up, operations of all clients,
            all of them since the start; NaN where they weren't logged.
    """

    rounds: Curve
    value: Curve
    virtual_s: Curve
    bytes: Curve
    client_flops: Curve

    def along(self, axis: str) -> Curve:
        """The cost that `axis`, one of `AXES`, stands for."""
        found: Curve = getattr(self, axis)
        return found


def fetch(client: "MlflowClient", found: Sorted, metric: str) -> Mapping[Cell, Mapping[int, Series]]:
    """Fetch the histories of all runs that are compared, by seed."""
    return {
        cell: {seed: _series(client, run, metric) for seed, run in runs.items()} for cell, runs in found.cells.items()
    }


def _series(client: "MlflowClient", run: Run, metric: str) -> Series:
    def history(name: str) -> dict[int, float]:
        if name not in run.metrics:
            return {}
        return {each.step: each.value for each in server.patient(lambda: client.get_metric_history(run.id, name))}

    values, clock, down, up, flops = (history(name) for name in (metric, CLOCK, DOWN, UP, FLOPS))
    steps: Sequence[int] = sorted(values)
    nan = float("nan")
    return Series(
        rounds=np.array(steps, dtype=float),
        value=np.array([values[step] for step in steps]),
        virtual_s=np.array([clock.get(step, nan) for step in steps]),
        bytes=np.array([down.get(step, nan) + up.get(step, nan) for step in steps]),
        client_flops=np.array([flops.get(step, nan) for step in steps]),
    )
