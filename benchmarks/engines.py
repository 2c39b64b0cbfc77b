"""Processor time of a round's local training by engine, in this process and without Lightning.

    python benchmarks/engines.py                 writes engines.md, from three repeats
    python benchmarks/engines.py before=../old   also measures the code of another checkout, in turns

A round trains all clients and collects their updates; the fastest of four rounds counts. Samples are random numbers.
"""

import copy
import datetime
import json
import os
import statistics
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from hydra.utils import instantiate
from omegaconf import OmegaConf
from torch import nn

from fedcohort.data.federation import Federation, ServerSamples, Shard
from fedcohort.flat import FlatModel
from fedcohort.round.collect import Collector
from fedcohort.round.collect_options import CollectorOptions
from fedcohort.training.client_task import ClientTask
from fedcohort.training.engines import choose_engine
from fedcohort.training.local import LocalTrainer
from fedcohort.training.local_method import LocalTrainingMethod

ROOT = Path(__file__).resolve().parents[1]
REPEATS, ROUNDS, CHUNK, LR = 3, 4, 16, 0.05
SIZES = np.random.RandomState(0)
SMALL = sorted(SIZES.randint(12, 37, 80).tolist(), reverse=True)
MANY_SIZES = sorted(np.clip(SIZES.lognormal(3.4, 0.85, 355).astype(int), 4, 400).tolist(), reverse=True)
MLP, LINEAR = (64, 200, 200, 10), (64, 10)
CASES: dict[str, tuple[list[int], tuple[int, ...], str, dict[str, Any]]] = {  # samples, layers, engine, options
    "80 clients, MLP 64-200-200-10": (SMALL, MLP, "vectorised", {"batch": 10, "epochs": 5}),
    "10 clients, MLP 64-200-200-10": (SMALL[::8], MLP, "vectorised", {"batch": 10, "epochs": 5}),
    "80 clients, MLP, SCAFFOLD": (SMALL, MLP, "vectorised", {"batch": 10, "epochs": 5, "agg": "scaffold"}),
    "80 clients, linear, Adam": (SMALL, LINEAR, "vectorised", {"batch": 10, "epochs": 5, "client": "adam"}),
    "10 clients x 600, MLP 784-200-200-10": ([600] * 10, (784, 200, 200, 10), "vectorised", {"batch": 32}),
    "80 clients, MLP 64-200-200-10, one by one": (SMALL, MLP, "sequential", {"batch": 10, "epochs": 5}),
    "355 clients, linear 784-62, dual": (MANY_SIZES, (784, 62), "auto", {"batch": 10}),
    "80 clients, linear 64-10, dual": (SMALL, LINEAR, "auto", {"batch": 10, "epochs": 5}),
}


def make(group: str, name: str, **changes: object) -> Any:  # noqa: ANN401  the class is in the yaml file
    """Return a component with the options of its yaml file, replaced by `changes`."""
    node: Any = OmegaConf.to_container(OmegaConf.load(ROOT / "configs" / group / f"{name}.yaml"))
    return instantiate({**node, **changes}, _convert_="all")


def make_federation(sizes: list[int], inputs: int, classes: int) -> Federation:
    """Return a federation of random samples, without validation and test samples of the clients."""
    rng, clients, n = torch.Generator().manual_seed(0), len(sizes), sum(sizes)
    x, y = torch.rand(n, inputs, generator=rng), torch.randint(0, classes, (n,), generator=rng)
    offsets, no_offsets = np.concatenate([[0], np.cumsum(sizes)]), np.zeros(clients + 1, dtype=np.int64)
    empty, server = Shard(x[:0], y[:0], y[:0], no_offsets), ServerSamples(x[:1], y[:1])
    counts, rates = np.zeros((clients, classes), dtype=np.int64), np.zeros(clients)
    return Federation("random", classes, Shard(x, y, y, offsets), empty, empty, server, server, counts, rates)


