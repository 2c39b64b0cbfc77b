"""The contract of sample selection: which of its samples a client trains on this round."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from fedcohort.part import Part
from fedcohort.types import Ids, Population, RoundOutcome, Values

S = TypeVar("S")


@dataclass(frozen=True)
class SampleRequest:
    """A client that asks which samples to train on.

    Attributes:
        client: its id.
        n: samples it has.
        deadline_s: what was announced, inf without a deadline.
        unit_s: expected virtual seconds of one unit of work on all n samples.
        units: units asked.
        losses: measures and returns the per-sample cross-entropy of w_t, float64 [n]; calling it is charged.
        rng: makes the client's own generator for this round; only those who draw pay for it.
    """

    client: int
    n: int
    deadline_s: float
    unit_s: float
    units: int
    losses: Callable[[], Values]
    rng: Callable[[], np.random.Generator]


class Samples(Part, Protocol[S]):
    """Which of its samples each client trains on.

    Attributes:
        everything: whether that is all of them for everybody: then nobody is asked.
    """

    @property
    def everything(self) -> bool:
        return False

    @abstractmethod
    def init(self, population: Population) -> S:
        """The state before round 0."""

    @abstractmethod
    def choose(self, state: S, request: SampleRequest) -> Ids:
        """Choose the samples to train on: sorted positions in [0, n), at least one."""

    def observe(self, state: S, outcome: RoundOutcome) -> S:
        """Learn from those who arrived."""
        return state
