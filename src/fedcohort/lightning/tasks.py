"""The processes of a run over several machines, which SLURM or torchrun starts.

Each is a process of `train.py` with the same options. The first one has the run's folder, its journal and its
observers. It sends the folder and the checkpoint to the others, which train their share of the clients.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import torch.distributed as dist
from lightning.fabric.plugins.environments.cluster_environment import ClusterEnvironment
from lightning.fabric.plugins.environments.slurm import SLURMEnvironment
from lightning.fabric.plugins.environments.torchelastic import TorchElasticEnvironment

from fedcohort.host.task import is_following_task

T = TypeVar("T")


class Tasks:
    """The processes of this run; there is only one if the run has one machine."""

    def __init__(self, num_nodes: int) -> None:
        self.several = num_nodes > 1
        self.follows = is_following_task(num_nodes)
        self._has_sent = False

    @contextmanager
    def together(self) -> Iterator[None]:
        """Connect the processes at the start; at the end, release those that still wait for the first one."""
        if self.several and not dist.is_initialized():
            self._meet()
        try:
            yield
        finally:
            if self.several and not self.follows and not self._has_sent:
                self._send(None)

    def _meet(self) -> None:
        """Make the process group, which Lightning would make later."""
        cluster = environment()
        dist.init_process_group(
            "gloo",
            init_method=f"tcp://{cluster.main_address}:{cluster.main_port}",
            rank=cluster.global_rank(),
            world_size=cluster.world_size(),
        )

    def agree(self, make: Callable[[], T]) -> T | None:
        """Return the result of `make` in the first process, in all processes; None if it failed there."""
        if not self.several:
            return make()
        if self.follows:
            return self._send(None)
        value = make()
        self._has_sent = True
        return self._send(value)

    @staticmethod
    def _send(value: T | None) -> T | None:
        box = [value]
        dist.broadcast_object_list(box, src=0)
        return box[0]


def environment() -> ClusterEnvironment:
    """Return the launcher's environment, without Lightning's requeueing of jobs, which would drop the round."""
    return TorchElasticEnvironment() if TorchElasticEnvironment.detect() else SLURMEnvironment(auto_requeue=False)
