"""A device model and an engine for asynchronous rounds that can be computed by hand."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from agg_harness import make_update
from fedcohort.device.base import Device, Timing, Workload
from fedcohort.rng import Draws
from fedcohort.training.client_task import ClientTask
from fedcohort.types import ClientUpdate, Ids

OPTIMUM = (0.0, 4.0, -4.0)
SECONDS = np.array([1.0, 3.0, 2.0])


@dataclass(frozen=True)
class ThreeSpeeds(Device):
    """A device model in which the clients' jobs take 1, 3 and 2 seconds."""

    def expect(self, clients: Ids, work: Workload, draws: Draws) -> Timing:
        zeros = np.zeros(len(clients))
        return Timing(zeros, zeros, SECONDS[clients], zeros)

    def sample(self, clients: Ids, work: Workload, draws: Draws) -> Timing:
        return self.expect(clients, work, draws)


class QuadraticEngine:
    """An engine that takes one gradient step of length .5 on each client's quadratic loss."""

    def __init__(self, trainer: Any) -> None:
        self.server = trainer.server
        self.server.w.fill_(8.0)

    def group_client_tasks(self, tasks: Sequence[ClientTask]) -> Iterator[Sequence[ClientTask]]:
        return ([task] for task in tasks)

    def train_clients(self, tasks: Sequence[ClientTask], broadcast: Mapping[str, Tensor]) -> Iterator[ClientUpdate]:
        for task in tasks:
            yield make_update(task.client, (), vector=-0.5 * (self.server.w - OPTIMUM[task.client]))
