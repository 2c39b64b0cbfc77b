"""The contract of round closing: when the server stops waiting, and how much work a client does by then."""

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from jaxtyping import Bool

from fedcohort.component import Component, Requirement
from fedcohort.device.base import Timing
from fedcohort.types import Ids, Population, ReadOnly, RoundOutcome, Values

S = TypeVar("S")
LATE = Requirement(
    lambda run: run.timed,
    "{option} drops late clients, and none is late with {device}, where work takes no time: all selected clients "
    "arrive, whatever its options (choose device=shifted_exponential, or deadline=wait_for_all)",
)
PHASES = ("down", "infer", "train", "up")  # of a client's job, in the order in which they happen


@dataclass(frozen=True)
class PaceContext(ReadOnly):
    """What is known before a round's training.

    Attributes:
        selected: sorted ids.
        units: units of local work asked of everybody, unless a selector asks otherwise.
        expected_all: expected timing of every client of the population, on all of its data.
        expected: of the selected.
    """

    round: int
    selected: Ids
    units: int
    expected_all: Timing
    expected: Timing


class Deadline(Component, Protocol[S]):
    """When a round ends.

    Attributes:
        partial_work: whether a client that can't finish in time does as many units as fit, instead of being dropped.
        bounded: False where the server waits for everybody, so that nobody is late.
        announces: whether there is a deadline that clients can be told before they train.
        needs: signals that `observe` reads.
    """

    partial_work: bool

    @property
    def bounded(self) -> bool:
        return True

    @property
    def announces(self) -> bool:
        return True

    @property
    def needs(self) -> frozenset[str]:
        return frozenset()

    @property
    def recommendations(self) -> frozenset[Requirement]:
        return frozenset({LATE} if self.bounded else ())

    def way_out(self, units: int) -> str:
        """Return what to type where nobody is in time; units: of local work, that a client was asked for at most."""
        return "" if self.partial_work or not self.announces or units < 2 else "set deadline.partial_work=true"

    def ask(self, cohort: int) -> int:
        """Return how many clients are asked in a round, where the run wants `cohort`: as many, or more."""
        return cohort

    def most(self, cohort: int) -> int:
        """Return how many clients arrive in a round that wants `cohort` at most, where no two take equally long."""
        return self.ask(cohort)

    @abstractmethod
    def init(self, population: Population) -> S:
        """The state before round 0; its cohort is the number that the run wants."""

    @abstractmethod
    def announce(self, state: S, ctx: PaceContext) -> float:
        """The deadline that clients are told, virtual seconds after the broadcast; inf where there is none."""

    @abstractmethod
    def close(self, state: S, finish: Values, announced: float) -> float:
        """When the server stops waiting. finish: seconds at which each selected client would be done with all units."""

    def describe(self, state: S) -> Mapping[str, float]:
        """Return numbers of the state that are logged after each round, by a name that goes behind the group's."""
        return {}

    def observe(self, state: S, outcome: RoundOutcome) -> S:
        """Learn from those who arrived, and who failed."""
        return state


@dataclass(frozen=True)
class DeadlineOutcome(ReadOnly):
    """How a round ends.

    Attributes:
        units: done by each selected client, 0 where it is late.
        arrived: in time.
        finish: seconds until each has answered with these units.
        train_s: seconds until the round closed.
        phases: seconds of each of `PHASES` of its job, by name; of whoever is late, those of the whole job.
        asked: units asked of each.
        announced: the deadline that clients were told, in seconds; inf where there is none.
    """

    units: Ids
    arrived: Bool[np.ndarray, "n"]
    finish: Values
    train_s: float
    phases: Mapping[str, Values]
    asked: Ids
    announced: float = math.inf


def settle(
    timing: Timing,
    units: "Ids | int",
    close: float,
    partial_work: bool,
    announced: float = math.inf,
    stretch: Callable[[Values], Values] = lambda seconds: seconds,
) -> DeadlineOutcome:
    """Apply a closing time to what each client would do.

    Its work is whole where it fits, else as many units as fit (partial_work), else dropped.

    units: asked, of each or of all.
    announced: the deadline that clients were told.
    stretch: makes the seconds until each client is done of its seconds of work, where clients leave; never less for
        more work.
    A client with less than one unit is dropped. The server waits until `close` as soon as somebody is dropped,
    otherwise until the last answer: the full deadline is charged if anyone selected misses it.
    """
    full = stretch(timing.finish(units))
    done = np.where(full <= close, units, _fit(timing, units, close, stretch) if partial_work else 0).astype(np.int64)
    arrived = done > 0
    finish = stretch(timing.finish(done))
    last = float(finish[arrived].max(initial=0.0))
    closed, asked = last if arrived.all() else float(close), np.broadcast_to(units, done.shape)
    phases = _phases(timing, np.where(arrived, done, asked), stretch)
    return DeadlineOutcome(done, arrived, finish, closed, phases, asked, announced)


def _phases(timing: Timing, units: Ids, stretch: Callable[[Values], Values]) -> dict[str, Values]:
    """The seconds of each of `PHASES`, with those in which the client was away."""
    ends = np.cumsum([timing.down, timing.infer, units * timing.unit, timing.up], axis=0)
    known = np.array([np.zeros(len(units)), *(stretch(end) for end in ends)])
    with np.errstate(invalid="ignore"):  # of those who never come back one phase is infinite, and nothing is after it
        seconds = np.nan_to_num(np.diff(known, axis=0), posinf=np.inf)
    return dict(zip(PHASES, seconds, strict=True))


def _fit(timing: Timing, units: "Ids | int", close: float, stretch: Callable[[Values], Values]) -> Ids:
    """The most units, of those asked, that each client has answered with by `close`, to a billionth of a unit.

    Found by halves: the stretched seconds of more units are never less.
    """
    fits, fails = np.zeros(len(timing.unit), dtype=np.int64), np.zeros(len(timing.unit), dtype=np.int64) + units + 1
    while (fails - fits > 1).any():
        middle = (fits + fails) // 2
        in_time = stretch(timing.finish(middle)) <= close + 1e-9 * timing.unit
        fits, fails = np.where(in_time, middle, fits), np.where(in_time, fails, np.maximum(middle, fits + 1))
    return fits
