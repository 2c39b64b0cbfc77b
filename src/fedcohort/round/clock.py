"""The virtual clock of a run: who is ready when a round begins, and how long work takes that clients leave."""

import logging
from collections.abc import Callable

import numpy as np

from fedcohort.availability.base import Availability
from fedcohort.errors import IncompatibleConfig
from fedcohort.ranks import rank
from fedcohort.rng import Draws
from fedcohort.types import Ids, Values

WallTime = Callable[[Ids, Values], Values]  # clients, their seconds of work -> seconds until they are done

log = logging.getLogger("fedcohort")


def without_absence(clients: Ids, seconds: Values) -> Values:
    """Return the seconds as they are: nobody leaves."""
    return seconds


class Clock:
    """Tells who is ready, and stretches work over the seconds that its clients are away.

    A round's selection is made `window_s` seconds after the round before it closed, by those who are ready then
    (FLASH's benchmark likewise). Where nobody is, the clock moves on to when somebody is, once; where availability has
    no schedule there is no such moment, and the round is an empty one.
    """

    def __init__(self, availability: Availability, draws: Draws, window_s: float) -> None:
        """Raise `IncompatibleConfig` where nobody is ever ready, or what is wrong with the user's table.

        draws: those made once a run.
        """
        self.availability, self.window_s = availability, window_s
        self.schedule = availability.schedule(draws)
        self.everyone = np.arange(draws.n_clients)
        self.everyone.flags.writeable = False
        self.has_said = False
        if self.schedule is not None and not np.isfinite(self.schedule.waits(0.0)).any():
            raise IncompatibleConfig(f"availability: none of the {draws.n_clients} clients is ever ready")

    def gather(self, draws: Draws, now: float) -> tuple[Ids, float]:
        """Return the sorted ids of those who are ready in a round, and the seconds that it waits for them.

        The ids are nobody's to write into where they are everybody's in every round.

        Args:
            draws: of the round.
            now: virtual seconds when the round before closed.
        """
        if self.availability.always:
            return self.everyone, 0.0
        if self.schedule is None:
            return np.flatnonzero(self.availability.ready(draws)), 0.0
        waits = self.schedule.waits(now + self.window_s)
        wait = float(waits.min())
        if wait > 0 and not self.has_said:
            self.has_said = True
            if rank() == 0:
                log.warning(
                    "round %d: nobody is ready, and the clock moves on by %.4g virtual seconds to when somebody is; "
                    "round/waited_s has the seconds of every round",
                    draws.round + 1,
                    wait,
                )
        return np.flatnonzero(waits <= wait), wait

    def wall_time(self, start_s: float | Values) -> WallTime:
        """Return the function from clients and seconds of work, begun at `start_s`, to seconds until it is done."""
        schedule = self.schedule
        if schedule is None:
            return without_absence
        return lambda clients, seconds: schedule.stretch(clients, start_s, seconds)
