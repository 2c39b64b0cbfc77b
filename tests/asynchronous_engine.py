"""A device model, an engine and runs of asynchronous rounds that can be computed by hand.

Two clients that need 1 s and 3 s have the losses w^2 / 2 and (w - 4)^2 / 2. A job is a gradient step of length .5, so
that the updates are -w/2 and -(w - 4)/2 at the model that was sent. The server starts at w = 8.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from torch import Tensor

from agg_harness import make_update
from fedcohort.device.base import Device, Timing, Workload
from fedcohort.rng import Draws
from fedcohort.round import setup
from fedcohort.round.aggregate import ServerStep
from fedcohort.training.client_task import ClientTask
from fedcohort.types import ClientUpdate, Ids
from round_harness import run_without_files
from run_harness import FinishedRun

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


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The model before each round's training, and the engine that trains it."""
    observed: list[float] = []
    close = ServerStep.finish_round

    def note(self: Any, *args: Any) -> Any:
        result = close(self, *args)
        observed.append(float(self.server.w[0]))
        return result

    monkeypatch.setattr(setup, "choose_engine", lambda kind, trainer, chunk: (QuadraticEngine(trainer), "quadratic"))
    monkeypatch.setattr(ServerStep, "finish_round", note)
    return observed


def list_race_options(n_clients: int, *options: str) -> tuple[str, ...]:
    """Return the overrides of a run of `n_clients`, two or three, whose server takes a step at each arrival."""
    return (
        *(f"clients={n_clients}", "cohort=2", "client.epochs=1", "label_noise=none", "partition=iid"),
        *("device=instant", "device._target_=asynchronous_engine.ThreeSpeeds"),
        *("deadline=buffered", "deadline.buffer=1", "deadline.concurrency=2", "selector=round_robin", *options),
    )


def race(n_clients: int, *options: str) -> FinishedRun:
    return run_without_files(*list_race_options(n_clients, *options))
