"""The contract of a device model: how long a client takes, in virtual seconds."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Protocol

from fedcohort.component import Component
from fedcohort.errors import IncompatibleConfig
from fedcohort.rng import Draws
from fedcohort.types import Ids, ReadOnly, Values


@dataclass(frozen=True)
class Workload(ReadOnly):
    """What clients are asked to do, each array aligned with the ids that go with it.

    Attributes:
        load: sample-times in one unit of local work, where a unit is a local epoch (or a step, where the client trains
            a number of steps, the mean one of its job). A whole job of E epochs over n samples is n sample-times (FLASH
            Sec. IV-B fixes E).
        infer_load: sample-times of the forward passes that probes and reports ask for, each a third of an epoch.
        units: units asked of everybody.
        bytes_down, bytes_up: what travels.
        epochs: local epochs in a sample-time, so that one is that many trainings of a sample: E where clients train E
            epochs, 1 where they train steps. For devices whose seconds are those of a training.
    """

    load: Values
    infer_load: Values
    units: int
    bytes_down: Values
    bytes_up: Values
    epochs: int = 1


@dataclass(frozen=True)
class Timing(ReadOnly):
    """Virtual seconds of each phase: download, inference, one unit of training, upload."""

    down: Values
    infer: Values
    unit: Values
    up: Values

    def finish(self, units: "Values | Ids | int") -> Values:
        """Seconds until a client that does `units` units has answered."""
        total: Values = self.down + self.infer + units * self.unit + self.up
        return total

    def probe(self) -> Values:
        """Return the seconds of a probe alone: download and forward pass (the answer is a few bytes)."""
        total: Values = self.down + self.infer
        return total


LEAST_S, MOST_S = 1e-9, 1e12  # of a whole job: the clock, a float64, tells rounds of these lengths apart


def check_jobs(seconds: Values, n: Ids) -> None:
    """Raise `IncompatibleConfig` for the first whole job that the virtual clock can't tell.

    Args:
        seconds: expected virtual seconds of each client's whole job, [n_clients].
        n: training samples of each, [n_clients]; clients without any have no job.
    """
    wrong = (n > 0) & ~((seconds >= LEAST_S) & (seconds <= MOST_S))
    if wrong.any():
        k = int(wrong.argmax())
        raise IncompatibleConfig(
            f"device: the whole job of client {k}, with {n[k]} samples, is expected to take {seconds[k]:g} virtual "
            f"seconds; 1e-9 to 1e12 virtual seconds are allowed. Check the unit of the device's seconds and speeds, "
            "and client.epochs or client.steps"
        )


class Device(Component, Protocol):
    """How long clients take.

    Attributes:
        timed: False where nothing takes time, so that durations carry no information.
        in_seconds: False where seconds are multiples of what a sample takes, in a unit of choice.
    """

    @property
    def timed(self) -> bool:
        return True

    @property
    def in_seconds(self) -> bool:
        return True

    @abstractmethod
    def expect(self, clients: Ids, work: Workload, draws: Draws) -> Timing:
        """The mean, no randomness of the round: what a deadline can be planned with. draws: those made once a run."""

    @abstractmethod
    def sample(self, clients: Ids, work: Workload, draws: Draws) -> Timing:
        """This round's times. A client's draw is the same whoever else is selected."""
