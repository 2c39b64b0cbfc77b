"""The number that `train.py` returns to a sweeper that searches (hydra/sweeper=optuna): a run's last `server_val/*`."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedcohort.errors import FedcohortError, OptionError
from fedcohort.record import history


def check_objective(config: Mapping[str, Any], *, by_search: bool) -> None:
    """Raise `OptionError` if a run has no number for its sweeper; by_search: whether a sweeper searches."""
    metric = config["objective_metric"]
    if by_search and metric is None:
        raise OptionError("hydra/sweeper needs a number from each run: set objective_metric=server_val/acc")
    if metric is not None and not config["callback"].get("journal"):
        raise OptionError(f"objective_metric={metric} is read from the journal: do not remove callback.journal")


def read_objective(folder: Path, metric: str | None) -> float | None:
    """Return the last `metric` in the journal of the run in `folder`; None if `metric` is None.

    Raises `FedcohortError` if no trained model was measured, or the value is not finite: the job has then failed.
    """
    if metric is None:
        return None
    lines, _ = history.read_lines(folder / history.JOURNAL_FILE)
    values = [line.metrics[metric] for line in lines if line.step > 0 and metric in line.metrics]
    if not values:
        raise FedcohortError(f"objective_metric={metric} was never measured in {folder}: lower eval.every")
    if not math.isfinite(values[-1]):
        raise FedcohortError(
            f"objective_metric={metric} is {values[-1]} at the end of {folder}: the job has no result to search by; "
            "narrow the search, or choose another metric"
        )
    return values[-1]