def measure(name: str) -> float:
    """Return the processor seconds of the fastest round of a case."""
    sizes, widths, kind, options = CASES[name]
    layers = [layer for layer_widths in pairwise(widths) for layer in (nn.Linear(*layer_widths), nn.ReLU())]
    network = nn.Sequential(*layers[:-1])
    hooks = make("agg", options["agg"]).hooks if "agg" in options else ()
    epochs = options.get("epochs", 1)
    client = make("client", options.get("client", "sgd"), batch=options["batch"], epochs=epochs)
    method = LocalTrainingMethod(make("objective", "ce"), client, make("codec", "none"), hooks)
    federation = make_federation(sizes, widths[0], widths[-1])
    server, worker = FlatModel(network), FlatModel(copy.deepcopy(network))
    engine, _ = choose_engine(kind, LocalTrainer(server, worker, federation, method, 0), CHUNK)
    tasks = [ClientTask(0, k, None, epochs, epochs, LR, 1.0, {}) for k in range(len(sizes))]
    uploads = [upload for hook in hooks for upload in hook.uploads]
    seconds = []
    for _ in range(ROUNDS):
        start = time.process_time()
        clients, weights = np.arange(len(sizes)), np.array(sizes, dtype=np.float64)
        collector = Collector(server.layout, clients, weights, CollectorOptions(uploads, max_update_norm=1e9))
        for update in engine.train_clients(tasks, {"c": torch.zeros_like(server.w)}):
            collector.add_client_update(update)
        collector.sum_over_ranks(lambda tensor: tensor, lambda tensor: tensor)
        seconds.append(time.process_time() - start)
    return min(seconds)


def main(before: str | None) -> None:
    """Measure both checkouts in turns, and write and print the page."""
    folders = [Path(before).resolve(), ROOT] if before else [ROOT]
    measured: list[dict[str, list[float]]] = [{name: [] for name in CASES} for _ in folders]
    for _ in range(REPEATS):
        for folder, seconds in zip(folders, measured, strict=True):
            env = {**os.environ, "PYTHONPATH": str(folder / "src"), "OMP_NUM_THREADS": "1"}
            output = subprocess.run(
                [sys.executable, __file__, "measure"], env=env, capture_output=True, check=True
            ).stdout
            for name, value in json.loads(output).items():
                seconds[name].append(value)
    lines = [
        "# Processor time of local training by engine",
        "",
        f"    python benchmarks/engines.py{' before=<another checkout>' if before else ''}",
        "",
        f"{datetime.date.today()}, kernels of torch for {torch.backends.cpu.get_cpu_capability()}, one thread.",
        f"Milliseconds of user and system time of a round; median of {REPEATS} repeats, which alternate between the",
        "versions, and their ratio with its range. A round trains all clients and collects their updates.",
        f"The fastest of {ROUNDS} rounds counts. `engine=vectorised` trains 16 clients at a time, unless the row says",
        "otherwise. A client has 12 to 36 samples (355 clients: 4 to 400) and trains 5 epochs in batches of 10;",
        "clients of 784 inputs train one epoch, those with 600 samples in batches of 32.",
        "",
        "| work | ms before | ms after | ratio |" if before else "| work | ms |",
        "| :--- | ---: | ---: | ---: |" if before else "| :--- | ---: |",
    ]
    for name in CASES:
        columns = [f"{1e3 * statistics.median(seconds[name]):.0f}" for seconds in measured]
        if before:
            ratios = [after / before_s for before_s, after in zip(measured[0][name], measured[1][name], strict=True)]
            columns.append(f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")
        lines.append(f"| {name} | {' | '.join(columns)} |")
    text = "\n".join(lines) + "\n"
    (ROOT / "benchmarks" / "engines.md").write_text(text)
    sys.stdout.write(text)


if __name__ == "__main__":
    torch.set_num_threads(1)
    if sys.argv[1:] == ["measure"]:
        sys.stdout.write(json.dumps({name: measure(name) for name in CASES}))
    else:
        main(next((word.removeprefix("before=") for word in sys.argv[1:]), None))
