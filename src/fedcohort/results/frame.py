"""Two tidy frames, one of runs and one of curves, and the reader of the curves in run folders.

The frame of runs has one row per run.

    run             id that joins both frames: path of the folder, or MLflow's run id.
    setting         value of the option by which the user groups the runs; "" for a single setting.
    condition       value of the option that is compared, mostly the method.
    seed            integer.
    folder          run folder; "" without one.
    clock_s         virtual seconds at which the budget ends the run; NaN without such a limit.
    oracle          whether the method reads what no server can know.
    virtual_s, bytes, client_flops, joules   cumulative cost at the end of the run; NaN or 0 if it is not measured.

The frame of curves has one row per evaluation (a round that measured a metric), ordered by run and round.

    run, round      round 0 is the untrained model.
    virtual_s, bytes, client_flops, joules   cumulative cost until the round; bytes are down and up, over all clients.
    <metric>        one column for each metric, named as in the journal; NaN if the round did not measure it, and
                    infinity if the measured value is NaN, as after divergence.

`matching/question.py` makes the frame of runs in folders and in MLflow, and `tracking/runs.py` reads MLflow's curves.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float64

from fedcohort.record import history
from fedcohort.results.run import Evaluations

if TYPE_CHECKING:
    import pandas as pd

METRICS_BY_COST = {  # each cost is the sum of these metrics of the journal
    "virtual_s": ("time/virtual_s",),
    "bytes": ("comm/down_bytes", "comm/up_bytes"),
    "probe_bytes": ("comm/probe_bytes",),
    "client_flops": ("comp/client_flops",),
    "server_flops": ("comp/server_flops",),
    "joules": ("energy/joules",),
}
COST_COLUMNS = ("virtual_s", "bytes", "client_flops", "joules")  # cost columns of the curves
CLOCK_LIMIT_COLUMN = "clock_s"
CLOCK_LIMIT_PATTERN = re.compile(r"\bvirtual_s=([\d.e+-]+)")
EVALUATION_PREFIXES = ("test/", "server_val/", "clients/")  # prefixes of metrics that not every round measures


@dataclass(frozen=True)
class RunFrames:
    """A table of runs and a table of their evaluations; the module's docstring lists the columns.

    Attributes:
        runs: one row per run.
        curves: one row per evaluation.
    """

    runs: "pd.DataFrame"
    curves: "pd.DataFrame"


def read_curves(run_folders: Iterable[Path], metrics: Sequence[str]) -> "pd.DataFrame":
    """Return the frame of curves of the runs in `run_folders`, with the rounds that measured one of `metrics`.

    Raises `CheckpointError` for a folder that holds no run.
    """
    import pandas as pd

    run_curves = ((str(p), read_curve(history.read_history(p), metrics, math.inf)) for p in run_folders)
    curves = [pd.DataFrame({"run": run, **columns}) for run, columns in run_curves]
    return pd.concat(curves, ignore_index=True) if curves else pd.DataFrame()


def read_curve(journal: history.History, metrics: Sequence[str], nan_value: float = math.nan) -> dict[str, np.ndarray]:
    """Return the columns of one run in the frame of curves, [n_rounds] each: the rounds that measured one of `metrics`.

    The column `run` is not among them. `journal` is the history of the run. `nan_value` replaces a metric that was
    measured as NaN, which differs from a metric that was not measured in a round.
    """
    measured_metrics = [name for name in metrics if name in journal.measured]
    steps = np.array(journal.steps, dtype=np.int64)
    is_measured = np.isin(steps, [r for name in measured_metrics for r in journal.measured[name]])
    columns: dict[str, np.ndarray] = {"round": (rounds := steps[is_measured])}
    for cost in COST_COLUMNS:
        parts = [_repeat_last_value(journal.values[name]) for name in METRICS_BY_COST[cost] if name in journal.values]
        columns[cost] = sum(parts, np.zeros(len(steps)))[is_measured]
    for name in measured_metrics:
        is_diverged = np.isnan(values := journal.values[name][is_measured]) & np.isin(rounds, journal.measured[name])
        columns[name] = np.where(is_diverged, nan_value, values)
    return columns


def _repeat_last_value(values: Float64[np.ndarray, "steps"]) -> Float64[np.ndarray, "steps"]:
    """Return `values` with each NaN replaced by the last number before it, or by 0 if there is none."""
    last_position = np.maximum.accumulate(np.where(np.isnan(values), -1, np.arange(len(values))))
    return np.where(last_position < 0, 0.0, values[last_position])


def list_evaluations(rows: "Mapping[str, Any] | pd.DataFrame", metric: str, cost_names: Iterable[str]) -> Evaluations:
    """Return the evaluations of a run from its rows of the frame of curves.

    Args:
        rows: rows of the run, with the columns `round`, `metric` and `cost_names`.
        metric: column of the values.
        cost_names: columns of cumulative costs.
    """
    steps, values = (np.array(rows[column], dtype=float) for column in ("round", metric))
    return Evaluations(steps, values, {column: np.array(rows[column], dtype=float) for column in cost_names})


def read_clock_limit(budget_text: str | None) -> float:
    """Return the virtual seconds at which a run ends, as 60 for the `budget_text` "rounds=9 virtual_s=60", or NaN."""
    limit_match = CLOCK_LIMIT_PATTERN.search(budget_text or "")
    return float(limit_match[1]) if limit_match else math.nan
