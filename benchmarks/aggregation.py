"""Time of each aggregator, compared with one weighted sum of the same updates in the same process.

python benchmarks/aggregation.py                  writes aggregation.md (`make bench-aggregation`)
python benchmarks/aggregation.py fedavg,scaffold  prints the rows of these aggregators only
"""

import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import textwrap
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from hydra.utils import instantiate
from omegaconf import OmegaConf

from fedcohort.agg.base import Aggregator, Arrived
from fedcohort.flat import Layout, TensorBlock
from fedcohort.hook import count_stored_floats, list_averaged_uploads
from fedcohort.host.memory import reuse_freed_memory
from fedcohort.round.arrivals import Arrivals
from fedcohort.round.collect import Collector
from fedcohort.round.collect_options import CollectorOptions
from fedcohort.types import ClientUpdate, Population, RoundOutcome, Selection, Signals

FOLDER = Path(__file__).parent
CONFIGS = FOLDER.parent / "configs" / "agg"
CLIENTS, PARAMETERS, REPEATS = 100, 1_000_000, 5
SUM_GOAL, GRAM_GOAL = 2.0, 10.0  # largest ratio to the time of the weighted sum; for methods with a Gram matrix
WITH_GRAM_MATRIX = {"fedmgda_plus", "krum"}
SERVER_TRAINED = {"feddf", "rhfl"}  # they train networks on the server, so the ratio says nothing


def list_aggregators() -> list[str]:
    """Return the options of `agg` that have a class, sorted; aliases such as fedavgm are combinations of these."""
    return sorted(path.stem for path in CONFIGS.glob("*.yaml") if "_target_" in OmegaConf.load(path))


@cache
def shared_update() -> torch.Tensor:
    """Return the common part of all updates; float32 [PARAMETERS]."""
    return torch.randn(PARAMETERS, generator=torch.Generator().manual_seed(CLIENTS))


def make_update(client: int, agg: Aggregator[Any]) -> ClientUpdate:
    """Return a random update of a client, correlated with those of the other clients."""
    rng = torch.Generator().manual_seed(client)
    delta = 0.1 * shared_update() + 0.1 * torch.randn(PARAMETERS, generator=rng)
    return ClientUpdate(
        client=client,
        n_train=20 + client,
        n_used=20 + client,
        steps=5 + client % 3,
        response=5.0 + client % 3,
        units_done=1,
        units_asked=1,
        lr=0.1,
        vector=delta,
        buffers=torch.empty(0),
        counters=torch.empty(0, dtype=torch.int64),
        uploads={name: delta for hook in agg.hooks for name in hook.uploads},
        stored={},
        batch_loss=np.ones(5),
        batch_size=np.full(5, 4),
        sample_loss=np.ones(20 + client),
        norms=[1.0],
    )


def collect_updates(agg: Aggregator[Any], updates: list[ClientUpdate]) -> Arrivals:
    """Pass the updates through a run's collector; this is the time in column `gather`."""
    n = np.array([update.n_used for update in updates])
    options = CollectorOptions(
        upload_names=[name for hook in agg.hooks for name in hook.uploads],
        averaged_uploads=list_averaged_uploads(agg.hooks),
        vector_lengths=count_stored_floats(agg.hooks, PARAMETERS, int(n.max())),
        keeps_updates=agg.stacked,
    )
    layout = Layout((TensorBlock("w", (PARAMETERS,), 0),), (), ())
    collector = Collector(layout, np.arange(CLIENTS), agg.weights(n, n), options)
    for update in updates:
        collector.add_client_update(update)
    return collector.sum_over_ranks(lambda tensor: tensor, lambda tensor: tensor)


def make_arrived(agg: Aggregator[Any], collected: Arrivals) -> Arrived:
    """Return the collected updates with a random value of each signal that the aggregator needs."""
    rng, no_clients = np.random.default_rng(0), np.empty(0, dtype=np.int64)
    signals = Signals({name: 0.1 + rng.random(CLIENTS) for name in sorted(agg.needs)}, agg.needs, "the aggregator")
    outcome = RoundOutcome(0, Selection(collected.clients), collected.clients, no_clients, signals, {}, 1.0)
    if collected.mean is None:
        raise ValueError("the collector received no updates")
    return Arrived(
        outcome, collected.mean, collected.totals, collected.weights, collected.updates, collected.client_buffers
    )


