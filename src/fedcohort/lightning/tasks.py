"""The tasks of a run over several machines, which SLURM or torchrun starts: the first leads, the others follow it.

Each is a process of `train.py` with the same words. The first has the run's folder, its journal and its watchers; the
others hear from it where that folder is and what is gone on from, and train their share.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import torch.distributed as dist
from lightning.fabric.plugins.environments.cluster_environment import ClusterEnvironment
from lightning.fabric.plugins.environments.slurm import SLURMEnvironment
from lightning.fabric.plugins.environments.torchelastic import TorchElasticEnvironment

from fedcohort.host.task import follows

T = TypeVar("T")


class Tasks:
    """The tasks of this run; there is only one if the run has one machine."""

    def __init__(self, num_nodes: int) -> None:
        self.several = num_nodes > 1
        self.follows = follows(num_nodes)
        self._told = False

    @contextmanager
    def together(self) -> Iterator[None]:
        """Wait for the others, before the first has made a folder; those for whom it has nothing go at the end."""
        if self.several and not dist.is_initialized():
            self._meet()
        try:
            yield
        finally:
            if self.several and not self.follows and not self._told:
                self._send(None)

    def _meet(self) -> None:
        """Do what Lightning would do later."""
        found = environment()
        dist.init_process_group(
            "gloo",
            init_method=f"tcp://{found.main_address}:{found.main_port}",
            rank=found.global_rank(),
            world_size=found.world_size(),
        )

    def agree(self, make: Callable[[], T]) -> T | None:
        """Return what the first of them makes; None where it came to nothing, which it has said."""
        if not self.several:
            return make()
        if self.follows:
            return self._send(None)
        found = make()
        self._told = True
        return self._send(found)

    @staticmethod
    def _send(value: T | None) -> T | None:
        box = [value]
        dist.broadcast_object_list(box, src=0)
        return box[0]


def environment() -> ClusterEnvironment:
    """Return who says which task this is. Lightning's own way to requeue a job would drop the round."""
    return TorchElasticEnvironment() if TorchElasticEnvironment.detect() else SLURMEnvironment(auto_requeue=False)
