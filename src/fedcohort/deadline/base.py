"""The contract of round closing: when the server stops waiting, and how much work a client does by then."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from jaxtyping import Bool

from fedcohort.device.base import Timing
from fedcohort.part import Part
from fedcohort.types import Ids, Population, RoundOutcome, Values

S = TypeVar("S")


@dataclass(frozen=True)
class PaceContext:
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


class Deadline(Part, Protocol[S]):
    """When a round ends.

    Attributes:
        partial_work: whether a client that can't finish in time does as many units as fit, instead of being dropped.
        bounded: False where the server waits for everybody, so that nobody is late.
    """

    partial_work: bool

    @property
    def bounded(self) -> bool:
        return True

    @abstractmethod
    def init(self, population: Population) -> S:
        """The state before round 0."""

    @abstractmethod
    def announce(self, state: S, ctx: PaceContext) -> float:
        """The deadline that clients are told, virtual seconds after the broadcast; inf where there is none."""

    @abstractmethod
    def close(self, state: S, finish: Values, announced: float) -> float:
        """When the server stops waiting. finish: seconds at which each selected client would be done with all units."""

    def observe(self, state: S, outcome: RoundOutcome) -> S:
        """Learn from those who arrived, and who failed."""
        return state


@dataclass(frozen=True)
class DeadlineOutcome:
    """How a round ends.

    Attributes:
        units: done by each selected client, 0 where it is late.
        arrived: in time.
        finish: seconds until each has answered with these units.
        train_s: seconds until the round closed.
        timing: of the phases of each client's job.
        asked: units asked of each.
        announced: the deadline that clients were told, in seconds; inf where there is none.
    """

    units: Ids
    arrived: Bool[np.ndarray, "n"]
    finish: Values
    train_s: float
    timing: Timing
    asked: Ids
    announced: float = math.inf


def settle(
    timing: Timing, units: "Ids | int", close: float, partial_work: bool, announced: float = math.inf
) -> DeadlineOutcome:
    """Apply a closing time to what each client would do.

    Its work is whole where it fits, else as many units as fit (partial_work), else dropped.

    units: asked, of each or of all.
    A client with less than one unit is dropped. The server waits until `close` as soon as somebody is dropped,
    otherwise until the last answer: the full deadline is charged if anyone selected misses it.
    """
    full = timing.finish(units)
    done = np.where(full <= close, units, 0)
    if partial_work:
        room = close - timing.down - timing.infer - timing.up
        # Where a unit takes no time, who isn't done has no room either: travel alone exceeds `close`.
        fit = np.floor(np.divide(room, timing.unit, out=np.zeros(len(full)), where=timing.unit > 0) + 1e-9)
        done = np.where(full <= close, units, np.clip(fit, 0, units)).astype(np.int64)
    arrived = done > 0
    finish = timing.finish(done.astype(np.int64))
    last = float(finish[arrived].max(initial=0.0))
    closed, asked = last if arrived.all() else float(close), np.broadcast_to(units, done.shape)
    return DeadlineOutcome(done.astype(np.int64), arrived, finish, closed, timing, asked, announced)
