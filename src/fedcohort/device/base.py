"""The contract of a device model: how long a client takes, in virtual seconds."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from fedcohort.component import Component
from fedcohort.errors import IncompatibleConfig
from fedcohort.rng import Draws
from fedcohort.types import Ids, ReadOnly, Values


@dataclass(frozen=True)
class Workload(ReadOnly):
    """The work that the server requests of some clients; arrays have one entry per client, [n].

    A sample-time is the work of one sample in a whole job: a job of E epochs over n samples has n sample-times (FLASH
    Sec. IV-B fixes E).

    Attributes:
        unit_load: sample-times in one unit of local work, [n]. A unit is a local epoch, or a mean step if clients train
            a number of steps.
        infer_load: sample-times of the forward passes for queries and reports, [n]; a pass costs a third of an epoch.
        units: number of units requested of each client.
        bytes_down: bytes of the download, [n].
        bytes_up: bytes of the upload, [n].
        epochs: number of times that a sample is trained on in a sample-time: E if clients train E epochs, 1 if they
            train steps. Devices with measured seconds for training once on a sample multiply them by it.
    """

    unit_load: Values
    infer_load: Values
    units: int
    bytes_down: Values
    bytes_up: Values
    epochs: int = 1


@dataclass(frozen=True)
class Timing(ReadOnly):
    """Virtual seconds of each phase of the clients' jobs.

    Attributes:
        down_s: seconds of the download, [n].
        infer_s: seconds of the forward passes for queries and reports, [n].
        unit_s: seconds of one unit of training (an epoch or a step), [n].
        up_s: seconds of the upload, [n].
    """

    down_s: Values
    infer_s: Values
    unit_s: Values
    up_s: Values

    def finish_s(self, units: "Values | Ids | int") -> Values:
        """Return the seconds until the update of a client that trains `units` epochs or steps arrives, [n]."""
        return np.asarray(self.down_s + self.infer_s + units * self.unit_s + self.up_s)

    def query_s(self) -> Values:
        """Return the seconds of a query, [n]: download and forward passes; sending the small report takes no time."""
        return np.asarray(self.down_s + self.infer_s)


MIN_JOB_S, MAX_JOB_S = 1e-9, 1e12  # of a whole job: a float64 clock can separate rounds of these lengths


def check_job_durations(job_s: Values, n_train: Ids) -> None:
    """Check that the expected duration of every client's whole job is neither too short nor too long for the clock.

    Args:
        job_s: expected virtual seconds of each client's whole job, [n_clients].
        n_train: training samples of each client, [n_clients]; a client without samples has no job.

    Raises:
        IncompatibleConfig: a job is too short or too long.
    """
    is_invalid_job = (n_train > 0) & ~((job_s >= MIN_JOB_S) & (job_s <= MAX_JOB_S))
    if is_invalid_job.any():
        client = int(is_invalid_job.argmax())
        raise IncompatibleConfig(
            f"device: the whole job of client {client}, with {n_train[client]} sample{'s' * int(n_train[client] != 1)}"
            f", is expected to take {job_s[client]:g} virtual seconds, but only 1e-9 to 1e12 are allowed. Check the "
            "unit of the device's seconds and speeds, and client.epochs or client.steps"
        )


class Device(Component, Protocol):
    """A device model: how long clients take for downloads, training and uploads, in virtual seconds.

    Attributes:
        timed: whether work takes time; otherwise durations carry no information.
        in_seconds: whether times are seconds; otherwise they are multiples of an arbitrary time per sample.
    """

    @property
    def timed(self) -> bool:
        return True

    @property
    def in_seconds(self) -> bool:
        return True

    @abstractmethod
    def expect(self, clients: Ids, work: Workload, draws: Draws) -> Timing:
        """Return the expected timing, from which deadlines are planned; it is the same in all rounds.

        Args:
            clients: ids of the clients.
            work: work of each client.
            draws: random numbers of the run.
        """

    @abstractmethod
    def sample(self, clients: Ids, work: Workload, draws: Draws) -> Timing:
        """Return the timing of one round; a client's time does not depend on the other selected clients.

        Args:
            clients: ids of the clients.
            work: work of each client.
            draws: random numbers of the round.
        """
