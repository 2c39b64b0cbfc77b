"""The virtual clock of a run: clients that are ready when a round begins, and the time of work with interruptions."""

import logging
from collections.abc import Callable

import numpy as np

from fedcohort.availability.base import Availability
from fedcohort.availability.schedule import ReadyClientTracker
from fedcohort.errors import IncompatibleConfig
from fedcohort.process_ranks import rank_of_process
from fedcohort.rng import Draws
from fedcohort.types import Ids, Values

WallTime = Callable[[Ids, Values], Values]  # clients, their seconds of work -> seconds until they are done

log = logging.getLogger("fedcohort")


def assume_no_absence(clients: Ids, work_s: Values) -> Values:
    """Return the seconds of work `work_s` of `clients`, [n], unchanged, for a run in which no client is ever away."""
    return work_s


class VirtualClock:
    """Determines which clients are ready, and adds the seconds in which a client is away to its work.

    A round's selection is made `window_s` seconds after the end of the round before it, among the clients that are
    ready at that time (as in FLASH's benchmark). If none is ready, the clock advances to the next time at which a
    client is ready. Without a schedule of availability there is no such time, and the round is empty.
    """

    def __init__(self, availability: Availability, draws: Draws, window_s: float) -> None:
        """Set the clock of a run, with the times at which each client is ready if `availability` has a schedule.

        Args:
            availability: availability of the clients.
            draws: random numbers of the run.
            window_s: virtual seconds between the end of a round and the next selection.

        Raises:
            IncompatibleConfig: no client is ever ready.
            DataError: the user's table of availability has an error.
        """
        self.availability, self.window_s = availability, window_s
        self.schedule = availability.schedule(draws)
        self.tracker = None if self.schedule is None else ReadyClientTracker(self.schedule)
        self.all_client_ids = np.arange(draws.n_clients)
        self.all_client_ids.flags.writeable = False
        self.has_warned = False
        if self.schedule is not None and not np.isfinite(self.schedule.seconds_until_ready(0.0)).any():
            raise IncompatibleConfig(
                f"availability: none of the {draws.n_clients} clients is ever ready: check the intervals of its table"
            )

    def find_ready_clients(self, draws: Draws, now_s: float, can_advance: bool = True) -> tuple[Ids, float]:
        """Return the sorted ids of the clients that are ready in a round, and the seconds that the server waited.

        The array of ids is read-only if all clients are ready in every round.

        Args:
            draws: random numbers of the round.
            now_s: virtual seconds at the end of the round before.
            can_advance: whether the clock advances if no client is ready; otherwise no time passes.
        """
        if self.availability.always:
            return self.all_client_ids, 0.0
        if self.schedule is None:
            return np.flatnonzero(self.availability.ready(draws)), 0.0
        seconds_until_ready = self.schedule.seconds_until_ready(now_s + self.window_s)
        shortest_wait_s = float(seconds_until_ready.min()) if can_advance else 0.0
        if shortest_wait_s > 0 and not self.has_warned:
            self.has_warned = True
            if rank_of_process() == 0:
                log.warning(
                    "round %d: no client is ready, so that the clock advances by %.4g virtual seconds until one is; "
                    "round/waited_s has the seconds of every round",
                    draws.round + 1,
                    shortest_wait_s,
                )
        return np.flatnonzero(seconds_until_ready <= shortest_wait_s), shortest_wait_s

    def find_ready_clients_at(self, ready_ids: Ids, now_s: float) -> Ids:
        """Return the sorted ids, [n], of the clients that are ready at a virtual second within a round.

        Args:
            ready_ids: ids of the clients that were ready when the round began, returned if there is no schedule.
            now_s: virtual seconds since the run began.
        """
        return ready_ids if self.tracker is None else self.tracker.find_ready_clients_now(now_s)

    def ready_share(self, now_s: float, clients: Ids, start_s: float, end_s: float) -> Values:
        """Return the share of a time slot in which each client will be ready, [len(clients)]; 1 without a schedule.

        Args:
            now_s: virtual seconds since the run began.
            clients: ids of the clients.
            start_s: beginning of the slot, in seconds from `now_s`.
            end_s: end of the slot, in seconds from `now_s`, later than `start_s`.
        """
        if self.schedule is None:
            return np.ones(len(clients))
        return self.schedule.ready_share(clients, now_s + start_s, now_s + end_s)

    def wall_time(self, start_s: float | Values) -> WallTime:
        """Return a function from client ids and seconds of work, each [n], to seconds until the work is complete, [n].

        Args:
            start_s: virtual second at which the work begins, of each client or of all.
        """
        ready_schedule = self.schedule
        if ready_schedule is None:
            return assume_no_absence
        return lambda client_ids, work_s: ready_schedule.completion_time(client_ids, start_s, work_s)
