"""The ranks of a run, the processes that a cohort is spread over: who trains whom, and sums over all of them."""

import heapq
from collections.abc import Sequence

import numpy as np
import torch.distributed as dist
from torch import Tensor

from fedcohort.types import Ids, Values


def _spread() -> bool:
    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1


def rank() -> int:
    return dist.get_rank() if _spread() else 0


def ranks() -> int:
    return dist.get_world_size() if _spread() else 1


def reduce_sum(tensor: Tensor) -> Tensor:
    """The sum over ranks, in place; the tensor itself in a single process."""
    return _reduce(tensor, dist.ReduceOp.SUM)


def reduce_max(tensor: Tensor) -> Tensor:
    """The maximum over ranks, in place."""
    return _reduce(tensor, dist.ReduceOp.MAX)


def _reduce(tensor: Tensor, operation: "dist.ReduceOp.RedOpType") -> Tensor:
    if _spread() and tensor.numel():
        if dist.get_backend() == "nccl" and not tensor.is_cuda:  # NCCL knows tensors on cards alone
            on_device = tensor.cuda()
            dist.all_reduce(on_device, op=operation)
            return tensor.copy_(on_device)
        dist.all_reduce(tensor, op=operation)
    return tensor


def in_order(clients: Ids, cost: Values) -> list[int]:
    """Positions of the clients by cost descending, then id: the order in which a rank trains and adds them."""
    return [int(i) for i in np.lexsort((clients, -cost))]


def share_of(rank: int, ranks: int, clients: Ids, cost: Values) -> Sequence[int]:
    """Positions of the clients that `rank` trains: largest first, each to the least loaded rank."""
    if ranks == 1:
        return in_order(clients, cost)
    loads = [(0.0, r) for r in range(ranks)]
    mine = []
    for position in in_order(clients, cost):
        load, least = heapq.heappop(loads)
        heapq.heappush(loads, (load + float(cost[position]), least))
        if least == rank:
            mine.append(position)
    return mine
