"""The number that `train.py` returns to a sweeper that searches (hydra/sweeper=optuna): a run's last `server_val/*`."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedcohort.errors import FedcohortError, OptionError
from fedcohort.record import history


def check(config: Mapping[str, Any], *, by_search: bool) -> None:
    """Raise `OptionError` where a sweeper would hear of no number; by_search: whether a sweeper searches."""
    metric = config["objective_metric"]
    if by_search and metric is None:
        raise OptionError("hydra/sweeper asks for a number that each run returns: say objective_metric=server_val/acc")
    if metric is not None and not config["callback"].get("journal"):
        raise OptionError(f"objective_metric={metric} is read from the journal: leave callback.journal in")


def value(folder: Path, metric: str | None) -> float | None:
    """The last `metric` in the journal of the run in `folder`, None for none. Step 0's is the untrained model's.

    Raises `FedcohortError` where it was never measured or is no number: a sweeper is to take the job for failed, not
    its NaN for a result.
    """
    if metric is None:
        return None
    lines, _ = history.lines(folder / history.NAME)
    found = [line.metrics[metric] for line in lines if line.step > 0 and metric in line.metrics]
    if not found:
        raise FedcohortError(f"objective_metric={metric} was never measured in {folder}: lower eval.every")
    if not math.isfinite(found[-1]):
        raise FedcohortError(f"objective_metric={metric} is {found[-1]} at the end of {folder}")
    return found[-1]
