"""The ranks of a run, its processes: the division of a cohort among them, and sums over them."""

import heapq
from collections.abc import Sequence

import numpy as np
import torch.distributed as dist
from torch import Tensor

from fedcohort.types import Ids, Values


def _is_distributed() -> bool:
    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1


def rank() -> int:
    """Return the rank of this process among the processes of the run, from 0."""
    return dist.get_rank() if _is_distributed() else 0


def ranks() -> int:
    """Return the number of processes of the run."""
    return dist.get_world_size() if _is_distributed() else 1


def reduce_sum(tensor: Tensor) -> Tensor:
    """Sum a tensor over all processes of the run, in place, and return it."""
    return _reduce_tensor(tensor, dist.ReduceOp.SUM)


def reduce_max(tensor: Tensor) -> Tensor:
    """Take the elementwise maximum of a tensor over ranks, in place, and return it."""
    return _reduce_tensor(tensor, dist.ReduceOp.MAX)


def _reduce_tensor(tensor: Tensor, operation: "dist.ReduceOp.RedOpType") -> Tensor:
    if _is_distributed() and tensor.numel():
        if dist.get_backend() == "nccl" and not tensor.is_cuda:  # NCCL reduces tensors on GPUs only
            gpu_tensor = tensor.cuda()
            dist.all_reduce(gpu_tensor, op=operation)
            return tensor.copy_(gpu_tensor)
        dist.all_reduce(tensor, op=operation)
    return tensor


def training_order(clients: Ids, cost: Values) -> list[int]:
    """Return the positions of clients by descending cost, then id: the order in which they are trained and summed."""
    return [int(i) for i in np.lexsort((clients, -cost))]


def positions_of_rank(rank: int, ranks: int, clients: Ids, cost: Values) -> Sequence[int]:
    """Return the positions of the clients that `rank` trains: largest first, each to the least loaded rank."""
    if ranks == 1:
        return training_order(clients, cost)
    loads = [(0.0, r) for r in range(ranks)]
    positions = []
    for position in training_order(clients, cost):
        load, least = heapq.heappop(loads)
        heapq.heappush(loads, (load + float(cost[position]), least))
        if least == rank:
            positions.append(position)
    return positions
