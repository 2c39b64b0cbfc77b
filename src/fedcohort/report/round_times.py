"""A round on the clock: what each selected client's job is made of, who was late, when the round closed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool

from fedcohort.record.history import History
from fedcohort.types import Ids, Values

if TYPE_CHECKING:
    import pandas as pd

PHASES = ("down_s", "infer_s", "train_s", "up_s")  # in the order in which they happen
FACTS = (*PHASES, "units", "units_asked")
MOST = 60  # clients that can be told apart


@dataclass(frozen=True)
class TimedRound:
    """A round on the clock, its clients in the order in which they are done.

    Attributes:
        clients: ids of the selected.
        phases: seconds of each of `PHASES`, each [len(clients)]; those of the whole job where a client is late.
        arrived: in time.
        units, asked: of local work done, and asked.
        closed: seconds from the broadcast to the end of the round.
        announced: the deadline that clients were told, in seconds; NaN where there was none.
        whole: seconds of the round with those of questions before its broadcast, of answers after its
            close, and of waits for somebody to be ready; NaN where that isn't known.
    """

    step: int
    clients: Ids
    phases: Mapping[str, Values]
    arrived: Bool[np.ndarray, "_n"]
    units: Values
    asked: Values
    closed: float
    announced: float
    whole: float

    @property
    def finish(self) -> Values:
        """Seconds at which each is done, or would be."""
        total: Values = np.sum(list(self.phases.values()), axis=0)
        return total

    @property
    def partial(self) -> Bool[np.ndarray, "_n"]:
        """Who did less than was asked, in time."""
        return self.arrived & (self.units < self.asked)


def timed_steps(history: History) -> list[int]:
    """The rounds with somebody selected in which time passed; [] for a run of before its jobs were written down."""
    closed = history.metrics.get("round/closed_s")
    return [] if closed is None else [int(step) for step in closed.index[closed > 0]]


def load(history: History, step: int) -> TimedRound:
    """Read round `step`, one of `timed_steps`."""
    table = history.clients(["selected", "arrived", *FACTS], first=step)
    rows = table[(table["step"] == step) & table["selected"]]
    order = np.lexsort((rows["client"].to_numpy(), rows[list(PHASES)].sum(axis=1).to_numpy()))
    rows = rows.iloc[order]
    metrics = {str(name): float(column.loc[step]) for name, column in history.metrics.items()}
    return TimedRound(
        step=step,
        clients=rows["client"].to_numpy(dtype=np.int64),
        phases={name: rows[name].to_numpy(dtype=float) for name in PHASES},
        arrived=rows["arrived"].to_numpy(dtype=bool),
        units=rows["units"].to_numpy(dtype=float),
        asked=rows["units_asked"].to_numpy(dtype=float),
        closed=metrics["round/closed_s"],
        announced=metrics.get("round/announced_s", float("nan")),
        whole=float(lengths(history).get(step, float("nan"))),
    )


def lengths(history: History) -> "pd.Series[float]":
    """Virtual seconds of each round, by step, with questions and waits."""
    clock = history.metrics["time/virtual_s"]
    return clock.diff().dropna()


def arrivals(history: History) -> "pd.DataFrame":
    """How many arrived with all their work, with a part of it, and how many were late, by step."""
    table = history.clients(["selected", "arrived", "units", "units_asked"], first=1)
    rows = table[table["selected"]]
    part = rows["arrived"] & (rows["units"] < rows["units_asked"])
    found = rows[["step"]].assign(whole=rows["arrived"] & ~part, part=part, late=~rows["arrived"])
    return found.groupby("step").sum().reindex([step for step in history.steps if step], fill_value=0)
