"""A plain PyTorch training loop, the baseline of `make bench`: one model, a new optimizer for each client.

    python benchmarks/bare.py W1 [rounds] [processes] [device]

Each process has one thread. Several processes divide the cohort, the largest clients first, and add their weighted
sums of models in shared memory.
"""

import json
import os
import sys
import time
from multiprocessing.synchronize import Barrier
from typing import Any

import numpy as np
import torch
import torch.multiprocessing as mp
from torch import Tensor, nn
from torch.nn import functional as F

from workloads import WORKLOADS, Workload, cpu_seconds, result

State = dict[str, Tensor]
SharedTensors = tuple[State, list[State], Tensor, tuple[Tensor, ...]]  # server model; sum and loss of each rank; data


def assign_clients(clients: np.ndarray, sizes: np.ndarray, rank: int, processes: int) -> list[int]:
    """Return the clients that the process `rank` trains: the largest first, each to the process with least work."""
    loads, assigned = [0] * processes, []
    for k in sorted(clients, key=lambda k: -sizes[k]):
        rank_of_least_load = loads.index(min(loads))
        loads[rank_of_least_load] += int(sizes[k])
        if rank_of_least_load == rank:
            assigned.append(int(k))
    return assigned


def train(
    model: torch.nn.Module,
    work: Workload,
    data: tuple[Tensor, ...],
    offsets: np.ndarray,
    client_ids: list[int],
    server: State,
) -> dict[str, Tensor]:
    """Train each client from the server's model, and return the sum of their models, weighted by sample counts."""
    total = {key: torch.zeros_like(value) for key, value in server.items()}
    for k in client_ids:
        first, stop = int(offsets[k]), int(offsets[k + 1])
        model.load_state_dict(server)
        optimizer = torch.optim.SGD(model.parameters(), lr=work.lr)
        for start in range(first, stop, work.batch):
            rows = slice(start, min(start + work.batch, stop))
            optimizer.zero_grad()
            F.cross_entropy(model(data[0][rows]), data[1][rows]).backward()
            optimizer.step()
        for key, value in model.state_dict().items():
            total[key] += value * (stop - first)
    return total


@torch.no_grad()
def evaluate(model: nn.Module, x: Tensor, y: Tensor) -> float:
    """Return the cross-entropy, summed over the samples."""
    parts = [F.cross_entropy(model(x[i : i + 1000]), y[i : i + 1000], reduction="sum") for i in range(0, len(y), 1000)]
    return float(torch.stack(parts).sum())


def worker(rank: int, processes: int, name: str, rounds: int, shared: SharedTensors, barrier: Barrier) -> None:
    """Run all rounds as one of several processes; the process of rank 0 prints the result."""
    torch.set_num_threads(1)
    work, (server, sums, scores, data) = WORKLOADS[name], shared
    offsets, model = work.offsets(), work.network().to(data[0].device)
    x_eval, y_eval = data[2], data[3]
    bounds = [len(y_eval) * r // processes for r in range(processes + 1)]
    round_seconds, cpu_seconds_of_rounds, losses = [], [], []
    pid = os.getppid() if processes > 1 else os.getpid()
    for t in range(rounds):
        start_s, start_cpu_s = time.perf_counter(), cpu_seconds(pid)
        cohort = work.cohort_of(t)
        client_ids = assign_clients(cohort, work.sizes, rank, processes)
        for key, value in train(model, work, data, offsets, client_ids, server).items():
            sums[rank][key].copy_(value)
        barrier.wait()
        if rank == 0:
            for key, value in server.items():
                weighted_sum: Any = sum(rank_sum[key] for rank_sum in sums)
                value.copy_(weighted_sum / int(work.sizes[cohort].sum()))
        barrier.wait()
        model.load_state_dict(server)
        rows = slice(bounds[rank], bounds[rank + 1])
        scores[rank] = evaluate(model, x_eval[rows], y_eval[rows])
        barrier.wait()
        losses.append(float(scores.sum()) / len(y_eval))
        round_seconds.append(time.perf_counter() - start_s)
        cpu_seconds_of_rounds.append(cpu_seconds(pid) - start_cpu_s)
    if rank == 0:
        report = {**result("bare", name, round_seconds, cpu_seconds_of_rounds, losses), "first_s": round_seconds[0]}
        sys.stdout.write("RESULT " + json.dumps(report) + "\n")
        sys.stdout.flush()


def main(name: str, rounds: int, processes: int, device: str) -> None:
    """Place model and data in shared memory, and run the workload in as many processes."""
    work = WORKLOADS[name]
    data = tuple(part.to(device) for part in work.data())
    server = {key: value.clone().to(device) for key, value in work.network().state_dict().items()}
    sums = [{key: torch.zeros_like(value) for key, value in server.items()} for _ in range(processes)]
    scores = torch.zeros(processes)
    if processes > 1:
        for tensor in (*data, *server.values(), scores, *(v for rank_sum in sums for v in rank_sum.values())):
            tensor.share_memory_()
    shared = (server, sums, scores, data)
    context = mp.get_context("fork")
    barrier = context.Barrier(processes)
    if processes == 1:
        return worker(0, 1, name, rounds, shared, barrier)
    group = [
        context.Process(target=worker, args=(r, processes, name, rounds, shared, barrier)) for r in range(processes)
    ]
    for process in group:
        process.start()
    for process in group:
        process.join()
    return None


if __name__ == "__main__":
    arguments = sys.argv[1:] + ["6", "1", "cpu"][len(sys.argv) - 2 :]
    main(arguments[0], int(arguments[1]), int(arguments[2]), arguments[3])
