"""Read the curves of runs from MLflow into the frame of `results.frame`."""

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from fedcohort.results.frame import AXES, COSTS
from fedcohort.results.matching.run import Run
from fedcohort.tracking import compat, server

if TYPE_CHECKING:
    import pandas as pd
    from mlflow import MlflowClient

REQUESTS = 4  # concurrent requests to a server


def read_curves(client: "MlflowClient", runs: Sequence[Run], metrics: Sequence[str]) -> "pd.DataFrame":
    """Return the rounds of each run that measured one of the metrics, with the cumulative cost until the round.

    NaN means that the round did not measure the metric. A logged NaN, as after divergence, becomes infinite.
    """
    import pandas as pd

    costs = [name for axis in AXES for name in COSTS[axis]]
    names = [*dict.fromkeys([*metrics, *costs])]
    readings = server.patient(lambda: compat.read_histories(client, [run.id for run in runs], names))
    if readings is None:
        readings = _request(client, runs, names)
    rows = pd.DataFrame(readings, columns=["run", "name", "round", "value"])
    rows["value"] = rows["value"].fillna(math.inf)
    wide = rows.drop_duplicates(["run", "name", "round"], keep="last").pivot(
        index=["run", "round"], columns="name", values="value"
    )
    wide = wide.reindex(columns=names).sort_index()
    measured = wide[list(metrics)].notna().any(axis=1)
    spent = {axis: sum(wide[name] for name in COSTS[axis]) for axis in AXES}
    return wide[list(metrics)].assign(**spent)[measured].reset_index()[["run", "round", *AXES, *metrics]]


def _request(client: "MlflowClient", runs: Sequence[Run], names: Sequence[str]) -> list[compat.Reading]:
    """Request the histories from a server, a few at a time."""

    def history(run: Run, name: str) -> list[compat.Reading]:
        values = server.patient(lambda: client.get_metric_history(run.id, name))
        return [(run.id, name, metric.step, compat.read_value(metric.value)) for metric in values]

    pairs = [(run, name) for run in runs for name in names if name in run.metrics]
    with ThreadPoolExecutor(REQUESTS) as pool:
        return [reading for readings in pool.map(lambda pair: history(*pair), pairs) for reading in readings]
