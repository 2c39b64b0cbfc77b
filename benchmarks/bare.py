"""The plain loop that every engine is measured against: one model, an optimizer per client; one thread a process.

python benchmarks/bare.py W1 [rounds] [processes] [device]

With two processes and more, each trains its share of the cohort (the largest clients first), and the means are added
in shared memory: what a careful plain design does on several cores.
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
Shared = tuple[State, list[State], Tensor, tuple[Tensor, ...]]  # the server, sums and scores of ranks, the data


def share(clients: np.ndarray, sizes: np.ndarray, rank: int, processes: int) -> list[int]:
    """Largest first, each to the least loaded."""
    loads, mine = [0] * processes, []
    for k in sorted(clients, key=lambda k: -sizes[k]):
        least = loads.index(min(loads))
        loads[least] += int(sizes[k])
        if least == rank:
            mine.append(int(k))
    return mine


def train(
    model: torch.nn.Module,
    work: Workload,
    data: tuple[Tensor, ...],
    offsets: np.ndarray,
    mine: list[int],
    server: State,
) -> dict[str, Tensor]:
    """The sum of the clients' models, each by its samples."""
    total = {key: torch.zeros_like(value) for key, value in server.items()}
    for k in mine:
        a, b = int(offsets[k]), int(offsets[k + 1])
        model.load_state_dict(server)
        optimizer = torch.optim.SGD(model.parameters(), lr=work.lr)
        for start in range(a, b, work.batch):
            rows = slice(start, min(start + work.batch, b))
            optimizer.zero_grad()
            F.cross_entropy(model(data[0][rows]), data[1][rows]).backward()
            optimizer.step()
        for key, value in model.state_dict().items():
            total[key] += value * (b - a)
    return total


@torch.no_grad()
def evaluate(model: nn.Module, x: Tensor, y: Tensor) -> float:
    """Summed cross-entropy."""
    parts = [F.cross_entropy(model(x[i : i + 1000]), y[i : i + 1000], reduction="sum") for i in range(0, len(y), 1000)]
    return float(torch.stack(parts).sum())


def worker(rank: int, processes: int, name: str, rounds: int, shared: Shared, barrier: Barrier) -> None:
    torch.set_num_threads(1)
    work, (server, sums, scores, data) = WORKLOADS[name], shared
    offsets, model = work.offsets(), work.network().to(data[0].device)
    x_eval, y_eval = data[2], data[3]
    bounds = [len(y_eval) * r // processes for r in range(processes + 1)]
    times, busy, losses = [], [], []
    pid = os.getppid() if processes > 1 else os.getpid()
    for t in range(rounds):
        began, spent = time.perf_counter(), cpu_seconds(pid)
        chosen = work.chosen(t)
        mine = share(chosen, work.sizes, rank, processes)
        for key, value in train(model, work, data, offsets, mine, server).items():
            sums[rank][key].copy_(value)
        barrier.wait()
        if rank == 0:
            for key, value in server.items():
                together: Any = sum(one[key] for one in sums)
                value.copy_(together / int(work.sizes[chosen].sum()))
        barrier.wait()
        model.load_state_dict(server)
        rows = slice(bounds[rank], bounds[rank + 1])
        scores[rank] = evaluate(model, x_eval[rows], y_eval[rows])
        barrier.wait()
        losses.append(float(scores.sum()) / len(y_eval))
        times.append(time.perf_counter() - began)
        busy.append(cpu_seconds(pid) - spent)
    if rank == 0:
        found = {**result("bare", name, times, busy, losses), "first_s": times[0]}
        sys.stdout.write("RESULT " + json.dumps(found) + "\n")
        sys.stdout.flush()


def main(name: str, rounds: int, processes: int, device: str) -> None:
    work = WORKLOADS[name]
    data = tuple(part.to(device) for part in work.data())
    server = {key: value.clone().to(device) for key, value in work.network().state_dict().items()}
    sums = [{key: torch.zeros_like(value) for key, value in server.items()} for _ in range(processes)]
    scores = torch.zeros(processes)
    if processes > 1:
        for tensor in (*data, *server.values(), scores, *(v for one in sums for v in one.values())):
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
    words = sys.argv[1:] + ["6", "1", "cpu"][len(sys.argv) - 2 :]
    main(words[0], int(words[1]), int(words[2]), words[3])
