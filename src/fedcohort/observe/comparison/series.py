"""A run's metric over its rounds, and what they had cost by then."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float64

from fedcohort.observe.comparison.cells import Cell
from fedcohort.observe.comparison.runs import Sorted
from fedcohort.observe.comparison.tracked import Run
from fedcohort.observe.reached import CLOCK, DOWN, UP
from fedcohort.tracking import compat, server

if TYPE_CHECKING:
    from mlflow import MlflowClient

Curve = Float64[np.ndarray, "_n"]
FLOPS = "comp/client_flops"
AT_A_TIME = 4  # requests to a server
Readings = Mapping[int, float]  # by step
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
    names = (metric, CLOCK, DOWN, UP, FLOPS)
    every = [run for runs in found.cells.values() for run in runs.values()]
    readings = server.patient(lambda: compat.read_histories(client, [run.id for run in every], names))
    if readings is None:
        readings = _ask(client, every, names)
    histories: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
    for id, name, step, value in readings:
        histories[id, name][step] = value
    return {
        cell: {seed: _series(*(histories[run.id, name] for name in names)) for seed, run in runs.items()}
        for cell, runs in found.cells.items()
    }


def _ask(client: "MlflowClient", runs: Sequence[Run], names: Sequence[str]) -> list[compat.Reading]:
    """Ask a server for one history after the other, a few at a time."""

    def history(run: Run, name: str) -> list[compat.Reading]:
        values = server.patient(lambda: client.get_metric_history(run.id, name))
        return [(run.id, name, each.step, compat.read_value(each.value)) for each in values]

    wanted = [(run, name) for run in runs for name in names if name in run.metrics]
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        return [reading for of in pool.map(lambda pair: history(*pair), wanted) for reading in of]


def _series(values: Readings, clock: Readings, down: Readings, up: Readings, flops: Readings) -> Series:
    steps, nan = sorted(values), math.nan
    return Series(
        rounds=np.array(steps, dtype=float),
        value=np.array([values[step] for step in steps]),
        virtual_s=np.array([clock.get(step, nan) for step in steps]),
        bytes=np.array([down.get(step, nan) + up.get(step, nan) for step in steps]),
        client_flops=np.array([flops.get(step, nan) for step in steps]),
    )
