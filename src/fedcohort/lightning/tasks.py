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

from fedcohort.host.task import is_non_first_task

T = TypeVar("T")


class ProgramTasks:
    """The processes of a run on `num_nodes` machines, which SLURM or torchrun starts: one for each device.

    On one machine this process is the only one; Lightning starts further ones.

    Attributes:
        has_several_nodes: whether the run has several machines.
        is_follower: whether this process is not the first one.
    """

    def __init__(self, num_nodes: int) -> None:
        self.has_several_nodes = num_nodes > 1
        self.is_follower = is_non_first_task(num_nodes)
        self._has_sent = False

    @contextmanager
    def connect(self) -> Iterator[None]:
        """Connect the processes in the `with` block; at its end, release those that still wait for the first one."""
        if self.has_several_nodes and not dist.is_initialized():  # Lightning would create the group later
            cluster = cluster_environment()
            main_address, rank = f"tcp://{cluster.main_address}:{cluster.main_port}", cluster.global_rank()
            dist.init_process_group("gloo", init_method=main_address, rank=rank, world_size=cluster.world_size())
        try:
            yield
        finally:
            if self.has_several_nodes and not self.is_follower and not self._has_sent:
                self._broadcast_value(None)

    def run_on_first_process(self, compute_value: Callable[[], T]) -> T | None:
        """Return the result of `compute_value` in the first process, in all processes; None if it failed there."""
        if not self.has_several_nodes:
            return compute_value()
        if self.is_follower:
            return self._broadcast_value(None)
        first_value = compute_value()
        self._has_sent = True
        return self._broadcast_value(first_value)

    @staticmethod
    def _broadcast_value(sent_value: T | None) -> T | None:
        broadcast_values = [sent_value]
        dist.broadcast_object_list(broadcast_values, src=0)
        return broadcast_values[0]


def cluster_environment() -> ClusterEnvironment:
    """Return Lightning's description of SLURM or torchrun, without requeueing of jobs, which would drop the round."""
    return TorchElasticEnvironment() if TorchElasticEnvironment.detect() else SLURMEnvironment(auto_requeue=False)
