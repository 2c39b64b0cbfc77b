"""The virtual time of a round: phases of each selected client's job, late clients, and the end of the round."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool

from fedcohort.record.history import History
from fedcohort.types import Ids, Values

if TYPE_CHECKING:
    import pandas as pd

PHASES = ("down_s", "infer_s", "train_s", "up_s")  # in temporal order


@dataclass(frozen=True)
class TimedRound:
    """The virtual time of one round; clients are in the order in which they finish.

    Attributes:
        step: the round.
        clients: ids of the selected clients.
        phases: seconds of each of `PHASES`, each [len(clients)]; for a late client, those of its complete job.
        arrived: whether each client's update arrived in time.
        units: units of local work done.
        requested: units of local work requested.
        closed: seconds from the broadcast to the end of the round.
        announced: deadline that was announced to clients, in seconds; NaN without one.
        total: seconds of the round with queries before the broadcast, answers after its end, and waits for available
            clients; NaN if not known.
    """

    step: int
    clients: Ids
    phases: Mapping[str, Values]
    arrived: Bool[np.ndarray, "_n"]
    units: Values
    requested: Values
    closed: float
    announced: float
    total: float

    @property
    def finish(self) -> Values:
        """Seconds at which each client finishes, or would finish."""
        seconds: Values = np.sum(list(self.phases.values()), axis=0)
        return seconds

    @property
    def partial(self) -> Bool[np.ndarray, "_n"]:
        """Which clients arrived in time with less work than requested."""
        return self.arrived & (self.units < self.requested)


def list_timed_rounds(history: History) -> list[int]:
    """Return the rounds with selected clients in which time passed; [] for runs that did not log their jobs."""
    closed = history.metrics.get("round/closed_s")
    return [] if closed is None else [int(step) for step in closed.index[closed > 0]]


def load_timed_round(history: History, step: int) -> TimedRound:
    """Read one round of `list_timed_rounds`."""
    table = history.clients(["selected", "arrived", *PHASES, "units", "units_asked"], first=step)
    rows = table[(table["step"] == step) & table["selected"]]
    rows = rows.assign(finish=rows[list(PHASES)].sum(axis=1)).sort_values(["finish", "client"])
    metrics = {str(name): float(column.loc[step]) for name, column in history.metrics.items()}
    return TimedRound(
        step=step,
        clients=rows["client"].to_numpy(dtype=np.int64),
        phases={name: rows[name].to_numpy(dtype=float) for name in PHASES},
        arrived=rows["arrived"].to_numpy(dtype=bool),
        units=rows["units"].to_numpy(dtype=float),
        requested=rows["units_asked"].to_numpy(dtype=float),
        closed=metrics["round/closed_s"],
        announced=metrics.get("round/announced_s", float("nan")),
        total=float(round_lengths(history).get(step, float("nan"))),
    )


def round_lengths(history: History) -> "pd.Series[float]":
    """Return the virtual seconds of each round, with queries and waits."""
    return history.metrics["time/virtual_s"].diff().dropna()


def count_arrivals(history: History) -> "pd.DataFrame":
    """Return the number of clients that arrived with complete or partial work, and that were late, by round."""
    table = history.clients(["selected", "arrived", "units", "units_asked"], first=1)
    rows = table[table["selected"]]
    partial = rows["arrived"] & (rows["units"] < rows["units_asked"])
    counts = rows[["step"]].assign(complete=rows["arrived"] & ~partial, partial=partial, late=~rows["arrived"])
    return counts.groupby("step").sum().reindex([step for step in history.steps if step], fill_value=0)
