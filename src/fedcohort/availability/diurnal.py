"""Each client is ready for a share of each day, from its own time of day on.

    ready_k(t):  (t - phi_k) mod day < share day
    phi_k:  u_k day, u_k ~ U[0, 1) for each client, once a run

With class_share=1 clients with the same main class are ready at about the same time: u_k is tied to the class
(`maths/class_tie.py`), so that the data that the server can reach change in the course of the day.

A synthetic model without a trace. At every moment about `share` of the clients are ready, different ones in the morning
and in the evening. A client that is ready at a smaller share is ready at a larger one.

Departures from the paper: none (no paper).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedcohort import ranges
from fedcohort.availability.base import Availability
from fedcohort.availability.schedule import ReadySchedule
from fedcohort.component import ADVANCING_CLOCK, Requirement
from fedcohort.maths.class_tie import tie_draws_to_classes
from fedcohort.rng import Draws


@dataclass(frozen=True)
class Diurnal(Availability):
    """An availability model in which each client is ready in one interval a day, at a random time.

    Attributes:
        share: length of this interval as a share of the day.
        day_s: length of a day in virtual seconds.
        class_share: probability that a client's time of day depends on its main class.
    """

    share: float
    day_s: float
    class_share: float

    recommendations: ClassVar[frozenset[Requirement]] = frozenset({ADVANCING_CLOCK})

    def __post_init__(self) -> None:
        ranges.number("share", self.share, "[1e-6, 1]")
        ranges.number("day_s", self.day_s, "[1e-3, 1e9]")
        ranges.number("class_share", self.class_share, "[0, 1]")

    def schedule(self, draws: Draws) -> ReadySchedule:
        """Return a schedule with one interval a day for each client, or two if the client is ready at midnight.

        `draws` gives the second of the day at which each client's interval begins.
        """
        day_fractions = tie_draws_to_classes(
            draws.uniform("diurnal"), draws, self.class_share, "availability.class_share"
        )
        ready_start_s, n_clients = self.day_s * day_fractions, draws.n_clients
        ready_stop_s = ready_start_s + self.share * self.day_s
        seconds_past_midnight = np.maximum(ready_stop_s - self.day_s, 0.0)  # seconds of the next day
        interval_starts_s = np.stack([np.zeros(n_clients), np.maximum(ready_start_s, seconds_past_midnight)], axis=1)
        interval_ends_s = np.stack([seconds_past_midnight, np.minimum(ready_stop_s, self.day_s)], axis=1)
        is_nonempty_interval = interval_ends_s > interval_starts_s
        n_intervals = is_nonempty_interval.sum(axis=1)
        stop_positions, period_s = np.cumsum(n_intervals).astype(np.int64), np.full(n_clients, float(self.day_s))
        nonempty_starts_s, nonempty_ends_s = (
            interval_starts_s[is_nonempty_interval],
            interval_ends_s[is_nonempty_interval],
        )
        return ReadySchedule(nonempty_starts_s, nonempty_ends_s, stop_positions - n_intervals, stop_positions, period_s)
