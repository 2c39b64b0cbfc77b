"""Division of a cohort among the processes (ranks) of a run, and sums over these processes."""

import heapq
from collections.abc import Sequence

import numpy as np
import torch.distributed as dist
from torch import Tensor

from fedcohort.types import Ids, Values


def _is_distributed() -> bool:
    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1


def rank_of_process() -> int:
    """Return the rank (number from 0) of this process among the processes of a distributed run."""
    return dist.get_rank() if _is_distributed() else 0


def count_processes() -> int:
    """Return the number of processes of the run; 1 if it is not distributed."""
    return dist.get_world_size() if _is_distributed() else 1


def reduce_sum(tensor: Tensor) -> Tensor:
    """Sum `tensor` elementwise over all processes of the run, in place, and return it."""
    return _reduce_tensor(tensor, dist.ReduceOp.SUM)


def reduce_max(tensor: Tensor) -> Tensor:
    """Take the elementwise maximum of `tensor` over all processes of the run, in place, and return it."""
    return _reduce_tensor(tensor, dist.ReduceOp.MAX)


def _reduce_tensor(tensor: Tensor, reduce_operation: "dist.ReduceOp.RedOpType") -> Tensor:
    if _is_distributed() and tensor.numel():
        if dist.get_backend() == "nccl" and not tensor.is_cuda:  # NCCL reduces tensors on GPUs only
            gpu_tensor = tensor.cuda()
            dist.all_reduce(gpu_tensor, op=reduce_operation)
            return tensor.copy_(gpu_tensor)
        dist.all_reduce(tensor, op=reduce_operation)
    return tensor


def order_for_training(client_ids: Ids, client_costs: Values) -> list[int]:
    """Return the positions in `client_ids` in the order of training: by descending cost, then by id.

    `client_ids` and `client_costs`, the expected cost of training in any unit, have an entry for each client, [n].
    """
    return [int(client_position) for client_position in np.lexsort((client_ids, -client_costs))]


def positions_of_rank(rank: int, n_ranks: int, client_ids: Ids, client_costs: Values) -> Sequence[int]:
    """Return the positions in `client_ids` of the clients that process `rank` of `n_ranks` trains.

    Clients go to the least loaded process, the most expensive first. `client_ids` and `client_costs`, the expected cost
    of training in any unit, have an entry for each client, [n].
    """
    if n_ranks == 1:
        return order_for_training(client_ids, client_costs)
    load_and_rank_heap = [(0.0, candidate_rank) for candidate_rank in range(n_ranks)]
    client_positions = []
    for client_position in order_for_training(client_ids, client_costs):
        rank_load, least_loaded_rank = heapq.heappop(load_and_rank_heap)
        heapq.heappush(load_and_rank_heap, (rank_load + float(client_costs[client_position]), least_loaded_rank))
        if least_loaded_rank == rank:
            client_positions.append(client_position)
    return client_positions