def measure_in_process(aggregator_name: str) -> None:
    """Measure one aggregator and print JSON: median seconds of the weighted sum, of `gather` and of `direction`."""
    torch.set_num_threads(1)
    reuse_freed_memory()  # runs do the same
    agg = instantiate(OmegaConf.load(CONFIGS / f"{aggregator_name}.yaml"), _convert_="all")
    updates = [make_update(client, agg) for client in range(CLIENTS)]
    matrix = torch.stack([update.delta for update in updates]).double()
    weights = torch.full((CLIENTS,), 1 / CLIENTS, dtype=torch.float64)
    needs = Signals(dict.fromkeys(agg.needs, np.ones(CLIENTS)), agg.needs, "the aggregator")
    state = agg.init(Population(CLIENTS, 10, CLIENTS, needs), PARAMETERS)
    times: dict[str, list[float]] = {"sum": [], "gather": [], "direction": []}
    for _ in range(REPEATS + 1):
        marks = [time.perf_counter()]
        weights @ matrix
        marks.append(time.perf_counter())
        collected = collect_updates(agg, updates)
        marks.append(time.perf_counter())
        agg.direction(state, make_arrived(agg, collected))
        marks.append(time.perf_counter())
        for name, seconds in zip(times, np.diff(marks), strict=True):
            times[name].append(float(seconds))
        del collected
    result = {name: statistics.median(seconds[1:]) for name, seconds in times.items()} | {
        "stacked": agg.stacked,
        "vectors": 1 + sum(len(hook.uploads) for hook in agg.hooks),
    }
    sys.stdout.write("RESULT " + json.dumps(result) + "\n")


def format_row(name: str) -> str:
    """Measure one aggregator in a new process and return its table row."""
    if name in SERVER_TRAINED:
        return f"| `{name}` | trains on the server | - | - | - | - | - |"
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "one", name]
    process = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
    seconds = json.loads(process.stdout.split("RESULT ")[-1])
    computation, goal = ("Gram matrix", GRAM_GOAL) if name in WITH_GRAM_MATRIX else ("weighted sum", SUM_GOAL)
    storage = "matrix" if seconds["stacked"] else "stream" + (" of 2" if seconds["vectors"] == 2 else "")
    goal *= seconds["vectors"]
    direction_ratio = seconds["direction"] / seconds["sum"]
    sum_ratio = (seconds["gather"] + seconds["direction"]) / seconds["sum"]
    mark = " (over)" if (direction_ratio if seconds["stacked"] else sum_ratio) > goal else ""
    times = [f"{1000 * seconds[step]:.0f}" for step in ("sum", "gather", "direction")]
    ratios = f"{direction_ratio:.1f} | {sum_ratio:.1f}{mark}"
    return f"| `{name}` | {computation}, {storage} | {' | '.join(times)} | {ratios} |"


def paragraph(text: str) -> str:
    """Return the text in lines of at most 118 characters."""
    return textwrap.fill(" ".join(text.split()), 118, break_on_hyphens=False)


def main() -> None:
    """Measure all aggregators, and write and print the page."""
    lines = [
        "# Time of each aggregator",
        "",
        paragraph(
            f"""{datetime.date.today()}, {platform.machine()}, Python {platform.python_version()}, torch
            {torch.__version__}, one thread. Each aggregator combines {CLIENTS} updates of {PARAMETERS:,} parameters;
            updates are float32, and aggregation is float64. `sum` is the time of `weights @ matrix` in float64, in the
            same process. `gather` receives the updates one by one, checks their norms and adds them up; some
            methods also need them as a matrix. `direction` is the method itself, and `both` is `gather` plus
            `direction`. The goal is at most {SUM_GOAL:.0f} times `sum` for each vector that a client sends, and
            {GRAM_GOAL:.0f} times with a Gram matrix. It applies to `direction` for methods that use the matrix, and to
            `both` for the others.
            `(over)` marks a missed goal. Values are medians of {REPEATS} repeats. `make bench-aggregation` writes this
            file."""
        ),
        "",
        "| aggregator | computation | sum, ms | gather, ms | direction, ms | direction / sum | both / sum |",
        "|---|---|---|---|---|---|---|",
        *(format_row(name) for name in list_aggregators()),
    ]
    text = "\n".join(lines) + "\n"
    (FOLDER / "aggregation.md").write_text(text)
    sys.stdout.write(text)


if __name__ == "__main__":
    if sys.argv[1:2] == ["one"]:
        measure_in_process(sys.argv[2])
    elif len(sys.argv) > 1:
        sys.stdout.write("".join(f"{format_row(word)}\n" for word in sys.argv[1].split(",")))
    else:
        main()
